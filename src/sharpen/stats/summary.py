"""The mean of some scores with its interval, whole and by group. Missing scores are counted, never taken for zero."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
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
    scores: Sequence[float | None],
    *,
    failed: int = 0,
    level: float = 0.95,
    low: float = 0.0,
    high: float = 1.0,
    groups: Sequence[Hashable] | None = None,
) -> Summary:
    """The mean with its interval: Wilson's where all scores are 0 or 1. `failed` scores are missing besides those that are
    None; scores lie in `low`..`high`. `groups` names the group of each score, where scores belong together."""
    values = [float(score) for score in scores if score is not None]
    missing = failed + len(scores) - len(values)
    if not values:
        return Summary(None, None, None, 0, missing)
    mean = math.fsum(values) / len(values)
    if len(values) == 1 and not math.isfinite(high - low):
        return Summary(mean, None, None, 1, missing, "one value")
    if len(values) == 1 and low == 0.0 and high == 1.0 and is_binary(values):
        return Summary(mean, *wilson(values[0], 1, level), 1, missing, "Wilson")
    known = (
        None if groups is None else [group for group, score in zip(groups, scores, strict=True) if score is not None]
    )
    below, above, method = bounded_mean(values, level, low, high, known)
    if not math.isfinite(above - below):
        return Summary(mean, None, None, len(values), missing, method)
    return Summary(mean, below, above, len(values), missing, method)


def summarise_by_type(
    types: Sequence[str],
    scores: Sequence[float | None],
    level: float = 0.95,
    *,
    low: float = 0.0,
    high: float = 1.0,
    groups: Sequence[Hashable] | None = None,
) -> dict[str, Summary]:
    """One summary per type, in alphabetical order; scores that are None count as failed."""
    places: dict[str, list[int]] = {}
    for place, kind in enumerate(types):
        places.setdefault(kind, []).append(place)
    return {
        kind: summarise(
            [scores[place] for place in places[kind]],
            level=level,
            low=low,
            high=high,
            groups=None if groups is None else [groups[place] for place in places[kind]],
        )
        for kind in sorted(places)
    }
