"""What a job knows of its rollouts, packed: a number for every key, and by number its scores and who carries it out.

A job may come to a million rollouts, and as Python objects the key and the scores of each would take hundreds of bytes.
Here they lie in arrays, at about fifty. A `Scoreboard` lasts as long as its job, `Wishes` as long as one measurement.
Neither decides anything: what is fresh and what is counted is the job's business.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import isnan, nan

from sharpen.core.item import Item
from sharpen.engine.evaluation import Group
from sharpen.ledger.keys import RolloutKeys

NOBODY = 0
_HALVES = struct.Struct("<2Q")
"""A key of 16 bytes as two numbers, which arrays can hold."""
_FREE = -1
_SMALLEST = 64


class Scoreboard:
    """Rollouts are numbered from 0 as they are first named, and stay. Scores are not-a-number until they are known."""

    def __init__(self) -> None:
        self.hard, self.soft = array("d"), array("d")
        self._measures: dict[str, array[float]] = {}
        """By name, then by number; not-a-number, or past the end, where a rollout has no such measure."""
        self.carrier = array("I")
        """By number: which flight carries it out at the moment, or `NOBODY`."""
        self._low, self._high = array("Q"), array("Q")
        # Open addressing: keys are digests, so their low bits are spread evenly. Only this table is rebuilt when it grows.
        self._slots = array("i", [_FREE]) * _SMALLEST

    def __len__(self) -> int:
        return len(self.hard)

    def find(self, key: bytes) -> int | None:
        """The number of a rollout; None where nobody has named it."""
        number = self._slots[self._slot(*_HALVES.unpack(key))]
        return None if number == _FREE else number

    def number(self, key: bytes) -> int:
        """The number of a rollout, which gets one if it has none."""
        low, high = _HALVES.unpack(key)
        slot = self._slot(low, high)
        number = self._slots[slot]
        if number != _FREE:
            return number
        number = self._slots[slot] = len(self)
        self._low.append(low)
        self._high.append(high)
        self.hard.append(nan)
        self.soft.append(nan)
        self.carrier.append(NOBODY)
        if 3 * len(self) > 2 * len(self._slots):
            self._grow()
        return number

    def key(self, number: int) -> bytes:
        return _HALVES.pack(self._low[number], self._high[number])

    def is_known(self, number: int) -> bool:
        return not isnan(self.hard[number])

    def note(self, number: int, hard: float, soft: float, measures: Mapping[str, float]) -> None:
        """Keep what a rollout came to."""
        self.hard[number], self.soft[number] = hard, soft
        for name, value in measures.items():
            column = self._measures.setdefault(name, array("d"))
            if len(column) <= number:
                column.extend([nan] * (number + 1 - len(column)))
            column[number] = value

    def forget(self, number: int) -> None:
        """Make a rollout one that is not known."""
        self.hard[number] = self.soft[number] = nan
        for column in self._measures.values():
            if number < len(column):
                column[number] = nan

    def measures(self, numbers: Sequence[int]) -> dict[str, array[float]]:
        """The measures of some rollouts, in their order; names that none of them has are left out."""
        found = {}
        for name, column in sorted(self._measures.items()):
            values = array("d", (column[number] if number < len(column) else nan for number in numbers))
            if not all(map(isnan, values)):
                found[name] = values
        return found

    def _slot(self, low: int, high: int) -> int:
        """Where the number of this key stands, or would stand."""
        last = len(self._slots) - 1
        slot = low & last
        while (number := self._slots[slot]) != _FREE and (self._low[number] != low or self._high[number] != high):
            slot = (slot + 1) & last
        return slot

    def _grow(self) -> None:
        self._slots = array("i", [_FREE]) * (2 * len(self._slots))
        for number, (low, high) in enumerate(zip(self._low, self._high, strict=True)):
            self._slots[self._slot(low, high)] = number


class Wishes:
    """The rollouts of one measurement in a row, group after group. A place is a position in that row."""

    def __init__(self, groups: Sequence[Group], keys: RolloutKeys, board: Scoreboard) -> None:
        self.groups = groups
        self._starts = list(accumulate((len(group.items) for group in groups), initial=0))
        self.numbers = array("i")
        for group in groups:
            self.numbers.extend(board.number(keys.key(group.candidate, item, group.sample)) for item in group.items)
        self.firsts = array("i")
        """The places at which a rollout is wished for that was not wished for before: each rollout once."""
        seen = bytearray(len(board))
        for place, number in enumerate(self.numbers):
            if not seen[number]:
                seen[number] = True
                self.firsts.append(place)

    def at(self, place: int) -> tuple[Group, Item]:
        index = bisect_right(self._starts, place) - 1
        group = self.groups[index]
        return group, group.items[place - self._starts[index]]

    def in_turns(self, places: Sequence[int]) -> Sequence[int]:
        """The same places so that the groups take turns, item by item, and at being first: what is compared is measured side
        by side, and an endpoint that changes meanwhile favours nobody."""
        if len(self.groups) < 2:
            return places

        def turn(place: int) -> tuple[int, int]:
            group = bisect_right(self._starts, place) - 1
            item = place - self._starts[group]
            return item, -group if item % 2 else group

        return array("i", sorted(places, key=turn))

    def by_group(self) -> list[tuple[Group, array[int]]]:
        """Each group with the numbers of its rollouts, in item order."""
        pieces = zip(self.groups, self._starts, self._starts[1:], strict=False)
        return [(group, self.numbers[start:end]) for group, start, end in pieces]
