"""The novelty filter of POLCA: of new candidates, those that differ enough from what is in memory and from each other.

A text is embedded by counting its character trigrams into a vector of fixed length by a hash, offline and the same
everywhere, and scaled to length 1. Candidates are taken farthest first, as long as the distance to all that are there is
above epsilon: 0 for the same trigrams in the same proportions, and at most the root of 2.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sharpen.core.candidate import Candidate

Vector: TypeAlias = NDArray[np.float64]
_LENGTH, _GRAM = 1024, 3


def embed(candidate: Candidate) -> Vector:
    return _embedded("\n\n".join(candidate.parts.values()))


@lru_cache(maxsize=1024)
def _embedded(text: str) -> Vector:
    vector = np.zeros(_LENGTH)
    for start in range(max(1, len(text) - _GRAM + 1)):
        vector[zlib.crc32(text[start : start + _GRAM].encode()) % _LENGTH] += 1.0
    scaled: Vector = vector / np.linalg.norm(vector)
    return scaled


def novel(new: Sequence[Candidate], memory: Iterable[Candidate], epsilon: float) -> list[int]:
    """The numbers of the new candidates that are kept, in their own order."""
    there = [embed(candidate) for candidate in memory]
    waiting = {number: embed(candidate) for number, candidate in enumerate(new)}
    kept: list[int] = []
    while waiting:
        gaps = {number: min((_distance(one, other) for other in there), default=2.0) for number, one in waiting.items()}
        farthest = max(gaps, key=lambda number: (gaps[number], -number))
        if gaps[farthest] <= epsilon:
            break
        there.append(waiting.pop(farthest))
        kept.append(farthest)
    return sorted(kept)


def _distance(one: Vector, other: Vector) -> float:
    return float(np.linalg.norm(one - other))
