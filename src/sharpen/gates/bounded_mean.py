"""The test behind every proof: is the mean of bounded values above zero, whatever their distribution?

One imaginary value, the worst there can be, joins the data, and all values get random weights that sum to one (Gaffke's
test, a Bayesian bootstrap with one bad observation). The p-value is the probability that the weighted mean is zero or less.
For values that are -1, 0 or 1 this is the exact sign test. For graded values it does not rest on symmetry, as sign flips do,
nor on large numbers, as t tests do: many small gains prove nothing while one large loss could still be out there.

The weights are independent exponential variables divided by their sum, so the sign of the weighted mean is that of a linear
combination of exponentials, whose distribution function is computed by Imhof's integral.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

_HALVINGS = 18
_MOST_DISTINCT, _GRID = 64, 512
"""More distinct values than this are rounded down, to so many parts of the bound: a little less is claimed, much faster."""
_EXACT = 500
"""So many coins are counted with whole numbers; more with logarithms."""
_FAR = 6.0
"""Standard deviations beyond which a bound on the probability takes the place of the integral."""


def p_value(values: Sequence[float], bound: float = 1.0) -> float:
    """The p-value of "the mean is at most zero" for independent values of at least `-bound`."""
    if is_unit(values, bound):
        wins, losses = sum(value > 0.0 for value in values), sum(value < 0.0 for value in values)
        return binomial_tail(wins + losses, wins)
    return _probability_below(_with_worst(values, bound))


def is_unit(values: Sequence[float], bound: float = 1.0) -> bool:
    """Whether every value is zero or as large as can be, so that the test is the exact sign test."""
    return all(value == 0.0 or abs(value) == bound for value in values)


def interval(values: Sequence[float], level: float, bound: float = 1.0) -> tuple[float, float]:
    """Bounds for the mean of values in `-bound`..`bound`, each missed with probability at most `level`. The lower one is
    above zero exactly when `p_value` is below `level`."""
    if level <= 0.0 or not values:
        return -bound, bound
    mirrored = [-value for value in values]
    return _lower_end(values, level, bound), -_lower_end(mirrored, level, bound)


def _lower_end(values: Sequence[float], level: float, bound: float) -> float:
    counts = _with_worst(values, bound)
    low, high = -bound, bound
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _probability_below(Counter({value - middle: count for value, count in counts.items()})) <= level:
            low = middle
        else:
            high = middle
    return low


def _with_worst(values: Sequence[float], bound: float) -> Counter[float]:
    """How often each value occurs, the imaginary one included."""
    counts = Counter(values)
    if len(counts) > _MOST_DISTINCT:
        counts = Counter(math.floor(value / bound * _GRID) / _GRID * bound for value in values)
    counts[-bound] += 1
    return counts


def binomial_tail(trials: int, wins: int) -> float:
    """The probability that so many fair coins show at least `wins` heads."""
    return min(1.0, sum(fair_coins(trials)[wins:])) if wins > 0 else 1.0


@lru_cache(maxsize=512)
def fair_coins(trials: int) -> tuple[float, ...]:
    """By number of heads, its probability with so many fair coins."""
    if trials <= _EXACT:
        return tuple(math.comb(trials, heads) / 2**trials for heads in range(trials + 1))
    whole = math.lgamma(trials + 1) - trials * math.log(2.0)
    return tuple(
        math.exp(whole - math.lgamma(heads + 1) - math.lgamma(trials - heads + 1)) for heads in range(trials + 1)
    )


def _probability_below(counts: Counter[float]) -> float:
    """The probability that the sum of value * exponential variable, over all values with their counts, is zero or less."""
    positive = any(value > 0.0 for value in counts)
    if not positive or not any(value < 0.0 for value in counts):
        return 0.0 if positive else 1.0
    total = sum(value * count for value, count in counts.items())
    spread = math.sqrt(sum(value * value * count for value, count in counts.items()))
    if total > _FAR * spread:
        return _chernoff(counts)
    if total < -_FAR * spread:
        return 1.0
    import numpy as np

    scale = max(abs(value) for value in counts)
    values = np.array(list(counts), dtype=float) / scale
    weights = np.array(list(counts.values()), dtype=float)
    points, width = _grid()
    products = np.outer(values, points)
    angle = weights @ np.arctan(products)
    decay = weights @ np.log1p(products * products) / 2.0
    beneath = float(points[0]) * total / scale  # the part of the integral below the first point
    above = 0.5 + (float((np.sin(angle) * np.exp(-decay)).sum()) * width + beneath) / math.pi
    return min(1.0, max(0.0, 1.0 - above))


@lru_cache(maxsize=1)
def _grid() -> tuple[Any, float]:
    """Points of Imhof's integral, evenly spaced in their logarithm, and that space."""
    import numpy as np

    exponents = np.linspace(-13.0, 7.0, 401)
    return np.exp(exponents), float(exponents[1] - exponents[0])


def _chernoff(counts: Counter[float]) -> float:
    """An upper bound on the probability of zero or less, for sums that are almost surely positive."""
    worst = -min(counts)
    best = 1.0
    for share in (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9):
        stake = share / worst
        best = min(best, math.exp(-sum(count * math.log1p(stake * value) for value, count in counts.items())))
    return best
