"""The difference between two candidates on the same items, with its interval.

Where all scores are 0 or 1, the interval is Newcombe's: Wilson's intervals of the two proportions, squared and added with a
correction for how the pairs go together. It behaves well with few items and near 0 and 1, where the usual formula gives
nonsense. Other scores take the interval of the mean of their differences.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from sharpen.stats.intervals import bounded_mean, is_binary, wilson


@dataclass(frozen=True, slots=True)
class Interval:
    mean: float
    low: float
    high: float
    n: int
    method: str


def paired_difference(
    new: Sequence[float], old: Sequence[float], level: float = 0.95, *, span: float = 1.0
) -> Interval:
    """The mean of `new - old` with its interval. Scores differ by at most `span`, and so do the ends of the interval."""
    if len(new) != len(old):
        raise ValueError(f"pairs need both scores: {len(new)} new, {len(old)} old")
    n = len(new)
    if n == 0:
        return Interval(0.0, -span, span, 0, "no pairs") if isfinite(span) else Interval(0.0, 0.0, 0.0, 0, "no pairs")
    differences = [a - b for a, b in zip(new, old, strict=True)]
    mean = math.fsum(differences) / n
    if span == 1.0 and is_binary(new) and is_binary(old):
        low, high = newcombe(new, old, level)
        return Interval(mean, max(-1.0, low), min(1.0, high), n, "Newcombe, paired")
    low, high, method = bounded_mean(differences, level, -span, span)
    return Interval(mean, low, high, n, f"{method} of differences")


def newcombe(new: Sequence[float], old: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """Newcombe's interval for the difference of two paired proportions (method 10 of his paper of 1998)."""
    n = len(new)
    both = sum(a == 1.0 and b == 1.0 for a, b in zip(new, old, strict=True))
    neither = sum(a == 0.0 and b == 0.0 for a, b in zip(new, old, strict=True))
    only_new, only_old = round(sum(new)) - both, round(sum(old)) - both
    first, second = sum(new) / n, sum(old) / n
    low_1, high_1 = wilson(sum(new), n, level)
    low_2, high_2 = wilson(sum(old), n, level)
    phi = _correlation(both, only_new, only_old, neither)
    down = (first - low_1) ** 2 - 2 * phi * (first - low_1) * (high_2 - second) + (high_2 - second) ** 2
    up = (high_1 - first) ** 2 - 2 * phi * (high_1 - first) * (second - low_2) + (second - low_2) ** 2
    difference = first - second
    return difference - math.sqrt(max(0.0, down)), difference + math.sqrt(max(0.0, up))


def _correlation(both: int, only_new: int, only_old: int, neither: int) -> float:
    """How the pairs go together, with the continuity correction that keeps few pairs from looking too alike."""
    margins = (both + only_new) * (only_old + neither) * (both + only_old) * (only_new + neither)
    if margins == 0:
        return 0.0
    excess = float(both * neither - only_new * only_old)
    if excess > 0:
        excess = max(excess - (both + only_new + only_old + neither) / 2, 0.0)
    return excess / math.sqrt(margins)
