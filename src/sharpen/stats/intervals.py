"""Confidence intervals the rest is made of: Wilson's for a proportion, and one for the mean of anything bounded.

The latter is the bias-corrected and accelerated bootstrap from ten values on and Student's t below; values that are all
the same leave nothing to resample, and get the interval of what may have been missed. Resamples are drawn from a stream
of their own, so that the same scores always give the same interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import isfinite
from statistics import NormalDist, stdev

from sharpen.stats import student

RESAMPLES = 4000
_SEED = 20_240_607
_ENOUGH_TO_RESAMPLE = 10
_CHUNK = 2_000_000
"""Numbers drawn at once at most, so that memory stays flat however many values there are."""


def quantile(level: float) -> float:
    """The two-sided normal quantile of a confidence level: 1.96 for 0.95."""
    return NormalDist().inv_cdf(0.5 + level / 2)


def is_binary(values: Sequence[float]) -> bool:
    return all(value in (0.0, 1.0) for value in values)


def wilson(successes: float, n: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of a proportion."""
    if n == 0:
        return 0.0, 1.0
    z = quantile(level)
    share, spread = successes / n, z * z / n
    centre = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / n + spread / (4 * n))
    return max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))


def bounded_mean(
    values: Sequence[float], level: float = 0.95, low: float = 0.0, high: float = 1.0
) -> tuple[float, float, str]:
    """An interval for the mean of values in `low`..`high`, and the name of the method. Where the range has no ends, one
    value, or values that are all the same, tell nothing of their spread: the interval has no width then, and says why."""
    n = len(values)
    if n < 2:
        mean = math.fsum(values)
        return (low, high, "the whole range") if isfinite(high - low) else (mean, mean, "one value")
    if min(values) == max(values):
        if not isfinite(high - low):
            return values[0], values[0], "no spread seen"
        # A value never seen in n draws has at most this share, at the given confidence.
        unseen, value = 1.0 - ((1.0 - level) / 2) ** (1.0 / n), values[0]
        return value + unseen * (low - value), value + unseen * (high - value), "rule of the unseen"
    if n < _ENOUGH_TO_RESAMPLE:
        mean, half = math.fsum(values) / n, student.critical(level, n - 1) * stdev(values) / math.sqrt(n)
        return max(low, mean - half), min(high, mean + half), "Student's t"
    below, above = bootstrap_mean(values, level)
    return max(low, below), min(high, above), "BCa bootstrap"


def bootstrap_mean(values: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """The BCa bootstrap interval of a mean. Values that are all equal give an interval of no width."""
    import numpy as np

    data = np.asarray(values, dtype=float)
    n, mean = len(data), float(np.mean(values))
    if n < 2 or np.ptp(data) == 0.0:
        return mean, mean
    generator = np.random.Generator(np.random.PCG64(_SEED))
    rows = max(1, _CHUNK // n)
    sizes = [min(rows, RESAMPLES - start) for start in range(0, RESAMPLES, rows)]
    means = np.concatenate([data[generator.integers(0, n, size=(size, n))].mean(axis=1) for size in sizes])
    normal = NormalDist()
    below = (np.sum(means < mean) + 0.5 * np.sum(means == mean)) / RESAMPLES
    bias = normal.inv_cdf(min(max(float(below), 1 / RESAMPLES), 1 - 1 / RESAMPLES))
    away = data - mean
    acceleration = float(np.sum(away**3) / (6 * np.sum(away**2) ** 1.5))
    tails = []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        shifted = bias + normal.inv_cdf(tail)
        tails.append(normal.cdf(bias + shifted / (1 - acceleration * shifted)))
    low, high = np.quantile(means, tails)
    return float(low), float(high)
