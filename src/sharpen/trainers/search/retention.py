"""Retention: who is still in the pool after a step. The leader always is."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from sharpen.trainers.search.priority import Memory
from sharpen.trainers.search.selection import ParetoUCB, View


class Retention(Protocol):
    def keep(self, view: View, measured: Collection[str]) -> set[int]:
        """The numbers of those who stay; `measured` are the val items of this step."""
        ...


@dataclass(frozen=True)
class Remember:
    """What PrioritySearch's memory keeps."""

    memory: Memory

    def keep(self, view: View, measured: Collection[str]) -> set[int]:
        return self.memory.keep(view)


@dataclass(frozen=True)
class MostWins:
    """The `size` members that win most items; of equals, those with the higher mean."""

    size: int

    def keep(self, view: View, measured: Collection[str]) -> set[int]:
        won = view.won
        order = sorted(view.pool, key=lambda m: (-len(won[m.number]), -view.mean(m), m.number))
        return view.first([member.number for member in order], self.size)


@dataclass(frozen=True)
class HighestBound:
    """All but the one with the lowest bound, again and again until `size` are left."""

    size: int
    bound: ParetoUCB

    def keep(self, view: View, measured: Collection[str]) -> set[int]:
        won = view.won
        order = sorted(view.pool, key=lambda m: (-self.bound.bound(view, won, m), m.number))
        return view.first([member.number for member in order], self.size)


@dataclass(frozen=True)
class BestOnStep:
    """The `size` members that did best on the items of this step, on which all of them were tried; of equals the eldest."""

    size: int

    def keep(self, view: View, measured: Collection[str]) -> set[int]:
        scores = {member.number: member.mean(measured) for member in view.pool}
        order = sorted(scores, key=lambda number: (scores[number] is None, -(scores[number] or 0.0), number))
        return view.first(order, self.size)
