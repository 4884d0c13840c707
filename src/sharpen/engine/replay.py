"""Resume is replay: a job's story on disk, told again and compared line by line, then continued.

On resume the trainer starts from the beginning; the ledger answers what is known, and every event it emits is compared
with the one on disk. Equal ones are skipped, a different one stops the job with "not deterministic at event N", and past the
end of the file new ones are appended. Measurements that run side by side reserve their place when they begin, so that the
order of events never depends on which finished first.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sharpen.core.digest import Json
from sharpen.core.errors import BudgetExhausted, NotDeterministic, StorageError
from sharpen.core.redact import BLANK, is_clean, redact_json
from sharpen.engine.events import BudgetEnded, Event, JobEnded, comparable, encode, line, without_clock
from sharpen.files import append_line, complete_lines, sync_file


class Slot:
    """A place in the story, reserved before its event is known."""

    __slots__ = ("clock", "event", "expected")

    def __init__(self, expected: dict[str, Any] | None) -> None:
        self.expected = expected
        """What stands at this place on disk, if the story was told this far before."""
        self.event: Event | None = None
        self.clock: dict[str, Json] = {}


class Story:
    """The events of one job. `now` gives the clock fields every event carries."""

    def __init__(self, path: Path, now: Callable[[], dict[str, Json]]) -> None:
        self.path = path
        self._now = now
        self._told = read_events(path)
        self._cut_torn_line()
        self._next = 0
        self._slots: list[Slot] = []
        self.certain = 0
        """So many events are certain to have the ledger's rows that they stand on (`durability.py`)."""
        self.changed: Callable[[], None] = lambda: None
        """Called when an event was written."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    @property
    def replaying(self) -> bool:
        """Whether the next event is one that was already told."""
        return self.next_number < len(self._told)

    @property
    def told(self) -> list[dict[str, Any]]:
        """The lines that were on disk when the story was opened."""
        return self._told

    @property
    def length(self) -> int:
        """How many events are in the file."""
        return max(self._next, len(self._told))

    @property
    def next_number(self) -> int:
        """The number of the event that is reserved next."""
        return self._next + len(self._slots)

    def number_of(self, slot: Slot) -> int:
        """The number that the event of a slot will have."""
        return self._next + self._slots.index(slot)

    def cut(self, number: int) -> None:
        """Forget what is in the file from an event on. It is worked out again."""
        ends = [end for end, _ in complete_lines(self.path)]
        os.truncate(self.path, ends[number - 1] if number else 0)
        del self._told[number:]
        for slot in self._slots[max(0, number - self._next) :]:
            slot.expected = None

    def sync(self) -> None:
        """Bring the file to the disk. Called from another thread."""
        sync_file(self.path)

    def emit(self, event: Event, **clock: Json) -> None:
        self.fill(self.reserve(), event, **clock)

    def reserve(self) -> Slot:
        n = self.next_number
        slot = Slot(self._told[n] if n < len(self._told) else None)
        self._slots.append(slot)
        return slot

    def fill(self, slot: Slot, event: Event, **clock: Json) -> None:
        slot.event = event
        slot.clock = {**self._now(), **clock}
        self._tell_what_is_due()

    def cancel(self, slot: Slot) -> None:
        """Give a reserved place back: what was to stand there did not come about."""
        if slot in self._slots:
            self._slots.remove(slot)
            self._tell_what_is_due()

    def upcoming(self) -> dict[str, Any] | None:
        """The line that was told next, where the story went on from here before."""
        n = self.next_number
        return self._told[n] if n < len(self._told) else None

    def stop_where_it_stopped(self) -> None:
        """Raise `BudgetExhausted` if that is what the story says happened next. Where a budget ended may have hung on the
        clock, and so it is not worked out again when the story is retold."""
        told = self.upcoming()
        if told is not None and told.get("type") == BudgetEnded.type:
            raise BudgetExhausted(told["message"])

    def close(self) -> None:
        os.close(self._file)

    def _tell_what_is_due(self) -> None:
        while self._slots and self._slots[0].event is not None:
            first = self._slots.pop(0)
            assert first.event is not None
            self._tell(first.event, first.clock)

    def _tell(self, event: Event, clock: dict[str, Json]) -> None:
        n = self._next
        if n < len(self._told):
            before, now = without_clock(self._told[n]), redact_json(comparable(n, event))
            if before != now and not _alike(before, now):
                raise NotDeterministic(f"not deterministic at event {n} of {self.path}: {_difference(before, now)}")
        else:
            append_line(self._file, redact_line(n, event, clock), self.path)
            self.changed()
        self._next += 1

    def _cut_torn_line(self) -> None:
        if not self.path.exists():
            return
        whole = max((end for end, _ in complete_lines(self.path)), default=0)
        if whole < self.path.stat().st_size:
            os.truncate(self.path, whole)


def redact_line(n: int, event: Event, clock: dict[str, Json]) -> bytes:
    text = line(n, event, clock)
    if is_clean(text.decode()):
        return text
    record = json.loads(text)
    clean = redact_json(record)
    return text if clean == record else encode(clean)


def read_events(path: Path) -> list[dict[str, Any]]:
    """The whole lines of an events file, as they are."""
    events = []
    for number, (_, text) in enumerate(complete_lines(path), start=1):
        try:
            event = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise StorageError(f"{path} is damaged at line {number}: {error}") from error
        if not isinstance(event, dict):
            raise StorageError(f"{path} is damaged at line {number}: it is no event")
        events.append(event)
    return events


def reopen(path: Path, *, more_budget: bool) -> None:
    """Make a stopped job's story one that can go on: drop the ending, and with `more_budget` all since the cap was met.

    A job that ended well is left alone.
    """
    keep = 0
    for end, text in complete_lines(path):
        kind = json.loads(text).get("type")
        if kind == BudgetEnded.type and more_budget:
            break
        if kind == JobEnded.type and json.loads(text)["status"] != "done":
            break
        keep = end
    else:
        return
    os.truncate(path, keep)


def _alike(before: Json, now: Json) -> bool:
    """Whether two values are the same but for what was, or is now, left out of them as secret."""
    if isinstance(before, dict) and isinstance(now, dict):
        return before.keys() == now.keys() and all(_alike(before[key], now[key]) for key in before)
    if isinstance(before, list) and isinstance(now, list):
        return len(before) == len(now) and all(_alike(*pair) for pair in zip(before, now, strict=True))
    if isinstance(before, str) and isinstance(now, str) and before != now:
        return any(
            BLANK in blanked and re.fullmatch(".*".join(map(re.escape, blanked.split(BLANK))), other, re.DOTALL)
            for blanked, other in ((before, now), (now, before))
        )
    return bool(before == now)


def _difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    if before.get("type") != now.get("type"):
        return f"it was {before.get('type')!r}, now it is {now.get('type')!r}"
    changed = [key for key in {**before, **now} if before.get(key) != now.get(key)]
    shown = ", ".join(f"{key}: {_short(before.get(key))} -> {_short(now.get(key))}" for key in changed[:3])
    return f"{before.get('type')} differs in {shown}"


def _short(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "..."
