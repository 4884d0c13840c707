"""The chi-squared distribution, for limits on a spread that was estimated from few runs."""

from __future__ import annotations

import math

from sharpen.stats.inverting import check_share, reached

_STEPS = 1000
_ENOUGH = 1e-15


def cdf(x: float, freedom: float) -> float:
    """P(X <= x): the regularised lower incomplete gamma function, by its series or its continued fraction."""
    a, half = freedom / 2, x / 2
    if half <= 0.0:
        return 0.0
    front = math.exp(a * math.log(half) - half - math.lgamma(a))
    if half < a + 1:
        term = total = 1 / a
        for k in range(1, _STEPS):
            term *= half / (a + k)
            total += term
            if term < _ENOUGH * total:
                break
        return front * total
    b = half + 1 - a
    c, d = 1e300, 1 / b
    value = d
    for k in range(1, _STEPS):
        step = -k * (k - a)
        b += 2
        d = 1 / (step * d + b)
        c = b + step / c
        value *= d * c
        if abs(d * c - 1) < _ENOUGH:
            break
    return 1 - front * value


def quantile(p: float, freedom: float) -> float:
    """The x with P(X <= x) = p."""
    check_share(p)
    return reached(lambda x: cdf(x, freedom), p, max(1.0, freedom))
