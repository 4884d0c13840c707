"""The search for several aims: a pool on the Pareto front of a task's objectives, and the two policies that make it one.

Members are compared by the means of the objectives on val, and any whom nobody dominates may be built on, however low its
score is: the way to a point that is good in another way may lead through it. The best is still the one with the highest
score. Where a task states no objectives, the score is the one aim there is.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from pydantic import Field

from sharpen.core.rng import Stream
from sharpen.stats.pareto import Direction, fronts
from sharpen.trainers.search.loop import PoolSearch
from sharpen.trainers.search.params import IteratedParams
from sharpen.trainers.search.plan import Plan
from sharpen.trainers.search.selection import View
from sharpen.trainers.search.yardstick import Whole


def ranks(view: View) -> list[list[int]]:
    """The numbers of all members whose aims are known: the front, the front without it, and so on."""
    known = [member for member in view.pool if member.aims]
    directions: list[Direction] = ["max"] * len(known[0].aims) if known else []
    return [[known[place].number for place in rank] for rank in fronts([m.aims for m in known], directions)]


@dataclass(frozen=True)
class FrontMember:
    """One of those whom nobody dominates, of those explored least often, by lot."""

    def choose(self, view: View, rng: Stream) -> list[int]:
        able = next(iter(ranks(view)), [view.best])
        least = min(view.pool[number].explored for number in able)
        return [rng.choice([number for number in able if view.pool[number].explored == least])]


@dataclass(frozen=True)
class LowestRank:
    """The `size` members nearest to the front; of equals, those with the higher mean."""

    size: int

    def keep(self, view: View, measured: Collection[str]) -> set[int]:
        order = [
            number
            for rank in ranks(view)
            for number in sorted(rank, key=lambda number: (-view.mean(view.pool[number]), number))
        ]
        return view.first(order, self.size)


class ParetoParams(IteratedParams):
    max_buffer_size: int = Field(24, ge=2, description="The most members of the pool.")
    merge_every: int = Field(5, ge=0, description="After so many steps the parts of two members are crossed; 0: never.")


class ParetoSearch(PoolSearch):
    name = "pareto-search"
    description = "a pool on the Pareto front of the task's objectives; any of the front may be built on"
    Params = ParetoParams
    params: ParetoParams

    def policies(self) -> Plan:
        given = self.params
        return Plan(
            given.iterations,
            FrontMember(),
            Whole(),
            LowestRank(given.max_buffer_size),
            merge_every=given.merge_every,
        )
