"""A whole comparison: a row per task, one over all tasks, the verdict, and p-values adjusted over what was tested.

Two families are declared. The one that decides has one test for each pair of arms: the task's own where there is one task,
else that of the mean difference over tasks (each task counts the same; the variances of the tasks add up, Welch's degrees of
freedom). The other has every task of every pair of arms. Both are adjusted by Holm's rule.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import fmean, variance

from sharpen.bench.comparison import differences, rows
from sharpen.bench.comparison.differences import ArmCost, Flips, Setting
from sharpen.bench.comparison.measure import Measure, sorted_out
from sharpen.bench.comparison.pairing import BY_SEED, Pairing, paired
from sharpen.bench.comparison.rows import MOST_MORE, Row, Value
from sharpen.bench.evidence.nouns import Arm, Run
from sharpen.core.errors import UsageError
from sharpen.stats import student
from sharpen.stats.arms import welch_freedom
from sharpen.stats.curves import divergence
from sharpen.stats.errors import BadData
from sharpen.stats.means import Estimate
from sharpen.stats.multiple import holm
from sharpen.stats.power import runs_needed

FEW_PAIRS = 6


class Verdict(StrEnum):
    BETTER = "better"
    WORSE = "worse"
    SAME = "same"
    NOT_WORSE = "not worse"
    OPEN = "can't tell"


@dataclass(frozen=True)
class Wish:
    """How to compare. `over` is auto, seeds or items; `margin` is a difference that would not matter, fixed beforehand."""

    measure: Measure
    pairing: Pairing = BY_SEED
    over: str = "auto"
    level: float = 0.95
    margin: float | None = None


@dataclass(frozen=True)
class Pooled:
    """The mean difference over tasks."""

    effect: Estimate
    p: float
    tasks: int
    more: int | None
    """How many more seeds on each task would show an effect of the size seen."""


@dataclass(frozen=True)
class Compared:
    """Two arms, and all there is to say about them. `p` and `adjusted` are those of the test that decides."""

    old: str
    new: str
    measure: Measure
    rows: tuple[Row, ...]
    pooled: Pooled | None
    verdict: Verdict
    p: float | None
    adjusted: float | None
    tests: int
    row_tests: int
    costs: tuple[ArmCost, ArmCost]
    flips: tuple[Flips, ...]
    diverged: tuple[tuple[str, float | None], ...]
    settings: tuple[Setting, ...]
    text: str
    warnings: tuple[str, ...]
    exploratory: bool = False
    """Held against a plan, and not what was planned."""


def compare_all(pairs: Sequence[tuple[Arm, Arm]], wish: Wish) -> list[Compared]:
    """Every pair of arms, adjusted together."""
    made = [_compare(old, new, wish) for old, new in pairs]
    tested = [row for one in made for row in one.rows if row.p is not None]
    adjusted = iter(holm([row.p for row in tested if row.p is not None]))
    deciding = [one.p for one in made if one.p is not None]
    decided = iter(holm(deciding))
    final = []
    for one in made:
        own = tuple(row if row.p is None else replace(row, adjusted=next(adjusted)) for row in one.rows)
        p = None if one.p is None else next(decided)
        whole = replace(one, rows=own, adjusted=p, tests=len(deciding), row_tests=len(tested))
        whole = replace(whole, warnings=(*whole.warnings, *_out_of_reach(own, len(tested), 1 - wish.level)))
        found = p is not None and p <= 1 - wish.level
        final.append(replace(whole, verdict=verdict_of(whole, wish, found=found)))
    return final


def _out_of_reach(made: Sequence[Row], tests: int, alpha: float) -> list[str]:
    """A family so large, or values so few, that no row of its own can be a finding whatever it shows."""
    best = min((row.result.test.smallest_p for row in made if row.result is not None), default=0.0)
    if best > alpha or best * tests <= alpha:
        return []
    return [
        f"adjusted for {tests} tests, no row here can come below {best * tests:.2g}, whatever it shows: take more "
        f"{made[0].over}, or fewer comparisons at once"
    ]


def _compare(old: Arm, new: Arm, wish: Wish) -> Compared:
    tasks = [task for task in old.tasks if task in new.tasks]
    if not tasks:
        raise UsageError(
            f"{old.name} and {new.name} have no task in common: {', '.join(old.tasks)} against {', '.join(new.tasks)}"
        )
    warnings = [*old.notes, *new.notes]
    for arm, other in ((old, new), (new, old)):
        alone = [task for task in arm.tasks if task not in other.tasks]
        if alone:
            warnings.append(f"only {arm.name} ran {', '.join(alone)}; left out")
    made: list[Row] = []
    used: list[tuple[tuple[Run, ...], tuple[Run, ...]]] = []
    for task in tasks:
        sides = _whole(old, new, task, wish.measure, warnings)
        row, runs = _task_row(task, (old.name, new.name), sides[0], sides[1], wish)
        made.append(row)
        used.append(runs)
        warnings += [note if len(tasks) == 1 or task in note else f"{task}: {note}" for note in row.notes]
    if all(row.result is None for row in made):
        raise UsageError(_too_few(made[0], old.name, new.name))
    pooled = _pooled(made, wish.level) if len(made) > 1 else None
    flat = tuple(run for pair in used for run in pair[0]), tuple(run for pair in used for run in pair[1])
    warnings += differences.warnings(old.name, new.name, *flat)
    few = [row for row in made if row.over == rows.SEEDS and row.paired and row.n < FEW_PAIRS]
    if few and not any("can't come below" in warning for warning in warnings):
        warnings.append(f"{min(row.n for row in few)} pairs are few; from {FEW_PAIRS} on p can come below 0.05")
    return Compared(
        old.name, new.name, wish.measure, tuple(made), pooled, Verdict.OPEN,
        pooled.p if pooled is not None else made[0].p, None, 0, 0,
        (differences.cost(old.name, flat[0]), differences.cost(new.name, flat[1])),
        tuple(found for row, pair in zip(made, used, strict=True) if (found := differences.flips(row.task, *pair))),
        tuple((row.task, _diverged(pair, wish.measure)) for row, pair in zip(made, used, strict=True)),
        differences.settings(*flat), differences.text(old.name, new.name, *flat), tuple(dict.fromkeys(warnings)),
    )  # fmt: skip


def _whole(old: Arm, new: Arm, task: str, measure: Measure, warnings: list[str]) -> list[tuple[Run, ...]]:
    """The runs of both arms on a task that have a number to give; what is wrong with the others is told."""
    good, notes = sorted_out([*old.on(task), *new.on(task)], measure)
    sides = [tuple(run for run in arm.on(task) if any(run is one for one in good)) for arm in (old, new)]
    for arm, side in zip((old, new), sides, strict=True):
        if not side:
            where = f"{arm.name}{' on ' + task if task else ''}"
            own = [note for note in notes if note.startswith(arm.on(task)[0].name)]
            raise UsageError(f"no run of {where} can be used: {own[0].removesuffix('; left out')}")
    warnings += notes
    return sides


def _task_row(
    task: str, names: tuple[str, str], old: tuple[Run, ...], new: tuple[Run, ...], wish: Wish
) -> tuple[Row, tuple[tuple[Run, ...], tuple[Run, ...]]]:
    items = rows.has_items((*old, *new), wish.measure)
    if wish.over == rows.ITEMS and not items:
        raise UsageError("--over items needs the final score of each item in both arms, which are not known here")
    try:
        if wish.over == rows.ITEMS:
            return rows.over_items(task, old, new, level=wish.level, margin=wish.margin), (old, new)
        sides = paired(old, new, wish.pairing, names, f" on {task}" if task else "")
        if wish.over == "auto" and items and len(sides.old) == len(sides.new) == 1:
            row = rows.over_items(task, sides.old, sides.new, level=wish.level, margin=wish.margin)
            return replace(row, notes=(*sides.notes, *row.notes)), (sides.old, sides.new)
        return rows.over_seeds(task, sides, wish.measure, level=wish.level, margin=wish.margin), (sides.old, sides.new)
    except BadData as error:
        raise UsageError(f"{task + ': ' if task else ''}{error}") from error


def _too_few(row: Row, old: str, new: str) -> str:
    where = f" on {row.task}" if row.task else ""
    return (
        f"{row.n_old} run of {old} against {row.n_new} of {new}{where} differ by {row.effect:+.4g}, but one run says "
        f"nothing of what the next would: it takes 2 in each arm for an interval, and {FEW_PAIRS} pairs for a verdict"
    )


def _pooled(made: Sequence[Row], level: float) -> Pooled | None:
    """The mean of the tasks' effects; None where a task has too few values for a variance."""
    if any(row.result is None for row in made):
        return None
    parts: list[float] = []
    sizes: list[int] = []
    for row in made:
        for group in _groups(row):
            parts.append(variance(group) / len(group))
            sizes.append(len(group))
    effect, error = fmean(row.effect for row in made), math.sqrt(sum(parts)) / len(made)
    freedom = welch_freedom(parts, sizes)
    half = student.critical(level, freedom) * error if error > 0 else 0.0
    p = student.two_sided(effect / error, freedom) if error > 0 else float(effect == 0.0)
    found = Estimate(effect, effect - half, effect + half, sum(sizes), "mean over tasks, t", level)
    return Pooled(found, p, len(made), _more(effect, error, min(row.n for row in made)))


