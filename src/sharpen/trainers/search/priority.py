"""Priorities and memories: the order in which PrioritySearch looks at its members, and which of them it still knows.

A priority makes one number of a member: its mean, an upper confidence bound, or its age. The memory has a long and a short
shelf: with an update frequency of 0 there is the long one alone, without a frequency the short one alone; with frequency k
members that came or were explored since the last update are on the short shelf, the search looks at these alone, and
every k iterations both become one again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from sharpen.core.rng import Stream
from sharpen.trainers.search.pool import Member
from sharpen.trainers.search.selection import View

ScoreFunction = Literal["mean", "ucb", "time"]


@dataclass(frozen=True)
class Priority:
    """`ucb` adds `exploration * sqrt(ln(iterations + 2) / items scored)` to the mean; who has no score yet comes first
    there, and last by mean. `time` puts newer members first."""

    score_function: ScoreFunction = "mean"
    exploration: float = 1.0

    def of(self, member: Member, iteration: int) -> float:
        if self.score_function == "time":
            return float(member.born)
        mean = member.mean()
        if mean is None:
            return math.inf if self.score_function == "ucb" else -math.inf
        if self.score_function == "mean":
            return mean
        return mean + self.exploration * math.sqrt(math.log(iteration + 2) / member.rollouts)

    def order(self, members: list[Member], iteration: int) -> list[Member]:
        """Highest first; of equals the one that came last."""
        return sorted(members, key=lambda member: (-self.of(member, iteration), -member.number))


@dataclass(frozen=True)
class Memory:
    """Which members are looked at, and which are kept. A size of None is no limit; what is too much is the worst."""

    priority: Priority
    long_term_memory_size: int | None = None
    short_term_memory_size: int | None = None
    memory_update_frequency: int | None = 0

    def looked_at(self, view: View) -> list[Member]:
        """The members a search may choose from in this iteration."""
        since = self._updated(view.iteration)
        if since in (None, view.iteration):
            return list(view.pool)
        return [member for member in view.pool if member.touched >= since] or list(view.pool)

    def keep(self, view: View) -> set[int]:
        members, since = list(view.pool), self._updated(view.iteration)
        if since is None:
            only = self.long_term_memory_size if self.memory_update_frequency == 0 else self.short_term_memory_size
            return self._best(members, only, view)
        if self._updated(view.iteration + 1) != since:  # the next iteration begins with an update
            return self._best(members, self.long_term_memory_size, view)
        short = [member for member in members if member.touched >= since]
        long = [member for member in members if member.touched < since]
        return self._best(short, self.short_term_memory_size, view) | self._best(long, self.long_term_memory_size, view)

    def _updated(self, iteration: int) -> int | None:
        """The iteration that began with the last update; None where there is but one shelf."""
        frequency = self.memory_update_frequency
        return (iteration - 1) // frequency * frequency + 1 if frequency else None

    def _best(self, members: list[Member], size: int | None, view: View) -> set[int]:
        return view.first([member.number for member in self.priority.order(members, view.iteration)], size)


@dataclass(frozen=True)
class ByPriority:
    """The leader, where it is to be among them, and the first of the others until there are `num_candidates`."""

    num_candidates: int
    memory: Memory
    use_best_candidate_to_explore: bool = True

    def choose(self, view: View, rng: Stream) -> list[int]:
        ranked = self.memory.priority.order(self.memory.looked_at(view), view.iteration)
        first = [view.best] if self.use_best_candidate_to_explore else []
        return list(dict.fromkeys([*first, *(member.number for member in ranked)]))[: self.num_candidates]
