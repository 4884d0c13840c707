"""The mean difference over tasks, each counting the same.

Runs of one seed on several tasks are not independent of each other, so a seed counts once: what it adds to the mean
over all tasks is one number, and these numbers are what is tested, by the same tests as on a single task. Where no
seed ran on more than one task (and for items, which belong to their task), variances of the tasks add up, with
Welch's degrees of freedom, and the test is Student's; where no task has any variance, signs are flipped.

With a reference for each task the differences are first put on its scale, where they mean the same on each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, variance
from typing import TYPE_CHECKING

import numpy as np

from sharpen.bench.comparison.rows import MOST_MORE, SEEDS, Row, Value
from sharpen.stats import arms, exact, student
from sharpen.stats.arms import Margin, alike, margin_of, welch_freedom
from sharpen.stats.means import Estimate
from sharpen.stats.normalise import Reference
from sharpen.stats.paired import judge
from sharpen.stats.power import runs_needed

if TYPE_CHECKING:
    from sharpen.stats.resampling import Floats

STUDENT, FLIPS, BY_SEED = "Student's t", "sign flips", "by seed"


@dataclass(frozen=True)
class Pooled:
    """The mean difference over tasks. `seeds` is how many seeds were counted, where they run on several tasks: pairs, or
    old and new; empty where values of different tasks are independent."""

    effect: Estimate
    p: float
    tasks: int
    more: int | None
    """How many more seeds on each task would show an effect of the size seen."""
    margin: Margin | None = None
    normalised: bool = False
    test: str = STUDENT
    seeds: tuple[int, ...] = ()
    smallest_p: float = 0.0
    method: str = STUDENT


@dataclass(frozen=True)
class _Tested:
    effect: Estimate
    error: float
    freedom: float
    p: float
    how: str
    smallest_p: float
    least: float
    """The smallest one-sided p of a margin."""
    seeds: tuple[int, ...] = ()


def pooled(
    made: Sequence[Row], level: float, references: Mapping[str, Reference] | None = None, *, margin: float | None = None,
    lower: bool = False, side: int = 0,
) -> Pooled | None:  # fmt: skip
    """The mean of the tasks' effects, on the scales of `references` where they are given; None where a task has too few
    values for a variance. On those scales more is better, whatever the metric."""
    if any(row.result is None for row in made):
        return None
    factors = [1.0 if references is None else references[row.task].factor for row in made]
    found = (_by_seed if share_seeds(made) else _independent)(made, factors, level)
    if found is None:
        return None
    effect = found.effect.value
    held = margin_of(
        margin, effect, found.error, found.freedom, 1 - level, lower=lower and references is None, least=found.least
    )
    n = min(found.seeds) if found.seeds else min(row.n for row in made)
    p = arms.one_sided(found.p, effect, side) if side else found.p
    return Pooled(
        found.effect, p, len(made), _more(effect, found.error, n), held, references is not None,
        BY_SEED if found.seeds else found.how, found.seeds, found.smallest_p, found.how,
    )  # fmt: skip


def share_seeds(made: Sequence[Row]) -> bool:
    """Whether a seed ran on more than one task."""
    seen: set[str] = set()
    for row in made:
        own = {value.group for value in row.values if value.group is not None} if row.over == SEEDS else set()
        if seen & own:
            return True
        seen |= own
    return False


def _by_seed(made: Sequence[Row], factors: Sequence[float], level: float) -> _Tested | None:
    """Seeds that ran on several tasks count once. Where some tasks are paired and others not, none is taken as paired."""
    if all(row.paired for row in made):
        totals, values = _seed_values(made, factors, _both)
        if len(values) < 2:
            return None
        found = judge(totals, values, level, math.inf)
        error = float(values.std(ddof=1)) / math.sqrt(len(values))
        effect = Estimate(float(totals.mean()), found.low, found.high, len(values), found.method, level)
        least = exact.smallest_p(len(values))
        held = least / 2 if alike([values], float(np.abs(values).max())) else 0.0
        return _Tested(effect, error, len(values) - 1, found.p, found.method, least, held, (len(values),))
    old, new = (_seed_values(made, factors, which)[1] for which in (lambda v: v.old, lambda v: v.new))
    if min(len(old), len(new)) < 2:
        return None
    both = arms.unpaired(new.tolist(), old.tolist(), level=level)
    parts = [float(side.var(ddof=1)) / len(side) for side in (new, old)]
    error, freedom = math.sqrt(sum(parts)), welch_freedom(parts, (len(new), len(old)))
    least = both.test.smallest_p
    held = least / 2 if error == 0.0 else 0.0
    return _Tested(both.effect, error, freedom, both.test.p, both.test.method, least, held, (len(old), len(new)))


def _seed_values(
    made: Sequence[Row], factors: Sequence[float], which: Callable[[Value], float | None]
) -> tuple[Floats, Floats]:
    """One number for each seed whose mean is the mean over tasks: its total, and the same with the task means taken out and
    the overall one put in, whose spread is that of the mean. Where there is a single seed, its repetitions are counted."""
    several = len({value.group for row in made for value in row.values}) > 1
    totals: dict[str, float] = {}
    away: dict[str, float] = {}
    overall = 0.0
    for row, factor in zip(made, factors, strict=True):
        own = [
            ((value.group if several else value.name) or f"{row.task}: {value.name}", factor * number)
            for value in row.values
            if (number := which(value)) is not None
        ]
        mean = fmean(number for _, number in own)
        overall += mean / len(made)
        for seed, number in own:
            share = 1 / (len(made) * len(own))
            totals[seed] = totals.get(seed, 0.0) + share * number
            away[seed] = away.get(seed, 0.0) + share * (number - mean)
    count = len(totals)
    return (
        np.array([count * total for total in totals.values()]),
        np.array([overall + count * one for one in away.values()]),
    )


def _independent(made: Sequence[Row], factors: Sequence[float], level: float) -> _Tested:
    """Values of different tasks have nothing to do with each other."""
    parts: list[float] = []
    sizes: list[int] = []
    for row, factor in zip(made, factors, strict=True):
        for group in _groups(row):
            parts.append(factor**2 * variance(group) / len(group))
            sizes.append(len(group))
    effect = fmean(row.effect * factor for row, factor in zip(made, factors, strict=True))
    error, freedom = math.sqrt(sum(parts)) / len(made), welch_freedom(parts, sizes)
    half = student.critical(level, freedom) * error if error > 0 else 0.0
    found = Estimate(effect, effect - half, effect + half, sum(sizes), "mean over tasks, t", level)
    if error == 0.0 or all(_constant(row) for row in made):
        # Few values that happen to agree are no proof, but t divides by their spread of nought; flips only count them.
        test = exact.sign_flip([d * factor for row, factor in zip(made, factors, strict=True) for d in _flipped(row)])
        return _Tested(found, error, freedom, test.p, FLIPS, test.smallest_p, test.smallest_p / 2)
    return _Tested(found, error, freedom, student.two_sided(effect / error, freedom), STUDENT, 0.0, 0.0)


def _constant(row: Row) -> bool:
    """Whether the values that make up a task's variance are all alike, but for rounding."""
    sizes = [abs(one) for value in row.values for one in (value.old, value.new) if one is not None]
    return alike(_groups(row), max(sizes))


def _flipped(row: Row) -> list[float]:
    """Differences that add up to the task's effect. Independent runs are paired as they come: whose signs are flipped then
    are some of the permutations of the arms."""
    groups = _groups(row)
    found = groups[0] if row.paired else [new - old for old, new in zip(*groups, strict=False)]
    return [one / len(found) for one in found]


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
