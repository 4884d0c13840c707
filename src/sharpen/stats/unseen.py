"""Bounds of a mean that allow for values nobody has seen, where all but a few values are the same.

Such values tell little of their spread: of twenty items none of which fell, one in six may fall. The bounds are
Gaffke's (2005): every value gets a random share of the whole (the spacings of uniform draws), and one more share goes
to the end of the range. They hold whatever the values' distribution, as far as anybody has been able to check; they
are Clopper and Pearson's for values at the two ends of the range, and for values that are all the same give `1 -
(alpha / 2) ** (1 / n)` as the largest share of what was not seen. They are wide; where many values differ, `skew` is
used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sharpen.stats.resampling import Floats

_DRAWS = 5_000
_SEED = 20_240_607


def few_differ(data: Floats, fewest: int) -> bool:
    """Whether most values are the same, and fewer than `fewest` are not."""
    most = int(np.unique(data, return_counts=True)[1].max())
    return 2 * most > len(data) and len(data) - most < fewest


def ends(data: Floats, level: float, low: float, high: float) -> tuple[float, float]:
    """The interval of the mean of values in `low`..`high`, two-sided."""
    tail = (1.0 - level) / 2
    if data.min() == data.max():
        share, value = 1.0 - tail ** (1.0 / len(data)), float(data[0])
        return value + share * (low - value), value + share * (high - value)
    return float(np.quantile(_means(data, low), tail)), -float(np.quantile(_means(-data, -high), tail))


def p(data: Floats, low: float, high: float) -> float:
    """The two-sided p-value of "the mean is 0" that goes with the ends."""
    mean = float(data.mean())
    if mean < 0.0:
        return p(-data, -high, -low)
    if data.min() == data.max():
        return min(1.0, 2.0 * (1.0 - mean / (mean - low)) ** len(data))
    return min(1.0, 2.0 * float((_means(data, low) <= 0.0).mean()))


def _means(data: Floats, end: float) -> Floats:
    """Means under random shares, one of which goes to `end`."""
    generator = np.random.Generator(np.random.PCG64(_SEED))
    values, counts = np.unique(data, return_counts=True)
    shares = generator.gamma(np.append(counts, 1.0), size=(_DRAWS, len(counts) + 1))
    result: Floats = shares @ np.append(values, end) / shares.sum(axis=1)
    return result
