"""The mean of some scores with its interval, whole and by group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sharpen.stats.intervals import bootstrap_mean, is_binary, wilson

FEWEST = 2


@dataclass(frozen=True, slots=True)
class Summary:
    """`n` scores were there, `failed` were not. Mean and interval are None where nothing was scored."""

    mean: float | None
    low: float | None
    high: float | None
    n: int
    failed: int = 0

    def row(self) -> list[float | int | None]:
        return [self.mean, self.low, self.high, self.n, self.failed]


def summarise(scores: Sequence[float], *, failed: int = 0, level: float = 0.95) -> Summary:
    """The mean with its interval: Wilson's where all scores are 0 or 1, the bootstrap's otherwise. A single score that is
    neither says nothing about its neighbours, so its interval is the whole range."""
    n = len(scores)
    if n == 0:
        return Summary(None, None, None, 0, failed)
    mean = sum(scores) / n
    if is_binary(scores):
        low, high = wilson(sum(scores), n, level)
    elif n < FEWEST:
        low, high = 0.0, 1.0
    else:
        low, high = bootstrap_mean(scores, level)
    return Summary(mean, low, high, n, failed)


def summarise_by_type(types: Sequence[str], scores: Sequence[float | None], level: float = 0.95) -> dict[str, Summary]:
    """One summary per type, in alphabetical order; scores that are None count as failed."""
    groups: dict[str, list[float | None]] = {}
    for kind, score in zip(types, scores, strict=True):
        groups.setdefault(kind, []).append(score)
    found = {}
    for kind, members in sorted(groups.items()):
        known = [score for score in members if score is not None]
        found[kind] = summarise(known, failed=len(members) - len(known), level=level)
    return found
