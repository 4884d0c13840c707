"""Student's t for any number of degrees of freedom, and the power of a t test, without scipy.

The distribution function is the regularised incomplete beta function, by its continued fraction; quantiles are found on it
by bisection. The power of a t test needs the noncentral t: it is averaged over the chi distribution of the estimated spread,
which a fixed grid does to more digits than any plan deserves.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

from sharpen.stats.errors import BadData
from sharpen.stats.inverting import check_share, reached

_TINY = 1e-300
_ENOUGH = 1e-15
_STEPS = 400
_GRID = 250
_FINE_GRID = 4000
"""For one or two degrees of freedom, where the density does not fade out towards 0."""


def cdf(t: float, freedom: float) -> float:
    """P(T <= t)."""
    if math.isinf(freedom):
        return NormalDist().cdf(t)
    if t == 0.0:
        return 0.5
    tail = 0.5 * _beta(freedom / 2, 0.5, freedom / (freedom + t * t))
    return 1.0 - tail if t > 0 else tail


def two_sided(t: float, freedom: float) -> float:
    """P(|T| >= |t|)."""
    if math.isinf(freedom):
        return 2.0 * NormalDist().cdf(-abs(t))
    return 1.0 if t == 0.0 else _beta(freedom / 2, 0.5, freedom / (freedom + t * t))


@lru_cache(maxsize=4096)
def quantile(p: float, freedom: float) -> float:
    """The t with P(T <= t) = p."""
    check_share(p)
    if math.isinf(freedom):
        return NormalDist().inv_cdf(p)
    if p < 0.5:
        return -quantile(1.0 - p, freedom)
    return reached(lambda t: cdf(t, freedom), p, 2.0)


def critical(level: float, freedom: float) -> float:
    """The two-sided critical value of a confidence level."""
    if not 0.0 < level < 1.0:
        raise BadData(f"a confidence level must lie between 0 and 1, got {level:g}")
    return quantile(0.5 + level / 2, freedom)


def power(shift: float, freedom: float, alpha: float, *, one_sided: bool = False) -> float:
    """The chance that a t test of level `alpha` rejects when the statistic's mean lies `shift` standard errors from 0."""
    bound = quantile(1.0 - (alpha if one_sided else alpha / 2), freedom)
    normal = NormalDist()
    total = weight = 0.0
    for spread, share in _spreads(freedom):
        above = normal.cdf(shift - bound * spread)
        below = 0.0 if one_sided else normal.cdf(-bound * spread - shift)
        total += share * (above + below)
        weight += share
    return min(1.0, total / weight)


@lru_cache(maxsize=256)
def _spreads(freedom: float) -> tuple[tuple[float, float], ...]:
    """What the estimated spread may come to as a share of the true one, and how likely each is: a grid over the chi
    distribution, divided by the root of its freedom."""
    points = _FINE_GRID if freedom < 3 else _GRID
    wide = 8.0 / math.sqrt(2.0 * freedom)
    low, high = max(0.0, 1.0 - wide), 1.0 + wide + 2.0 / freedom
    grid = [low + (high - low) * (k + 0.5) / points for k in range(points)]
    logs = [(freedom - 1.0) * math.log(x) - 0.5 * freedom * x * x for x in grid]
    top = max(logs)
    return tuple((x, math.exp(value - top)) for x, value in zip(grid, logs, strict=True) if value - top > -60.0)


def _beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b)."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _fraction(a, b, x) / a
    return 1.0 - front * _fraction(b, a, 1.0 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, from the front (Lentz)."""
    c, d = 1.0, 1.0 / _away(1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, _STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1.0 / _away(1.0 + term * d)
            c = _away(1.0 + term / c)
            value *= d * c
        if abs(d * c - 1.0) < _ENOUGH:
            break
    return value


def _away(value: float) -> float:
    """`value`, kept away from 0."""
    return value if abs(value) > _TINY else _TINY
