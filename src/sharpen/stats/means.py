"""An interval for a mean of few or many values, by a named method, and the method to use when none is named.

`t` is Student's. `percentile` and `bca` are plain bootstraps: for single means of few runs both are too narrow (85 to 90 %
instead of 95 at n = 5 to 10) and they are here for those who must match an earlier analysis. `studentised` (bootstrap-t)
covers what it says from n = 5 on for normal data and holds up best for skewed ones (88 to 92 % where t has 84 to 88);
`auto` takes it from there on, and t below. `benchmarks/coverage.py` has the figures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sharpen.stats import resampling, student
from sharpen.stats.errors import BadData

METHODS = ("auto", "t", "percentile", "bca", "studentised")
_ENOUGH_TO_STUDENTISE = 5


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its interval, from `n` numbers, by `method`."""

    value: float
    low: float
    high: float
    n: int
    method: str
    level: float = 0.95

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2


def interval(
    values: Sequence[float],
    level: float = 0.95,
    method: str = "auto",
    *,
    resamples: int = resampling.RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """The mean of `values` with its interval."""
    if method not in METHODS:
        raise BadData(f"no method {method!r}; there are {', '.join(METHODS)}")
    if method == "auto":
        method = "studentised" if len(values) >= _ENOUGH_TO_STUDENTISE else "t"
    if method == "t":
        return student_interval(values, level)
    data = resampling.numbers(values, least=2)
    mean, n = float(data.mean()), len(data)
    if method == "percentile":
        low, high = resampling.percentile(resampling.means(data, resamples, seed), level)
    elif method == "bca":
        low, high = resampling.bca_mean(data, level, resamples, seed)
    else:
        low, high = resampling.studentised(data, level, resamples, seed)
    return Estimate(mean, low, high, n, method, level)


def student_interval(values: Sequence[float], level: float = 0.95) -> Estimate:
    """Student's interval of a mean."""
    data = resampling.numbers(values, least=2)
    n = len(data)
    mean, error = float(data.mean()), float(data.std(ddof=1)) / math.sqrt(n)
    half = student.critical(level, n - 1) * error
    return Estimate(mean, mean - half, mean + half, n, "t", level)
