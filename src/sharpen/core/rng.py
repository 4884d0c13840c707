"""Randomness without a shared generator.

A `Stream` is a sequence of numbers that depends only on a seed and a scope, such as `(42, "batch", 3)`: the n-th number
is a hash of the three. Two parts of a program that use different scopes can run in any order, or twice, and still
draw what they would have drawn alone, which is what makes replay possible. The algorithms for shuffling and sampling
are written out here rather than borrowed, so that a Python upgrade can't change a result.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

from sharpen.core.digest import canonical

T = TypeVar("T")

_WORD = 8
_WORDS_PER_BLOCK = 8
_UNIT = 1.0 / (1 << 53)


class Stream:
    """An endless sequence of random numbers, decided by `seed` and `scope` alone."""

    def __init__(self, seed: int, *scope: str | int) -> None:
        self._key = hashlib.blake2b(canonical([seed, *scope]).encode(), digest_size=32).digest()
        self._counter = 0
        self._block = b""
        self._used = 0

    def word(self) -> int:
        """The next 64 random bits."""
        if self._used == len(self._block):
            self._block = hashlib.blake2b(self._counter.to_bytes(8, "big"), key=self._key).digest()
            self._counter += 1
            self._used = 0
        word = int.from_bytes(self._block[self._used : self._used + _WORD], "big")
        self._used += _WORD
        return word

    def random(self) -> float:
        """A float in [0, 1)."""
        return (self.word() >> 11) * _UNIT

    def below(self, n: int) -> int:
        """An integer in [0, n), every one equally likely."""
        if n <= 0:
            raise ValueError(f"below() needs a positive bound, got {n}")
        limit = (1 << 64) - (1 << 64) % n
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
        for i in range(len(result) - 1, 0, -1):
            j = self.below(i + 1)
            result[i], result[j] = result[j], result[i]
        return result

    def sample(self, values: Sequence[T], k: int) -> list[T]:
        """Up to `k` different positions of `values`, in random order."""
        return self.shuffled(values)[:k]
