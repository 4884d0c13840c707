"""What a job has measured of its candidates on val so far, as far as decisions rest on it.

A gate may stop before it has seen all items, and looks first where a difference is likely. So a mean over what it saw is
not the candidate's score on the selection split, and is not called so: `Selection.whole` tells the two apart. Items that
were held back for confirming are in neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sharpen.bench.compat.source import Source
from sharpen.bench.compat.story import Line
from sharpen.engine.metric import Metric, mean_of
from sharpen.stats.paired import Interval, paired_difference

_DECIDING = ("gate", "promote")


@dataclass(frozen=True)
class Draw:
    """One attempt as the events tell it. `failed` is why there is no score: kind and message."""

    item: str | None
    sample: int
    hard: float | None
    soft: float | None
    failed: tuple[str, str] | None = None


@dataclass(frozen=True)
class Selection:
    """A candidate's first draws on the items decisions rest on; `of` is how many of these items there are."""

    draws: tuple[Draw, ...]
    of: int

    @property
    def whole(self) -> bool:
        return len(self.draws) == self.of > 0

    @property
    def hard(self) -> float | None:
        return mean_of([draw.hard for draw in self.draws])

    @property
    def soft(self) -> float | None:
        return mean_of([draw.soft for draw in self.draws])

    def score(self, metric: Metric) -> float | None:
        return mean_of(self.values(metric))

    def values(self, metric: Metric) -> list[float | None]:
        pairs = [(draw.hard, draw.soft) for draw in self.draws]
        return [None if hard is None or soft is None else metric.of(hard, soft) for hard, soft in pairs]


@dataclass
class Known:
    """Fed line by line, in the order of the story; says what was known by then."""

    source: Source
    deciding: int
    _draws: dict[str, dict[tuple[str, int], Draw]] = field(default_factory=dict)
    _unnamed: set[str] = field(default_factory=set)
    """Candidates whose items have no ids here, and were measured on all of val: nothing can be added to that."""

    def feed(self, line: Line) -> None:
        if line["type"] != "measured" or line["purpose"] not in _DECIDING:
            return
        for group in line["groups"]:
            self._add(group["candidate"], draws_of(self.source, group), whole=isinstance(group["items"], str))

    def _add(self, candidate: str, draws: Sequence[Draw], *, whole: bool) -> None:
        if candidate in self._unnamed:
            return
        if whole and any(draw.item is None for draw in draws):
            self._unnamed.add(candidate)
            self._draws[candidate] = {(f"#{place}", draw.sample): draw for place, draw in enumerate(draws)}
            return
        kept = self._draws.setdefault(candidate, {})
        for draw in draws:
            kept[(draw.item or "", draw.sample)] = draw

    def selection(self, candidate: str) -> Selection:
        return Selection(tuple(draw for draw in self.draws(candidate) if draw.sample == 0), self.deciding)

    def draws(self, candidate: str) -> list[Draw]:
        """All draws of a candidate: those of the first sample first, each in the order they were measured."""
        return sorted(self._draws.get(candidate, {}).values(), key=lambda draw: draw.sample)

    def difference(self, new: str, old: str) -> Interval | None:
        """The paired difference in hard scores, where both were measured on all deciding items."""
        arms = [self.selection(one) for one in (new, old)]
        if not all(arm.whole for arm in arms):
            return None
        first, second = ({draw.item: draw.hard for draw in arm.draws} for arm in arms)
        pairs = [(first[item], second.get(item)) for item in first]
        both = [(a, b) for a, b in pairs if a is not None and b is not None]
        return paired_difference([a for a, _ in both], [b for _, b in both]) if both else None


def draws_of(source: Source, group: Line) -> list[Draw]:
    """A measured group, attempt by attempt, in item order."""
    hard, soft = group["hard"], group["soft"] or group["hard"]
    failed = group["failed"]
    rows: Iterable[tuple[str | None, Any, Any]] = zip(source.ids(group), hard, soft, strict=True)
    return [
        Draw(item, group["sample"], one, other, tuple(failed[item][:2]) if item in failed else None)
        for item, one, other in rows
    ]
