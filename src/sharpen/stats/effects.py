"""How large a difference is, in units that can be set beside others: standardised differences and shares of wins.

`cohen_d` divides by the pooled spread of the two groups, `hedges_g` corrects it for few values, `d_z` divides the mean
paired difference by the spread of the differences (and is not comparable with d). `win_share` is the probability that a
value of the first group beats one of the second, ties as half; `cliffs_delta` is the same on -1..1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sharpen.stats.resampling import numbers


def cohen_d(new: Sequence[float], old: Sequence[float]) -> float | None:
    """None where there is no spread to measure by."""
    one, other = numbers(new, 2), numbers(old, 2)
    n, m = len(one), len(other)
    pooled = math.sqrt(((n - 1) * one.var(ddof=1) + (m - 1) * other.var(ddof=1)) / (n + m - 2))
    return float(one.mean() - other.mean()) / pooled if pooled > 0 else None


def hedges_g(new: Sequence[float], old: Sequence[float]) -> float | None:
    d = cohen_d(new, old)
    return None if d is None else d * (1 - 3 / (4 * (len(new) + len(old) - 2) - 1))


def d_z(differences: Sequence[float]) -> float | None:
    data = numbers(differences, 2)
    spread = float(data.std(ddof=1))
    return float(data.mean()) / spread if spread > 0 else None


def win_share(new: Sequence[float], old: Sequence[float]) -> float:
    """P(new > old) + P(new = old) / 2, over all combinations."""
    one, other = numbers(new), np.sort(numbers(old))
    below = np.searchsorted(other, one, side="left")
    upto = np.searchsorted(other, one, side="right")
    return float((below + upto).sum()) / (2 * len(one) * len(other))


def cliffs_delta(new: Sequence[float], old: Sequence[float]) -> float:
    return 2 * win_share(new, old) - 1


def correlation(one: Sequence[float], other: Sequence[float]) -> float | None:
    """How pairs go together; None where one side does not vary."""
    first, second = numbers(one, 2), numbers(other, 2)
    a, b = first - first.mean(), second - second.mean()
    scale = math.sqrt(float((a * a).sum()) * float((b * b).sum()))
    return float((a * b).sum()) / scale if scale > 0 else None
