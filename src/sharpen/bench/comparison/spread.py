"""How the runs of an arm on a task spread, and what that means for how many are enough. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sharpen.bench.comparison import times
from sharpen.bench.comparison.measure import Measure, numbers, sorted_out
from sharpen.bench.evidence.nouns import Arm, Run
from sharpen.core.errors import UsageError
from sharpen.stats.enough import Enough, enough
from sharpen.stats.means import Estimate, interval


@dataclass(frozen=True)
class Spread:
    """The runs of one arm on one task. `left_out` says which had no number to give, and why."""

    name: str
    values: tuple[float, ...]
    mean: Estimate
    enough: Enough
    notes: tuple[str, ...]


def spreads(arms: Sequence[Arm], measure: Measure, *, threshold: float, most: int | None, paired: bool) -> list[Spread]:
    """One for each arm and task. What can't be looked at is left out and told; an error only where nothing is left."""
    made: list[Spread] = []
    lost: list[UsageError] = []
    for arm, task in [(one, task) for one in arms for task in one.tasks]:
        try:
            made.append(_spread(arm, task, measure, threshold, most, paired))
        except UsageError as error:
            lost.append(error)
    if not made:
        raise lost[0]
    return [replace(made[0], notes=(*made[0].notes, *(f"left out: {error}" for error in lost))), *made[1:]]


def values_of(arm: Arm, task: str, measure: Measure) -> tuple[list[float], list[str]]:
    """The number of each run that has one, and what must be said."""
    runs, notes = enough_runs(arm, task, measure)
    try:
        found, more = (times.alone if measure.summary == "steps_to" else numbers)(runs, measure)
    except UsageError as error:
        raise UsageError(f"{_where(arm, task)}: {error}") from error
    return found, [*arm.notes, *notes, *more]


def enough_runs(arm: Arm, task: str, measure: Measure) -> tuple[list[Run], list[str]]:
    """The runs that have a number, two at least, and what must be said of them."""
    runs, notes = sorted_out(arm.on(task), measure)
    where = _where(arm, task)
    if len(runs) < 2:
        why = f" ({notes[0]})" if notes else ""
        raise UsageError(
            f"{where}: {len(runs)} of {len(arm.on(task))} runs have {measure.words}{why}; a spread takes at least 2"
        )
    seeds = [run.seed for run in runs if run.seed is not None]
    if len({run.draw for run in runs}) == len(runs) and len(set(seeds)) == 1:
        notes.append(
            f"{where}: all runs are repetitions of seed {seeds[0]}; they spread by what the seed does not explain, and "
            "other seeds may spread more"
        )
    elif len(set(seeds)) < len(seeds):
        notes.append(
            f"{where}: some seeds are there more than once; runs of one seed spread less than runs of different ones"
        )
    return runs, notes


def _where(arm: Arm, task: str) -> str:
    return f"{arm.name}{' on ' + task if task else ''}"


def _spread(arm: Arm, task: str, measure: Measure, threshold: float, most: int | None, paired: bool) -> Spread:
    found, notes = values_of(arm, task, measure)
    where = _where(arm, task)
    if sum(found) == 0.0:
        raise UsageError(f"{where}: the mean of {measure.words} is 0, so no precision relative to it exists")
    told = enough(found, threshold=threshold, most=most, paired=paired)
    return Spread(where, tuple(found), interval(found), told, tuple(dict.fromkeys(notes)))
