"""The pool of a search: who is in it, where each came from, how each scored, and who is best at what. Pure values.

A member's scores are by item id, train and val alike, since ids are unique over all splits; None stands for a rollout that
failed for a reason that is not the agent's, and is never taken for a zero. Means weigh every item alike.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sharpen.core.candidate import Candidate
from sharpen.engine.metric import mean_of


@dataclass(frozen=True)
class Member:
    """A candidate in the pool. `number` counts all that were ever born, `born` and `touched` are iterations: the one it
    came in, and the last one it came in or was explored in; `explored` is how often it was a parent."""

    number: int
    candidate: Candidate
    parents: tuple[int, ...] = ()
    born: int = 0
    scores: Mapping[str, float | None] = field(default_factory=dict)
    ancestors: frozenset[int] = frozenset()
    explored: int = 0
    touched: int = 0
    aims: tuple[float, ...] = ()
    """Its means in the task's objectives on the val items of its last measurement, each turned so that more is better."""

    @property
    def rollouts(self) -> int:
        """Items there is a score for."""
        return sum(score is not None for score in self.scores.values())

    def mean(self, items: Collection[str] | None = None) -> float | None:
        """The mean over these items, or over all there is a score for; None where there is none."""
        wanted: Iterable[str] = self.scores if items is None else items
        return mean_of([self.scores.get(item) for item in wanted])

    def count(self, items: Collection[str]) -> int:
        """How many of these items it was tried on."""
        return sum(item in self.scores for item in items)


@dataclass(frozen=True)
class Pool:
    """Members in order of birth. Every change makes a new pool."""

    members: tuple[Member, ...] = ()
    born: int = 0

    def __iter__(self) -> Iterator[Member]:
        return iter(self.members)

    def __len__(self) -> int:
        return len(self.members)

    def __getitem__(self, number: int) -> Member:
        return next(member for member in self.members if member.number == number)

    def __contains__(self, number: object) -> bool:
        return any(member.number == number for member in self.members)

    @property
    def newest(self) -> Member:
        return self.members[-1]

    def added(self, candidate: Candidate, parents: Sequence[int], iteration: int) -> Pool:
        """The pool with a new member at its end."""
        older = frozenset(parents).union(*(self[parent].ancestors for parent in parents))
        member = Member(self.born, candidate, tuple(parents), iteration, {}, older, 0, iteration)
        return Pool((*self.members, member), self.born + 1)

    def scored(self, number: int, scores: Mapping[str, float | None]) -> Pool:
        """The pool with more scores of one member. A failed rollout takes no earlier score away."""
        known = self[number].scores
        new = {item: score for item, score in scores.items() if score is not None or known.get(item) is None}
        return self._with(number, scores={**known, **new})

    def aiming(self, number: int, aims: tuple[float, ...]) -> Pool:
        """The pool with what one member came to in each objective."""
        return self._with(number, aims=aims)

    def visited(self, numbers: Iterable[int], iteration: int) -> Pool:
        """The pool after these members were explored."""
        pool = self
        for number in numbers:
            pool = pool._with(number, explored=pool[number].explored + 1, touched=iteration)
        return pool

    def keeping(self, numbers: Collection[int]) -> Pool:
        return replace(self, members=tuple(member for member in self.members if member.number in numbers))

    def _with(self, number: int, **changes: object) -> Pool:
        changed = (replace(m, **changes) if m.number == number else m for m in self.members)  # type: ignore[arg-type]
        return replace(self, members=tuple(changed))


def leader(members: Iterable[Member], items: Collection[str]) -> Member | None:
    """The one with the highest mean on these items, of equals the eldest; None where nobody has a score."""
    scored = [(score, -m.number, m) for m in members if (score := m.mean(items)) is not None]
    return max(scored, key=lambda row: row[:2])[2] if scored else None


def fronts(members: Sequence[Member], items: Collection[str]) -> dict[int, frozenset[str]]:
    """By member: the items on which nobody scores higher. Equals share an item."""
    won: dict[int, set[str]] = {member.number: set() for member in members}
    for item in items:
        scores = {m.number: score for m in members if (score := m.scores.get(item)) is not None}
        top = max(scores.values(), default=None)
        for number, score in scores.items():
            if score == top:
                won[number].add(item)
    return {number: frozenset(own) for number, own in won.items()}


def undominated(won: Mapping[int, frozenset[str]]) -> list[int]:
    """Members who win something that no other one wins in addition to everything they win."""
    return [
        number
        for number, own in won.items()
        if own and not any(own < others for other, others in won.items() if other != number)
    ]
