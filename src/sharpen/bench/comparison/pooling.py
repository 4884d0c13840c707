"""The mean difference over tasks, each counting the same. Variances of the tasks add up, with Welch's degrees of freedom,
and the test is Student's. Where no task has any variance, signs are flipped as on a single task.

With a reference for each task the differences are first put on its scale, where they mean the same on each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from sharpen.bench.comparison.rows import MOST_MORE, Row, Value
from sharpen.stats import exact, student
from sharpen.stats.arms import Margin, alike, margin_of, welch_freedom
from sharpen.stats.means import Estimate
from sharpen.stats.normalise import Reference
from sharpen.stats.power import runs_needed

STUDENT, FLIPS = "Student's t", "sign flips"


@dataclass(frozen=True)
class Pooled:
    """The mean difference over tasks."""

    effect: Estimate
    p: float
    tasks: int
    more: int | None
    """How many more seeds on each task would show an effect of the size seen."""
    margin: Margin | None = None
    normalised: bool = False
    test: str = STUDENT


def pooled(
    made: Sequence[Row], level: float, references: Mapping[str, Reference] | None = None, *, margin: float | None = None,
    lower: bool = False,
) -> Pooled | None:  # fmt: skip
    """The mean of the tasks' effects, on the scales of `references` where they are given; None where a task has too few
    values for a variance. On those scales more is better, whatever the metric."""
    if any(row.result is None for row in made):
        return None
    factors = [1.0 if references is None else references[row.task].factor for row in made]
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
    least = 0.0
    if error == 0.0 or all(_constant(row) for row in made):
        # Few values that happen to agree are no proof, but t divides by their spread of nought; flips only count them.
        test = exact.sign_flip([d * factor for row, factor in zip(made, factors, strict=True) for d in _flipped(row)])
        p, how, least = test.p, FLIPS, test.smallest_p / 2
    else:
        p, how = student.two_sided(effect / error, freedom), STUDENT
    held = margin_of(margin, effect, error, freedom, 1 - level, lower=lower and references is None, least=least)
    more = _more(effect, error, min(row.n for row in made))
    return Pooled(found, p, len(made), more, held, references is not None, how)


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
