"""What choosing the best of several noisy scores does to it: the winner's luck, and the score without it.

Of k candidates that are all equally good, the best-looking one seems better by the expected maximum of k draws: 1.54
standard errors for ten. `luck` gives that; `corrected` takes from a chosen score what choosing is likely to have added,
by drawing the items again: in each resample the one that looks best is chosen anew, and its score on the items that
were not drawn tells what it is worth. The mean of those is what the chosen one is worth without its luck; where some are
truly better, it errs a little to the low side, since a resample shows them less clearly than all items do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from sharpen.stats.errors import BadData

_GRID = 4000
_REACH = 9.0


@lru_cache(maxsize=256)
def expected_maximum(k: int) -> float:
    """The expected largest of k independent standard normal draws: 1.16 for 5, 1.54 for 10, 1.87 for 20."""
    if k < 1:
        raise BadData(f"the largest of {k} draws is nothing; give at least 1")
    normal = NormalDist()
    width = 2 * _REACH / _GRID
    points = [-_REACH + (place + 0.5) * width for place in range(_GRID)]
    return math.fsum(x * k * normal.pdf(x) * normal.cdf(x) ** (k - 1) for x in points) * width


def luck(k: int, error: float) -> float:
    """How much better the best of k equally good candidates looks, each measured with this standard error."""
    return expected_maximum(k) * error


@dataclass(frozen=True, slots=True)
class Corrected:
    """The score of the chosen one as seen, and without what choosing is likely to have added."""

    seen: float
    value: float
    candidates: int

    @property
    def luck(self) -> float:
        return self.seen - self.value


def corrected(scores: Sequence[Sequence[float]], *, resamples: int = 2_000, seed: int = 0) -> Corrected:
    """Candidates by items: the best mean, corrected. All candidates were measured on the same items."""
    if len({np.shape(row) for row in scores}) != 1 or np.ndim(scores[0]) != 1 or len(scores[0]) < 2:
        raise BadData("scores must be a table of candidates by items, with at least two items, the same for all")
    table = np.asarray(scores, dtype=np.float64)
    if not np.isfinite(table).all():
        raise BadData("every candidate needs a finite score on every item")
    candidates, items = table.shape
    means = table.mean(axis=1)
    generator = np.random.Generator(np.random.PCG64(seed))
    worth = []
    for _ in range(resamples):
        drawn = np.bincount(generator.integers(0, items, size=items), minlength=items)
        left = drawn == 0
        if left.any():
            worth.append(table[(table @ drawn).argmax(), left].mean())
    seen = float(means.max())
    if candidates == 1 or not worth:
        return Corrected(seen, seen, candidates)
    return Corrected(seen, min(seen, float(np.mean(worth))), candidates)
