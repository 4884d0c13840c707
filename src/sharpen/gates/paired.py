"""One pass over all items, then the exact sign-flip test: had the two candidates been interchangeable, each item's
difference could as well have had the other sign; how often would the sum then be as large as it is?

For 0/1 scores this is McNemar's exact test. Otherwise the differences are rounded to a grid of 1/4096 and the distribution
of their sum over all sign patterns is computed on that grid, so the test is exact for the rounded differences, needs no
random numbers, and takes milliseconds for a thousand items.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from sharpen.core.errors import UsageError
from sharpen.gates.base import Evidence, Need, Verdict
from sharpen.gates.fixed import mean, one_look

_GRID = 4096


@dataclass(frozen=True, slots=True)
class Paired:
    """Accepts when the one-sided exact sign-flip test over all items has a p-value of at most `alpha`."""

    alpha: float = field(default=0.05, metadata={"description": "largest p-value that is accepted"})

    name = "paired"

    def __post_init__(self) -> None:
        if not 0.0 < self.alpha < 1.0:
            raise UsageError(f"gate paired: alpha must lie between 0 and 1, got {self.alpha}")

    def decide(self, evidence: Evidence) -> Verdict | Need:
        return one_look(evidence, self._judge)

    def _judge(self, new: Sequence[float], old: Sequence[float]) -> Verdict:
        p = sign_flip_p([a - b for a, b in zip(new, old, strict=True)])
        wins = sum(a > b for a, b in zip(new, old, strict=True))
        losses = sum(a < b for a, b in zip(new, old, strict=True))
        reason = f"{wins} items better, {losses} worse of {len(new)}: p = {p:.4f}, alpha = {self.alpha:g}"
        return Verdict(p <= self.alpha, reason, mean(new) - mean(old), evidence=p)


def sign_flip_p(differences: Sequence[float]) -> float:
    """The share of sign patterns under which the sum of the differences is at least what it is. 1 when all are zero."""
    steps = [round(d * _GRID) for d in differences]
    sizes = [abs(step) for step in steps if step]
    if not sizes:
        return 1.0
    unit = math.gcd(*sizes)
    observed = sum(steps) // unit
    if all(size == unit for size in sizes):
        wins = (observed + len(sizes)) // 2
        patterns = sum(math.comb(len(sizes), k) for k in range(wins, len(sizes) + 1))
        return float(patterns / 2 ** len(sizes))
    return _tail([size // unit for size in sizes], observed)


def _tail(sizes: Sequence[int], observed: int) -> float:
    """P(sum of sign * size >= observed) for fair signs. The sum is `total - 2 * (sum of the sizes that turned negative)`,
    whose distribution is built up one size at a time."""
    import numpy as np

    total = sum(sizes)
    weights = np.zeros(total + 1)
    weights[0] = 1.0
    reach = 0
    for size in sizes:
        reach += size
        weights[size : reach + 1] += weights[: reach + 1 - size].copy()
        weights[: reach + 1] *= 0.5
    return float(min(1.0, weights[: (total - observed) // 2 + 1].sum()))
