"""Confidence intervals the rest is made of: Wilson's for a proportion, and a bootstrap for the mean of anything else.

The bootstrap is the bias-corrected and accelerated one, with a fixed number of resamples drawn from a stream of its own, so
that the same scores always give the same interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

RESAMPLES = 4000
_SEED = 20_240_607


def quantile(level: float) -> float:
    """The two-sided normal quantile of a confidence level: 1.96 for 0.95."""
    return NormalDist().inv_cdf(0.5 + level / 2)


def wilson(successes: float, n: int, level: float) -> tuple[float, float]:
    """Wilson's score interval of a proportion."""
    if n == 0:
        return 0.0, 1.0
    z = quantile(level)
    share, spread = successes / n, z * z / n
    centre = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / n + spread / (4 * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def bootstrap_mean(values: Sequence[float], level: float) -> tuple[float, float]:
    """The BCa bootstrap interval of a mean. Values that are all equal give an interval of no width."""
    import numpy as np

    data = np.asarray(values, dtype=float)
    n, mean = len(data), float(np.mean(values))
    if n < 2 or np.ptp(data) == 0.0:
        return mean, mean
    generator = np.random.Generator(np.random.PCG64(_SEED))
    means = data[generator.integers(0, n, size=(RESAMPLES, n))].mean(axis=1)
    normal = NormalDist()
    below = (np.sum(means < mean) + 0.5 * np.sum(means == mean)) / RESAMPLES
    bias = normal.inv_cdf(min(max(float(below), 1 / RESAMPLES), 1 - 1 / RESAMPLES))
    left_out = (data.sum() - data) / (n - 1)
    away = left_out.mean() - left_out
    acceleration = float(np.sum(away**3) / (6 * np.sum(away**2) ** 1.5))
    tails = []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        shifted = bias + normal.inv_cdf(tail)
        tails.append(normal.cdf(bias + shifted / (1 - acceleration * shifted)))
    low, high = np.quantile(means, tails)
    return float(low), float(high)


def is_binary(values: Sequence[float]) -> bool:
    return all(value in (0.0, 1.0) for value in values)
