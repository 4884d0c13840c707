"""Resume is replay: a job's event log on disk, replayed and compared line by line, then continued.

On resume the trainer starts from the beginning; the ledger answers what is known, and every event it emits is compared
with the one on disk. Equal ones are skipped, a different one stops the job with "not deterministic at event N", and past the
end of the file new ones are appended.

Questions that run side by side reserve their places when they begin, and a trainer is given its answers in the order of
those places, when the event is written and not before. So what a trainer knows is always what the log says, whoever
finished first. A question that ends with an exception leaves a barrier at its place: nothing that was reserved after it is
ever written by this process, nor given to the trainer. What was answered there is in the ledger, and costs nothing when the
job is resumed. Only the end of the job may stand at a barrier; and the end of its budget, after which a trainer may go on.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sharpen.core.digest import Json
from sharpen.core.errors import BudgetExhausted, Interrupted, NotDeterministic, StorageError, in_a_line
from sharpen.core.redact import BLANK, is_clean, redact_json
from sharpen.engine.events import LOG_VERSION, BudgetEnded, Event, JobEnded, comparable, encode, line, without_clock
from sharpen.engine.shifted import is_shifted, project
from sharpen.files import append_line, complete_lines, sync_file, write_atomic

WRITER = "log"
"""The field of `clock` that says which version of this module wrote a line and those after it."""


class Place:
    """A position in the log, reserved before its event is known."""

    __slots__ = ("clock", "error", "event", "question", "recorded", "settled", "waiter")

    def __init__(self, recorded: dict[str, Any] | None, question: Callable[[], dict[str, Any]] | None) -> None:
        self.recorded = recorded
        """The line that an earlier session left at this position."""
        self.question = question
        """The fields of its event that are known from the start."""
        self.event: Event | None = None
        self.clock: dict[str, Json] = {}
        self.settled = False
        """Whether the event is written, or compared with the line that stood there."""
        self.error: Exception | None = None
        """Why it never will be, where there is a barrier before it."""
        self.waiter: asyncio.Future[None] | None = None


class Story:
    """The events of one job. `now` gives the clock fields every event carries; `on_notice` is told what a person should
    know of the log itself."""

    def __init__(
        self, path: Path, now: Callable[[], dict[str, Json]], on_notice: Callable[[str], None] = lambda notice: None
    ) -> None:
        self.path = path
        self._now = now
        self._on_notice = on_notice
        self._told = read_events(path)
        self._first_of_this_version = next(
            (n for n, record in enumerate(self._told) if WRITER in record.get("clock", {})), len(self._told)
        )
        self._cut_torn_line()
        self._next = 0
        self._places: list[Place] = []
        self._barrier: BaseException | None = None
        self._marked = False
        self.certain = 0
        """So many events are certain to have the ledger's rows that they stand on (`durability.py`)."""
        self.changed: Callable[[], None] = lambda: None
        """Called when an event was written."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)

    @property
    def replaying(self) -> bool:
        """Whether the next event is one that is on disk already."""
        return self.next_number < len(self._told)

    @property
    def told(self) -> list[dict[str, Any]]:
        """The lines of earlier sessions."""
        return self._told

    @property
    def length(self) -> int:
        """How many events are in the file."""
        return max(self._next, len(self._told))

    @property
    def next_number(self) -> int:
        """The number of the event that is reserved next."""
        return self._next + len(self._places)

    def number_of(self, place: Place) -> int:
        """The number that the event of a place will have."""
        return self._next + self._places.index(place)

    def cut(self, number: int) -> None:
        """Forget what is in the file from an event on. It is worked out again."""
        ends = [0, *(end for end, _ in complete_lines(self.path))]
        os.truncate(self.path, ends[number])
        del self._told[number:]
        self.certain = min(self.certain, number)
        for place in self._places[max(0, number - self._next) :]:
            place.recorded = None

    def sync(self) -> None:
        """Bring the file to the disk. Called from another thread."""
        sync_file(self.path)

    @property
    def budget_barrier(self) -> str | None:
        """Why the budget ended, where that stopped a question and the trainer has not gone on since."""
        return str(self._barrier) if isinstance(self._barrier, BudgetExhausted) else None

    def emit(self, event: Event, **clock: Json) -> dict[str, Any] | None:
        """Add an event. Returns the line that an earlier session left at its position, if any. The end of the job, and the
        end of its budget after a question was refused, give up all places that are still open and stand there."""
        ends_job = isinstance(event, JobEnded)
        if ends_job or (isinstance(event, BudgetEnded) and self.budget_barrier is not None):
            self._drop(0, self._barrier or Interrupted("the job has ended"))
            self._barrier = None
        place = self._reserve(None)
        self._set(place, event, clock)
        if ends_job:
            self._barrier = Interrupted("the job has ended")
        return place.recorded

    @asynccontextmanager
    async def place(self, question: Callable[[], dict[str, Any]]) -> AsyncIterator[Place]:
        """Reserve the next position for the event of one question. An exception inside leaves a barrier there. `question`
        gives the fields of the event that are known now, to be compared with the line that stands there."""
        place = self._reserve(question)
        try:
            await asyncio.sleep(0)  # whatever starts side by side takes its place before any of it ends
            self.check(place)
            self._compare_question(place)
            yield place
        except BaseException as error:
            self._give_up(place, error)
            raise

    async def fill(self, place: Place, event: Event, **clock: Json) -> None:
        """Say what stands at a place, and wait until it is written: all before it have to be written first."""
        self.check(place)
        self._set(place, event, clock)
        if not place.settled:
            place.waiter = asyncio.get_running_loop().create_future()
            await place.waiter

    def check(self, place: Place) -> None:
        """Raise the error that left a barrier at or before this place."""
        if place.error is not None:
            raise place.error

    def upcoming(self) -> dict[str, Any] | None:
        """The line that an earlier session left at the next position."""
        n = self.next_number
        return self._told[n] if n < len(self._told) else None

    def stop_at_recorded_end(self) -> None:
        """Raise `BudgetExhausted` if the log says that this is what happened next. Where a budget ended may have depended
        on the clock, so it is not worked out again on replay."""
        _raise_recorded_end(self.upcoming())

    def close(self) -> None:
        """Write nothing more."""
        self._drop(0, Interrupted("the job's event log is closed"))
        os.close(self._file)

    def _reserve(self, question: Callable[[], dict[str, Any]] | None) -> Place:
        if self._barrier is not None:
            raise _passed_on(self._barrier)
        place = Place(self.upcoming(), question)
        self._places.append(place)
        return place

    def _set(self, place: Place, event: Event, clock: dict[str, Json]) -> None:
        place.event, place.clock = event, {**self._now(), **clock}
        self._write_what_is_due()
        self.check(place)

    def _give_up(self, place: Place, error: BaseException) -> None:
        if place in self._places:
            self._drop(self._places.index(place), error)

    def _drop(self, start: int, error: BaseException) -> None:
        """Leave a barrier: the places from here on are never written, and whoever waits for one gets the error."""
        dropped = self._places[start:]
        del self._places[start:]
        self._barrier = error
        for place in dropped:
            place.error = _passed_on(error)
            if place.waiter is not None and not place.waiter.done():
                place.waiter.set_exception(place.error)
                place.waiter.exception()  # marks it as seen: whoever waited may be gone

    def _write_what_is_due(self) -> None:
        while self._places and self._places[0].event is not None:
            first = self._places[0]
            try:
                self._write(first)
            except BaseException as error:
                self._drop(0, error)
                return
            self._places.pop(0)
            first.settled = True
            if first.waiter is not None and not first.waiter.done():
                first.waiter.set_result(None)

    def _write(self, place: Place) -> None:
        event, n = place.event, self._next
        assert event is not None
        if place.recorded is not None:
            before, now = without_clock(place.recorded), redact_json(comparable(n, event))
            if before != now and not _alike(before, now):
                raise self._not_deterministic(n, before, now)
        else:
            mark: dict[str, Json] = {} if self._marked else {WRITER: LOG_VERSION}
            append_line(self._file, redact_line(n, event, {**place.clock, **mark}), self.path)
            self._marked = True
            self.changed()
        self._next += 1

    def _compare_question(self, place: Place) -> None:
        """Find out before anything is paid for whether this is what was asked here before."""
        _raise_recorded_end(place.recorded)
        if place.recorded is None or place.question is None:
            return
        n = self.number_of(place)
        asked = redact_json({"n": n, **place.question()})
        before = project(place.recorded, asked)
        if _alike(before, asked):
            return
        side_by_side = self._places[self._places.index(place) :]
        questions = [redact_json(other.question()) for other in side_by_side if other.question is not None]
        if n < self._first_of_this_version and is_shifted(self._told[n:], questions):
            self._cut_back(n)
            return
        raise self._not_deterministic(n, before, asked)

    def _cut_back(self, n: int) -> None:
        """Drop the lines from `n` on, which an earlier version of sharpen wrote at wrong positions."""
        ends = [0, *(end for end, _ in complete_lines(self.path))]
        aside = self.path.with_name(f"{self.path.stem}-cut-{n}{self.path.suffix}")
        lines = len(self._told) - n
        write_atomic(aside, self.path.read_bytes()[ends[n] :])
        self.cut(n)
        self._on_notice(
            f"{self.path.name}: an earlier version of sharpen wrote {lines} events from number {n} on at wrong positions "
            f"when a question failed; they are now in {aside.name}, and the job goes on from event {n}"
        )

    def _not_deterministic(self, n: int, before: dict[str, Any], now: dict[str, Any]) -> NotDeterministic:
        return NotDeterministic(f"not deterministic at event {n} of {self.path}: {_difference(before, now)}")

    def _cut_torn_line(self) -> None:
        if not self.path.exists():
            return
        whole = max((end for end, _ in complete_lines(self.path)), default=0)
        if whole < self.path.stat().st_size:
            os.truncate(self.path, whole)


def _passed_on(error: BaseException) -> Exception:
    """What everybody gets who would go on past a barrier."""
    if isinstance(error, Exception):
        return error
    return Interrupted(f"given up with another question of this job ({in_a_line(error)})")


def _raise_recorded_end(recorded: dict[str, Any] | None) -> None:
    if recorded is not None and recorded.get("type") == BudgetEnded.type:
        raise BudgetExhausted(recorded["message"])


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
