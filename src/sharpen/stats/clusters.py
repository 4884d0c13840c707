"""Standard errors where values are not independent: items in groups, episodes in seeds, several samples per item.

`clustered` adds up what values of the same group share (Miller 2024); the unit that was drawn independently is the group, so
the interval uses Student's t with one degree of freedom less than there are groups. `sampled` splits the variance of a mean
over items, each attempted K times, into what lies between items and what lies within, and says what more samples would buy.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from sharpen.stats import student
from sharpen.stats.errors import BadData
from sharpen.stats.means import Estimate
from sharpen.stats.resampling import numbers

_FEW_GROUPS = 30


@dataclass(frozen=True, slots=True)
class Clustered:
    """`naive` is the standard error that takes all values to be independent."""

    estimate: Estimate
    error: float
    naive: float
    groups: int
    warning: str = ""


def clustered(values: Sequence[float], groups: Sequence[Hashable], level: float = 0.95) -> Clustered:
    """The mean with its clustered standard error and interval."""
    if len(values) != len(groups):
        raise BadData(f"{len(values)} values, but {len(groups)} names of groups")
    data = numbers(values, 2)
    n, mean = len(data), float(data.mean())
    sums: dict[Hashable, float] = {}
    for value, group in zip(data, groups, strict=True):
        sums[group] = sums.get(group, 0.0) + float(value) - mean
    if len(sums) < 2:
        raise BadData("all values are of one group; a standard error needs at least two groups")
    error = math.sqrt(math.fsum(total * total for total in sums.values())) / n
    naive = float(data.std(ddof=1)) / math.sqrt(n)
    half = student.critical(level, len(sums) - 1) * error
    warning = ""
    if len(sums) < _FEW_GROUPS:
        warning = (
            f"{len(sums)} groups are few: clustered errors come out too small by some per cent below {_FEW_GROUPS}"
        )
    estimate = Estimate(mean, mean - half, mean + half, n, "clustered, t", level)
    return Clustered(estimate, error, naive, len(sums), warning)


@dataclass(frozen=True, slots=True)
class Sampled:
    """The variance of a mean over items: `between` items, and `within` an item from sample to sample."""

    mean: float
    error: float
    between: float
    within: float
    items: int

    def error_with(self, samples: int) -> float:
        """The standard error if every item were attempted so often."""
        if samples < 1:
            raise BadData(f"every item needs at least 1 sample, got {samples}")
        return math.sqrt(max(0.0, self.between + self.within / samples) / self.items)


def sampled(attempts: Sequence[Sequence[float]]) -> Sampled:
    """Items attempted K times each (K may differ; items with one attempt tell nothing of the variance within)."""
    if len(attempts) < 2:
        raise BadData(f"{len(attempts)} items; at least 2 are needed")
    rows = [numbers(row, 1, f"samples of item {place}") for place, row in enumerate(attempts, start=1)]
    means = numbers([float(row.mean()) for row in rows])
    repeated = [row for row in rows if len(row) > 1]
    freedom = sum(len(row) - 1 for row in repeated)
    within = sum(float(((row - row.mean()) ** 2).sum()) for row in repeated) / freedom if freedom else 0.0
    spread = float(means.var(ddof=1))
    share = sum(1 / len(row) for row in rows) / len(rows)
    between = max(0.0, spread - within * share)
    return Sampled(float(means.mean()), math.sqrt(spread / len(rows)), between, within, len(rows))
