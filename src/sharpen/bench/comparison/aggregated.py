"""Every arm of a comparison in a few numbers over all its runs and tasks: mean, median, interquartile mean, optimality
gap; how likely a run of one beats a run of the other; and, of more than two arms, in which order they stand.

Unlike the rows, which pair seeds, these take all runs an arm has on the tasks that all arms ran. Intervals are those of the
stratified bootstrap, but for the mean on one task. The gap is the shortfall from 1, so it is told only of scores that are
normalised, or lie in 0..1 and are better the higher they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sharpen.bench.comparison import rows
from sharpen.bench.comparison.assembly import Wish, known_references
from sharpen.bench.comparison.matchups import able
from sharpen.bench.comparison.measure import numbers, sorted_out
from sharpen.bench.evidence.nouns import TEST, Arm
from sharpen.stats.aggregates import Scores, aggregate
from sharpen.stats.means import Estimate, interval
from sharpen.stats.normalise import Reference
from sharpen.stats.profiles import improvement, ranks

LEAST_ON_ONE_TASK = 3
LEAST_ON_EACH = 2
_RESAMPLES = 10_000

Table = dict[str, dict[str, list[float]]]
"""Scores by arm and task."""


@dataclass(frozen=True)
class ArmAggregate:
    """An arm's statistics by name: `mean`, `median`, `iqm`, and `gap` where scores have a goal."""

    arm: str
    statistics: Mapping[str, Estimate]


@dataclass(frozen=True, slots=True)
class Win:
    """The probability that a run of the new arm is better than one of the old, ties as half, averaged over tasks."""

    old: str
    new: str
    probability: Estimate


@dataclass(frozen=True)
class Aggregated:
    """`ranks` are, for each arm, how often it stands first, second, ...; empty for two arms. `runs` are by arm."""

    tasks: tuple[str, ...]
    runs: Mapping[str, int]
    raw: tuple[ArmAggregate, ...]
    normalised: tuple[ArmAggregate, ...]
    scale: float
    wins: tuple[Win, ...]
    ranks: Mapping[str, tuple[float, ...]]


def aggregated(pairs: Sequence[tuple[Arm, Arm]], wish: Wish) -> Aggregated | None:
    """The aggregates of all arms; None where there are too few runs, or what is compared are items or steps to a value,
    which some runs never reach."""
    if wish.over == rows.ITEMS or wish.measure.summary == "steps_to":
        return None
    met, _ = able(pairs, wish.measure)
    arms = list({arm.name: arm for pair in met for arm in pair}.values())
    scores = _scores(arms, wish)
    tasks = tuple(next(iter(scores.values())))
    least = min((len(values) for by_task in scores.values() for values in by_task.values()), default=0)
    if least < (LEAST_ON_ONE_TASK if len(tasks) == 1 else LEAST_ON_EACH):
        return None
    known, _ = known_references(met, wish)
    scaled: tuple[ArmAggregate, ...] = ()
    scale = next((known[task].scale for task in tasks if task in known), 1.0)
    if all(task in known for task in tasks):
        scaled = _aggregates(_normalised(scores, known, scale), wish, has_goal=True, scale=scale)
    values = [value for by_task in scores.values() for row in by_task.values() for value in row]
    shares = wish.measure.sign > 0 and wish.measure.summary != "slope" and all(0.0 <= value <= 1.0 for value in values)
    raw = _aggregates(scores, wish, has_goal=shares)
    upright = {name: _upright(by_task, name, wish.measure.sign) for name, by_task in scores.items()}
    wins = tuple(
        Win(
            old.name,
            new.name,
            improvement(upright[new.name], upright[old.name], level=wish.level, resamples=_RESAMPLES),
        )
        for old, new in met
    )
    standing = ranks(list(upright.values())) if len(arms) > 2 else {}
    runs = {name: sum(map(len, by_task.values())) for name, by_task in scores.items()}
    return Aggregated(tasks, runs, raw, scaled, scale, wins, standing)


def _scores(arms: Sequence[Arm], wish: Wish) -> Table:
    """The number of every run that has one, on the tasks all arms have such runs on."""
    made: Table = {arm.name: {} for arm in arms}
    for task in arms[0].tasks:
        good, _ = sorted_out([run for arm in arms for run in arm.on(task)], wish.measure)
        kept = {id(run) for run in good}
        sides = [[run for run in arm.on(task) if id(run) in kept] for arm in arms]
        if not all(sides):
            continue
        found, _ = numbers([run for side in sides for run in side], wish.measure)
        for arm, side in zip(arms, sides, strict=True):
            made[arm.name][task], found = found[: len(side)], found[len(side) :]
    return made


def _normalised(scores: Table, known: Mapping[str, Reference], scale: float) -> Table:
    """Scores whose goal is 1, whatever the scale they are shown on."""
    return {
        arm: {task: [value / scale for value in known[task].of_all(row)] for task, row in by_task.items()}
        for arm, by_task in scores.items()
    }


def _aggregates(scores: Table, wish: Wish, *, has_goal: bool, scale: float = 1.0) -> tuple[ArmAggregate, ...]:
    made = []
    for name, by_task in scores.items():
        middle = "run_median" if len(by_task) == 1 else "median"
        wanted = ("mean", middle, "iqm", *(("gap",) if has_goal else ()))
        found = aggregate(Scores(by_task, name), wanted, level=wish.level, resamples=_RESAMPLES)
        if len(by_task) == 1:
            # The bootstrap of the others is too narrow for the mean of a few runs, and a better interval is at hand.
            values = next(iter(by_task.values()))
            shares = wish.measure.summary == TEST and scale == 1.0 and all(0.0 <= value <= 1.0 for value in values)
            found["mean"] = rows.share_mean(values, wish.level) if shares else interval(values, wish.level)
        told = {("median" if key == middle else key): _times(one, scale) for key, one in found.items()}
        made.append(ArmAggregate(name, told))
    return tuple(made)


def _times(one: Estimate, scale: float) -> Estimate:
    return Estimate(one.value * scale, one.low * scale, one.high * scale, one.n, one.method, one.level)


def _upright(by_task: Mapping[str, Sequence[float]], name: str, sign: float) -> Scores:
    """Scores that are better the higher they are."""
    return Scores({task: [sign * value for value in row] for task, row in by_task.items()}, name)


def mean_rank(shares: Sequence[float]) -> float:
    """The place an arm takes on average."""
    return sum(place * share for place, share in enumerate(shares, start=1))
