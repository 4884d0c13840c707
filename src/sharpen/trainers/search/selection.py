"""Selection: whom a step of a search builds on.

A policy sees the pool and nothing else, and names members by their number. What a member is worth may be its mean, an upper
confidence bound, its age, or the items on which nobody beats it; that is where searches differ most.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from sharpen.core.rng import Stream
from sharpen.trainers.search.pool import Member, Pool, fronts, undominated


@dataclass(frozen=True)
class View:
    """What policies may look at. `iteration` counts from 1, `ruler` are the val items members are compared on, `best` is the
    number of the leader."""

    pool: Pool
    iteration: int
    ruler: tuple[str, ...]
    best: int

    @property
    def won(self) -> Mapping[int, frozenset[str]]:
        """The items of the ruler each member is among the best on."""
        return fronts(self.pool.members, self.ruler)

    def first(self, order: Sequence[int], size: int | None) -> set[int]:
        """The first `size` of these members; the leader, where it is one of them, always has a place."""
        places = sorted(order, key=lambda number: number != self.best)
        return set(places[:size])

    def mean(self, member: Member) -> float:
        """Its mean on the ruler, below all others where there is none."""
        found = member.mean(self.ruler)
        return -math.inf if found is None else found


class Selection(Protocol):
    def choose(self, view: View, rng: Stream) -> list[int]: ...


@dataclass(frozen=True)
class Everyone:
    """All there are: for searches whose pool is what they build on."""

    def choose(self, view: View, rng: Stream) -> list[int]:
        return [member.number for member in view.pool]


@dataclass(frozen=True)
class Newest:
    """The one that came last: a walk rather than a pool."""

    def choose(self, view: View, rng: Stream) -> list[int]:
        return [view.pool.newest.number]


@dataclass(frozen=True)
class ParetoSample:
    """One of those nobody dominates, drawn in proportion to the items it wins (GEPA)."""

    def choose(self, view: View, rng: Stream) -> list[int]:
        won = view.won
        able = undominated(won)
        if not able:
            return [view.best]
        ticket = rng.random() * sum(len(won[number]) for number in able)
        for number in able:
            ticket -= len(won[number])
            if ticket < 0:
                return [number]
        return [able[-1]]


@dataclass(frozen=True)
class ParetoUCB:
    """The one with the highest bound: the share of items it wins, and more the less often it was explored."""

    factor: float

    def bound(self, view: View, won: Mapping[int, frozenset[str]], member: Member) -> float:
        share = len(won[member.number]) / max(1, len(view.ruler))
        return share + self.factor * math.sqrt(math.log(view.iteration + 1) / (member.explored + 1))

    def choose(self, view: View, rng: Stream) -> list[int]:
        won = view.won
        return [max(view.pool, key=lambda m: (self.bound(view, won, m), view.mean(m), m.number)).number]


@dataclass(frozen=True)
class ParetoBeam:
    """`width` members, each built on in the same step: those nobody dominates first, the best by mean first among them and
    among the others."""

    width: int

    def choose(self, view: View, rng: Stream) -> list[int]:
        able = undominated(view.won)
        order = sorted(view.pool, key=lambda m: (m.number not in able, -view.mean(m), m.number))
        return [member.number for member in order[: self.width]]
