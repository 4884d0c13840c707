"""The outcomes of one candidate on a list of items, always in item order.

An `Evaluation` holds the scores; what the agent said is fetched from the ledger when somebody wants to read it, so that
evaluating a hundred thousand items takes no more memory than their scores.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from operator import eq
from typing import overload

from sharpen.core.candidate import Candidate
from sharpen.core.item import Item
from sharpen.core.outcome import Failure, Outcome


@dataclass(frozen=True)
class Group:
    """A wish: one candidate on some items, sample number `sample`."""

    candidate: Candidate
    items: Sequence[Item]
    sample: int = 0


class Scores(Sequence[float | None]):
    """Scores in item order, at eight bytes each; None where there is none."""

    def __init__(self, values: Iterable[float]) -> None:
        """Not-a-number stands for no score."""
        self._values = array("d", values)

    def __len__(self) -> int:
        return len(self._values)

    @overload
    def __getitem__(self, index: int) -> float | None: ...
    @overload
    def __getitem__(self, index: slice) -> Scores: ...
    def __getitem__(self, index: int | slice) -> float | Scores | None:
        if isinstance(index, slice):
            return Scores(self._values[index])
        return _or_none(self._values[index])

    def __iter__(self) -> Iterator[float | None]:
        return map(_or_none, self._values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(eq, self, other))

    def __repr__(self) -> str:
        return f"Scores({list(self)})"


def _or_none(value: float) -> float | None:
    return None if isnan(value) else value


@dataclass(frozen=True)
class Evaluation:
    """`hard` and `soft` are None where a rollout failed for a reason that is not the agent's; `failures` says why.
    `measures` are the raw values beside the scores, by name, None where a rollout has none."""

    candidate: Candidate
    items: Sequence[Item]
    hard: Sequence[float | None]
    soft: Sequence[float | None]
    failures: Mapping[str, Failure]
    _load: Callable[[int], Outcome] = field(repr=False, compare=False)
    measures: Mapping[str, Sequence[float | None]] = field(default_factory=dict)

    @property
    def scored(self) -> list[float]:
        """The scores there are, in item order."""
        return [score for score in self.hard if score is not None]

    @property
    def mean(self) -> float | None:
        """The mean of `hard` over what was scored; None where nothing was."""
        return _mean(self.hard)

    def measured(self, name: str) -> float | None:
        """The mean of a measure over the rollouts that have it; None where none has."""
        return _mean(self.measures.get(name, ()))

    def outcome(self, index: int) -> Outcome:
        """The whole record of one rollout, failed ones included."""
        item = self.items[index]
        if item.id in self.failures:
            return Outcome(item.id, None, None, failure=self.failures[item.id])
        return self._load(index)


def _mean(scores: Sequence[float | None]) -> float | None:
    known = [score for score in scores if score is not None]
    return sum(known) / len(known) if known else None
