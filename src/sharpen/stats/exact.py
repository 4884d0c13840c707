"""Tests that count instead of assuming a distribution: sign flips for pairs, permutations for two groups, McNemar's.

Under "no difference" the sign of each paired difference, or the group of each value, is arbitrary. The p-value is the
share of all such arrangements whose effect is at least as large as the one seen, two-sided. All arrangements are
counted where there are few enough (up to thrice `RESAMPLES`); else as many as that are drawn from the given seed, the
one seen counted among them. `smallest_p` says what a design can reach at best: five pairs can never come below 0.05.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sharpen.stats import sign_flips
from sharpen.stats.resampling import numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sharpen.stats.resampling import Floats

    Places = NDArray[np.int64]

RESAMPLES = 99_999
_CHUNK = 4_000_000
_SAME = 1e-12
"""Values below this share of the largest possible one are 0 but for rounding."""
_ROUNDING = 1e-9
"""Statistics that differ by less than this share are the same."""


@dataclass(frozen=True, slots=True)
class Test:
    """A two-sided p-value, how it was found, and the smallest one the design could have given."""

    p: float
    method: str
    smallest_p: float

    @property
    def can_reach(self) -> bool:
        """Whether the design can come below 0.05 at all."""
        return self.smallest_p < 0.05


def sign_flip(differences: Sequence[float] | Floats) -> Test:
    """Whether paired differences are symmetric about 0."""
    data = numbers(differences, what="differences")
    return Test(sign_flips.two_sided_share(data), "exact sign flips", 2.0 ** (1 - len(data)))


def permutation(
    new: Sequence[float], old: Sequence[float], seed: int = 0, *, resamples: int = RESAMPLES, side: int = 0
) -> Test:
    """Whether two independent groups have the same mean. What is permuted is Welch's t, not the difference itself: groups of
    different size and spread are then held to their level too (Janssen 1997). `side` is 1 where only "the first is larger"
    counts, -1 for the opposite, 0 for both."""
    one, other = numbers(new, what="values of the first group"), numbers(old, what="values of the second group")
    n, m = len(one), len(other)
    pool = np.concatenate([one, other])
    pool = pool - pool.mean()
    arrangements = math.comb(n + m, n)
    # Where the groups are equally large, swapping them gives the same absolute difference.
    least = (2 if n == m and side == 0 else 1) / arrangements
    seen = float(_welch(pool, np.arange(n)[None, :], m)[0])
    if arrangements <= 3 * (resamples + 1):
        places = np.fromiter(
            itertools.chain.from_iterable(itertools.combinations(range(n + m), n)),
            dtype=np.int64,
            count=arrangements * n,
        ).reshape(arrangements, n)
        return Test(float(_as_far(_welch(pool, places, m), seen, side).mean()), "exact permutations of t", least)
    hits = 0
    for order in _blocks(
        n + m, seed, lambda generator, rows: generator.random((rows, n + m)).argpartition(n, axis=1), resamples
    ):
        hits += int(_as_far(_welch(pool, order[:, :n], m), seen, side).sum())
    return Test((hits + 1) / (resamples + 1), f"{resamples:,} permutations of t", least)


def _welch(pool: Floats, places: Places, m: int) -> Floats:
    """Welch's t for each choice of the first group's places; the plain difference where a group is a single value, and an
    infinite t where neither group has any spread. `pool` is centred."""
    n = places.shape[1]
    chosen = pool[places]
    sums, squares = chosen.sum(axis=1), (chosen**2).sum(axis=1)
    total, all_squares = float(pool.sum()), float((pool**2).sum())
    difference: Floats = sums / n - (total - sums) / m
    difference[np.abs(difference) <= _SAME * float(np.abs(pool).max(initial=0.0))] = 0.0
    if min(n, m) < 2:
        return difference
    one = np.maximum(0.0, squares - sums**2 / n) / ((n - 1) * n)
    other = np.maximum(0.0, all_squares - squares - (total - sums) ** 2 / m) / ((m - 1) * m)
    variance = one + other
    variance[variance <= _SAME * all_squares] = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        result: Floats = np.where(difference == 0.0, 0.0, difference / np.sqrt(variance))
    return result


def _as_far(values: Floats, seen: float, side: int) -> NDArray[np.bool_]:
    """Which statistics are at least as far out as the one seen."""
    if side:
        values, seen = side * values, side * seen
    else:
        values, seen = np.abs(values), abs(seen)
    bound = seen - _ROUNDING * abs(seen) if math.isfinite(seen) else seen
    result: NDArray[np.bool_] = values >= bound
    return result


def mcnemar(gained: int, lost: int) -> Test:
    """Pairs of 0 and 1: whether as many were lost as gained, by the exact binomial."""
    n = gained + lost
    if n == 0:
        return Test(1.0, "exact McNemar", 1.0)
    tail = sum(math.comb(n, k) for k in range(min(gained, lost) + 1))
    return Test(float(min(1.0, 2 * tail / 2**n)), "exact McNemar", 2.0 ** (1 - n))


def smallest_p(pairs: int) -> float:
    """The smallest two-sided p-value that so many pairs can give."""
    return 2.0 ** (1 - pairs)


def pairs_needed(alpha: float = 0.05) -> int:
    """How few pairs can come to or below `alpha` at all: 6 for 0.05."""
    return max(1, math.ceil(1 - math.log2(alpha)))


def runs_needed(alpha: float = 0.05) -> int:
    """How few runs in each of two independent arms can come to or below `alpha` at all: 4 for 0.05."""
    n = 1
    while 2 / math.comb(2 * n, n) > alpha:
        n += 1
    return n


def _blocks(
    width: int, seed: int, draw: Callable[[np.random.Generator, int], Places], resamples: int
) -> Iterator[Places]:
    """Random arrangements in blocks of rows, `resamples` in all."""
    generator = np.random.Generator(np.random.PCG64(seed))
    rows = max(1, _CHUNK // width)
    for start in range(0, resamples, rows):
        yield draw(generator, min(rows, resamples - start))
