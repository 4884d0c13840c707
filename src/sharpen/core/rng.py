"""Randomness without a shared generator.

A `Stream` is a sequence of numbers that depends only on a seed and a scope, such as `(42, "batch", 3)`: the n-th number
is a hash of the three. Two parts of a program that use different scopes can run in any order, or twice, and still
draw what they would have drawn alone, which is what makes replay possible. The algorithms for shuffling and sampling
are written out here rather than borrowed, so that a Python upgrade can't change a result.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from typing import TypeVar

from sharpen.core.digest import canonical

T = TypeVar("T")

_BLOCK = struct.Struct(">8Q")
_WORDS = 1 << 64
_UNIT = 1.0 / (1 << 53)


class Stream:
    """An endless sequence of random numbers, decided by `seed` and `scope` alone."""

    def __init__(self, seed: int, *scope: str | int) -> None:
        self._key = hashlib.blake2b(canonical([seed, *scope]).encode(), digest_size=32).digest()
        self._counter = 0
        self._block: list[int] = []
        """Words of the current block that are not used yet, the next one last."""

    def word(self) -> int:
        """The next 64 random bits."""
        if not self._block:
            digest = hashlib.blake2b(self._counter.to_bytes(8, "big"), key=self._key).digest()
            self._counter += 1
            self._block.extend(reversed(_BLOCK.unpack(digest)))
        return self._block.pop()

    def random(self) -> float:
        """A float in [0, 1)."""
        return (self.word() >> 11) * _UNIT

    def below(self, n: int) -> int:
        """An integer in [0, n), every one equally likely."""
        if n <= 0:
            raise ValueError(f"below() needs a positive bound, got {n}")
        limit = _WORDS - _WORDS % n
        while True:
            word = self.word()
            if word < limit:
                return word % n

    def choice(self, values: Sequence[T]) -> T:
        """One of `values`, every one equally likely."""
        return values[self.below(len(values))]

    def shuffled(self, values: Sequence[T]) -> list[T]:
        """A new list with `values` in random order."""
        result = list(values)
        draw = self.word
        for i in range(len(result) - 1, 0, -1):
            # As `below(i + 1)`, written out: tasks that generate their items spend their time here.
            word = draw()
            while word >= _WORDS - _WORDS % (i + 1):
                word = draw()
            j = word % (i + 1)
            result[i], result[j] = result[j], result[i]
        return result

    def sample(self, values: Sequence[T], k: int) -> list[T]:
        """Up to `k` different positions of `values`, in random order."""
        return self.shuffled(values)[:k]
