"""The share of all ways to turn the signs of differences whose sum is at least as far from 0 as the one seen.

Differences of 0 drop out. Up to `_MOST_COUNTED` others, every way is counted: the sums of one half of them are looked
up among the sorted sums of the other. Beyond, the distribution of the sum is built difference by difference on a
grid: multiples of one step (partial credit) lie on it exactly, others are rounded to 1/256 of the sum's spread, with
the bound scaled so that the spread stays what it is. So a p-value never depends on a seed.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sharpen.stats import student

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sharpen.stats.resampling import Floats

_SAME = 1e-12
"""Sums within this share of the largest possible one count as equal: they differ by rounding only."""
_MOST_COUNTED = 28
_MOST_BINOMIAL = 1_000
_MOST_ON_GRID = 4_000
"""Beyond so many differences the sum is normal to more digits than anybody prints."""
_REACH = 8.0
"""How many spreads of the sum the grid holds on either side; `_BEYOND` of the sums at most lie beyond."""
_BEYOND = 1e-14
_CELLS = 4096
_MOST_CELLS = 8192
_FRACTIONS = 12


def two_sided_share(data: Floats) -> float:
    """The two-sided p-value of "symmetric about 0"; 1 where every difference is 0."""
    sizes = np.abs(data[data != 0.0])
    if not len(sizes):
        return 1.0
    bound = abs(float(data.sum())) - _SAME * float(sizes.sum())
    if bound <= 0.0:
        return 1.0
    if sizes.min() == sizes.max() and len(sizes) <= _MOST_BINOMIAL:
        return _equal_sizes(len(sizes), bound / float(sizes[0]))
    if len(sizes) <= _MOST_COUNTED:
        return _counted(sizes, bound)
    if len(sizes) <= _MOST_ON_GRID:
        return _on_grid(sizes, bound)
    return student.two_sided(bound / float(np.sqrt((sizes**2).sum())), math.inf)


def _equal_sizes(n: int, bound: float) -> float:
    """All differences are as large: the binomial distribution. `bound` is how many more rose than fell."""
    excess = math.ceil(bound - 1e-9 * n)
    fewer = (n - excess) // 2
    ways: int = sum(math.comb(n, k) for k in range(fewer + 1))
    return float(min(1.0, 2 * ways / 2**n))


def _counted(sizes: Floats, bound: float) -> float:
    half = len(sizes) // 2
    one, other = _sums(sizes[:half]), np.sort(_sums(sizes[half:]))
    above = len(other) - np.searchsorted(other, bound - one, side="left")
    return min(1.0, 2.0 * float(above.sum()) / 2.0 ** len(sizes))


def _sums(values: Floats) -> Floats:
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums + value, sums - value])
    return sums


def _on_grid(sizes: Floats, bound: float) -> float:
    step = _common_step(sizes)
    if step is None:
        step = float(np.sqrt((sizes**2).sum())) * 2 * _REACH / _CELLS
        places: NDArray[np.int64] = np.rint(sizes / step).astype(np.int64)
        # Rounding changes the spread of the sum a little; the bound moves with it.
        bound *= float(np.sqrt((places.astype(float) ** 2).sum() / (sizes**2).sum()))
    else:
        places = np.rint(sizes / step).astype(np.int64)
        bound = bound / step - 1e-6
    reach = math.ceil(_REACH * float(np.sqrt((places.astype(float) ** 2).sum()))) + int(places.max())
    chances, turned = np.zeros(2 * reach + 1), np.zeros(2 * reach + 1)
    chances[reach] = 1.0
    for place in places[places > 0]:
        turned[:place] = 0.0
        turned[place:] = chances[:-place]
        turned[:-place] += chances[place:]
        turned *= 0.5
        chances, turned = turned, chances
    # Beyond the grid's reach nothing is counted, and no p-value is nought.
    return min(1.0, max(_BEYOND, 2.0 * float(chances[reach + max(0, math.ceil(bound)) :].sum())))


def _common_step(sizes: Floats) -> float | None:
    """The step that all sizes are multiples of, where there is one and the grid can hold it."""
    least = float(sizes.min())
    for parts in range(1, _FRACTIONS + 1):
        counts = sizes * (parts / least)
        if float(np.sqrt((counts**2).sum())) * 2 * _REACH > _MOST_CELLS:
            return None
        if np.allclose(counts, np.rint(counts), rtol=0.0, atol=1e-6):
            return least / parts
    return None
