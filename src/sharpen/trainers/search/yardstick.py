"""Yardsticks: on which val items the members of a pool are measured.

All of them, a part that is chosen once (so that members can be compared item by item), or a part that is drawn anew in
every step. Where it is not all of them, the last few standing are measured on the rest before one is called the best.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from sharpen.core.item import Item
from sharpen.core.rng import Stream

Randomness = Callable[..., Stream]
"""`job.rng`: a stream for a scope."""


class Yardstick(Protocol):
    @property
    def parents(self) -> bool:
        """Whether the members a step builds on are measured along with what comes of them."""
        ...

    def items(self, val: Sequence[Item], rng: Randomness, iteration: int) -> Sequence[Item]:
        """The items of a step; step 0 is the measurement of the initial candidate."""
        ...


@dataclass(frozen=True)
class Whole:
    """All val items that decide."""

    parents: bool = False

    def items(self, val: Sequence[Item], rng: Randomness, iteration: int) -> Sequence[Item]:
        return val


@dataclass(frozen=True)
class Subset:
    """The same `size` items in every step, in their own order."""

    size: int
    parents: bool = False

    def items(self, val: Sequence[Item], rng: Randomness, iteration: int) -> Sequence[Item]:
        chosen = {item.id for item in rng("pareto subset").sample(val, self.size)}
        return [item for item in val if item.id in chosen]


@dataclass(frozen=True)
class Drawn:
    """`size` items drawn anew in every step."""

    size: int
    parents: bool = True

    def items(self, val: Sequence[Item], rng: Randomness, iteration: int) -> Sequence[Item]:
        chosen = {item.id for item in rng("validation", iteration).sample(val, self.size)}
        return [item for item in val if item.id in chosen]
