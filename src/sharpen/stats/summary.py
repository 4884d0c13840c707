"""The mean of some scores with its interval, whole and by group. Missing scores are counted, never taken for zero."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sharpen.stats.intervals import bounded_mean, is_binary, wilson


@dataclass(frozen=True, slots=True)
class Summary:
    """`n` scores were there, `failed` were not. Mean and interval are None where nothing was scored, the interval also where
    one score without bounds tells nothing of others."""

    mean: float | None
    low: float | None
    high: float | None
    n: int
    failed: int = 0
    method: str = "nothing scored"

    def row(self) -> list[float | int | None]:
        """Mean, low, high, scored, failed: the compact form that is stored."""
        return [self.mean, self.low, self.high, self.n, self.failed]


def summarise(
    scores: Sequence[float | None], *, failed: int = 0, level: float = 0.95, low: float = 0.0, high: float = 1.0
) -> Summary:
    """The mean with its interval: Wilson's where all scores are 0 or 1. `failed` scores are missing besides those that are
    None; scores lie in `low`..`high`."""
    values = [float(score) for score in scores if score is not None]
    missing = failed + len(scores) - len(values)
    if not values:
        return Summary(None, None, None, 0, missing)
    mean = math.fsum(values) / len(values)
    if low == 0.0 and high == 1.0 and is_binary(values):
        return Summary(mean, *wilson(sum(values), len(values), level), len(values), missing, "Wilson")
    if len(values) == 1 and not math.isfinite(high - low):
        return Summary(mean, None, None, 1, missing, "one value")
    below, above, method = bounded_mean(values, level, low, high)
    return Summary(mean, below, above, len(values), missing, method)


def summarise_by_type(
    types: Sequence[str],
    scores: Sequence[float | None],
    level: float = 0.95,
    *,
    low: float = 0.0,
    high: float = 1.0,
) -> dict[str, Summary]:
    """One summary per type, in alphabetical order; scores that are None count as failed."""
    groups: dict[str, list[float | None]] = {}
    for kind, score in zip(types, scores, strict=True):
        groups.setdefault(kind, []).append(score)
    return {kind: summarise(groups[kind], level=level, low=low, high=high) for kind in sorted(groups)}
