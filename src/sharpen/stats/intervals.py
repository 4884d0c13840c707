"""Confidence intervals the rest is made of: Wilson's for a proportion, and one for the mean of anything else.

The latter is Student's t, drawn out where the values are skewed (`skew`), and kept to their range. Where all but a
few values are the same, their spread says little, and the interval allows for values that were not seen (`unseen`).
The same scores always give the same interval, whoever asks.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from math import isfinite
from statistics import NormalDist
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sharpen.stats.resampling import Floats

_FEW = 6
"""Fewer values than this that differ from the most common one tell too little of the spread."""


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
    values: Sequence[float],
    level: float = 0.95,
    low: float = 0.0,
    high: float = 1.0,
    groups: Sequence[Hashable] | None = None,
) -> tuple[float, float, str]:
    """An interval for the mean of values in `low`..`high`, and the name of the method. Where the range has no ends, one
    value, or values that are all the same, tell nothing of their spread: the interval has no width then, and says why.
    `groups` names the group of each value, where values belong together."""
    n = len(values)
    bounded = isfinite(high - low)
    if n < 2:
        mean = math.fsum(values)
        return (low, high, "the whole range") if bounded else (mean, mean, "one value")
    if groups is None and min(values) == max(values) and not bounded:
        return values[0], values[0], "no spread seen"
    if groups is None and low == 0.0 and high == 1.0 and is_binary(values):
        return *wilson(sum(values), n, level), "Wilson"
    from sharpen.stats.resampling import numbers  # with numpy, which a job may never need

    data = numbers(values)
    if groups is not None:
        return _by_group(data, groups, level, low, high)
    return _ends(data, level, (low, high), (low, high))


def _by_group(
    data: Floats, groups: Sequence[Hashable], level: float, low: float, high: float
) -> tuple[float, float, str]:
    from sharpen.stats.resampling import by_group

    _, values, widest = by_group(data, groups)
    if len(values) < 2:
        return (low, high, "the whole range") if isfinite(high - low) else (-math.inf, math.inf, "one group")
    mean = float(data.mean())
    ends = mean + widest * (low - mean), mean + widest * (high - mean)
    below, above, method = _ends(values, level, ends, (low, high))
    return below, above, f"{method}, by group"


def _ends(
    data: Floats, level: float, reach: tuple[float, float], within: tuple[float, float]
) -> tuple[float, float, str]:
    """`reach` is where the values lie, `within` where their mean does."""
    from sharpen.stats import skew, unseen

    if isfinite(reach[1] - reach[0]) and unseen.few_differ(data, _FEW):
        (below, above), method = unseen.ends(data, level, *reach), "bounds for the unseen"
    else:
        (below, above), method = skew.moments(data).ends(level), "skew-corrected t"
    return max(within[0], below), min(within[1], above), method
