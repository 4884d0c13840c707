"""Drawing again from what was seen: bootstrap distributions and the intervals made from them.

Every draw comes from a seed the caller gives, in chunks, so that memory stays flat. `percentile` and `bca` take any
distribution of resampled statistics; `studentised` works on means, where each resample tells its own spread.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from sharpen.stats.errors import BadData

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

RESAMPLES = 10_000
_CHUNK = 2_000_000
"""Numbers drawn at once at most."""
_SAME = 1e-9
"""Statistics closer than this share of their range are equal."""
_LEAST_SPREAD = 0.3
"""As a share of the spread of the values. Resamples of few values often draw almost the same one throughout; their own
spread then says nothing, and dividing by it gives intervals thousands wide. Leaving them out is worse: for values that are 0
or 1 the interval then covers 60 % at ten runs, where this way it covers 89. From ten runs on coverage is within three
points of the plain method; at five, for values that crowd at two ends, it is no better than t, and of a sane width."""


def numbers(values: Sequence[float] | Floats, least: int = 1, what: str = "values") -> Floats:
    """The values as an array; a clear complaint where they are too few or not finite."""
    data = np.asarray(values, dtype=np.float64)
    if data.ndim != 1:
        raise BadData(f"expected a row of {what}, got an array of shape {data.shape}")
    if len(data) < least:
        raise BadData(f"{len(data)} {what}; at least {least} are needed")
    if not np.isfinite(data).all():
        place = int(np.flatnonzero(~np.isfinite(data))[0])
        raise BadData(f"number {place + 1} of the {what} is {data[place]}; all must be finite")
    return data


def by_group(data: Floats, groups: Sequence[Hashable]) -> tuple[Floats, Floats, float]:
    """One number for each group, in order of appearance, such that their mean is the mean of all values: the group's
    total, and what its values add to the mean beyond their number; and how far such a number reaches for values up to 1."""
    if len(groups) != len(data):
        raise BadData(f"{len(data)} values, but {len(groups)} names of groups")
    places: dict[Hashable, int] = {}
    which = np.array([places.setdefault(group, len(places)) for group in groups])
    sizes, totals = np.bincount(which).astype(float), np.bincount(which, weights=data)
    mean, each = float(data.mean()), len(places) / len(data)
    return np.asarray(each * totals, dtype=np.float64), mean + each * (totals - sizes * mean), each * float(sizes.max())


def draws(n: int, resamples: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """Blocks of rows of `n` places each, `resamples` rows in all."""
    generator = np.random.Generator(np.random.PCG64(seed))
    rows = max(1, _CHUNK // max(1, n))
    for start in range(0, resamples, rows):
        yield generator.integers(0, n, size=(min(rows, resamples - start), n))


def means(values: Floats, resamples: int = RESAMPLES, seed: int = 0) -> Floats:
    """The means of resamples."""
    return np.concatenate([values[block].mean(axis=1) for block in draws(len(values), resamples, seed)])


def percentile(distribution: Floats, level: float = 0.95) -> tuple[float, float]:
    low, high = np.quantile(distribution, tails(level))
    return float(low), float(high)


def bca(distribution: Floats, estimate: float, left_out: Floats, level: float = 0.95) -> tuple[float, float]:
    """The bias-corrected and accelerated interval. `left_out` are the statistics with each value left out in turn."""
    normal, size = NormalDist(), len(distribution)
    # Sums in another order differ in their last digit; such a tie is one all the same.
    same = _SAME * float(np.ptp(distribution))
    below = (np.sum(distribution < estimate - same) + np.sum(distribution <= estimate + same)) / (2 * size)
    if not 0.0 < below < 1.0:
        return percentile(distribution, level)
    bias = normal.inv_cdf(float(below))
    away = left_out.mean() - left_out
    spread = float(np.sum(away**2))
    acceleration = float(np.sum(away**3)) / (6.0 * spread**1.5) if spread > 0 else 0.0
    moved = []
    for tail in tails(level):
        shifted = bias + normal.inv_cdf(tail)
        moved.append(normal.cdf(bias + shifted / (1 - acceleration * shifted)))
    low, high = np.quantile(distribution, moved)
    return float(low), float(high)


def bca_mean(values: Floats, level: float = 0.95, resamples: int = RESAMPLES, seed: int = 0) -> tuple[float, float]:
    n = len(values)
    left_out = (values.sum() - values) / (n - 1)
    return bca(means(values, resamples, seed), float(values.mean()), left_out, level)


def studentised(values: Floats, level: float = 0.95, resamples: int = RESAMPLES, seed: int = 0) -> tuple[float, float]:
    """The bootstrap-t interval of a mean: how far resampled means lie off in units of their own standard errors."""
    n, centre = len(values), float(values.mean())
    error = float(values.std(ddof=1)) / math.sqrt(n)
    if error == 0.0:
        return centre, centre
    least = _LEAST_SPREAD * error
    ratios = np.concatenate([_ratios(values[block], centre, least) for block in draws(n, resamples, seed)])
    low, high = np.quantile(ratios, tails(level), method="inverted_cdf")
    return centre - float(high) * error, centre - float(low) * error


def tails(level: float) -> tuple[float, float]:
    """The shares between which an interval of this level lies."""
    if not 0.0 < level < 1.0:
        raise BadData(f"a confidence level must lie between 0 and 1, got {level:g}")
    return (1 - level) / 2, (1 + level) / 2


def _ratios(block: Floats, centre: float, least: float) -> Floats:
    """t of each resample, its standard error held above `least`."""
    spread = block.std(axis=1, ddof=1) / np.sqrt(block.shape[1])
    result: Floats = (block.mean(axis=1) - centre) / np.maximum(spread, least)
    return result