def _more(effect: float, error: float, n: int) -> int | None:
    if effect == 0.0:
        return None
    needed = runs_needed(abs(effect), error * math.sqrt(n), paired=True)
    return None if needed is None or needed > MOST_MORE else max(0, needed - n)


def _groups(row: Row) -> list[list[float]]:
    """The values whose variances make up the effect's: the differences, or both groups."""
    if row.paired:
        return [[_both(value) for value in row.values]]
    return [
        [value.old for value in row.values if value.old is not None],
        [value.new for value in row.values if value.new is not None],
    ]


def _both(value: Value) -> float:
    assert value.old is not None and value.new is not None
    return value.new - value.old


def verdict_of(one: Compared, wish: Wish, *, found: bool) -> Verdict:
    """What is said of two arms, given whether the test that decides has found a difference."""
    effect = one.pooled.effect.value if one.pooled is not None else one.rows[0].effect
    if found and effect != 0.0:
        return Verdict.BETTER if effect * wish.measure.sign > 0 else Verdict.WORSE
    result = one.rows[0].result if len(one.rows) == 1 else None
    if result is not None and result.margin is not None:
        if result.margin.same:
            return Verdict.SAME
        if result.margin.not_worse and wish.measure.sign > 0:
            return Verdict.NOT_WORSE
    return Verdict.OPEN


def _diverged(pair: tuple[tuple[Run, ...], tuple[Run, ...]], measure: Measure) -> float | None:
    found = [[run.curves[name] for run in runs if name in run.curves] for runs in pair for name in [_curve(measure)]]
    if min(map(len, found)) < 2:
        return None
    try:
        return divergence(found[0], found[1])
    except BadData:
        return None


def _curve(measure: Measure) -> str:
    return "val" if measure.summary == "test" else measure.metric
