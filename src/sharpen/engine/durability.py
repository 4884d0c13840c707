"""What outlives a power failure: ledger and event log are brought to the disk together, a second apart at most.

A write is safe from a killed process at once, but it may sit in the system's memory for half a minute before it reaches the
disk. A thread of its own (syncs wait for the disk, and nothing else should) sees to it that it is there `seconds` after it
was written at the latest, and a last time when the job ends. The order is: the ledger, then the event log, then
`durable.json`, which says how far both reach. An event is written after the ledger's rows that it stands on, so whatever
`durable.json` vouches for is there whole.

Past that point a power failure may leave any mixture: an event without its rows, half a line, a line of zeros. On resume the
log is read up to the first such line, and cut where the ledger can't answer for an event any more; what is cut is worked out
again. That is at most what `seconds` brought, paid for twice. Rows that are missing *before* that point were not lost by a
power failure: the ledger is gone, cut short, or another one. Then the job is refused, unless its owner will pay again.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sharpen.core.digest import Json
from sharpen.core.errors import StorageError, in_a_line
from sharpen.core.usage import NOTHING, Usage
from sharpen.engine.replay import Story
from sharpen.files import complete_lines, storage_error, sync_folders, write_json
from sharpen.ledger.extent import Extent, connect_read_only, find_loss, read_extent
from sharpen.ledger.store import Ledger

RECORD = "durable.json"
SCHEMA_VERSION = 1


class LedgerLost(StorageError):
    """What a job was paid for is not in its ledger any more, and going on would pay for it again."""


@dataclass(frozen=True)
class Durable:
    """How far a job is certain to be on the disk: so many events, the ledger up to here, and what it had used by then."""

    events: int = 0
    extent: Extent | None = None
    used: Usage = NOTHING

    def write(self, folder: Path) -> None:
        ledger = None if self.extent is None else self.extent.row()
        row: dict[str, Json] = {"events": self.events, "ledger": ledger, "used": self.used.told()}
        write_json(folder / RECORD, {"schema_version": SCHEMA_VERSION, **row})


def read_durable(folder: Path) -> Durable | None:
    """What is on record in a job's folder; None for a job from before there were such records."""
    path = folder / RECORD
    if not path.exists():
        return None
    try:
        row: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        extent = None if row["ledger"] is None else Extent.from_row(row["ledger"])
        return Durable(row["events"], extent, Usage.from_told(row["used"]))
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{path} is damaged: {error}; put back a copy of it, or remove it") from error


def cut_damaged_end(log: Path) -> None:
    """Cut a job's event log before the first line that a power failure left unreadable. Damage among the events that were
    certain to be on the disk has another cause, and is left for its reader to complain of."""
    durable = read_durable(log.parent)
    if durable is None:
        return
    whole = 0
    for number, (end, text) in enumerate(complete_lines(log)):
        if number >= durable.events and not _is_event(text, number):
            os.truncate(log, whole)
            return
        whole = end


def check_ledger(folder: Path, ledger: Path, told: Sequence[Mapping[str, Any]]) -> None:
    """Refuse a job whose ledger lacks what it was certain to hold, before a byte of anything is changed."""
    durable = read_durable(folder)
    used = _used(told)
    if durable is None:
        # A job from before such records: all that can be noticed is that nothing is left.
        if used.calls and not ledger.exists():
            raise _lost(ledger, "is gone", used)
        return
    if durable.extent is not None and (loss := find_loss(ledger, durable.extent)):
        raise _lost(ledger, loss, max(used, durable.used, key=lambda usage: usage.calls))


def _lost(ledger: Path, loss: str, used: Usage) -> LedgerLost:
    money = "" if used.money is None or not used.money else f" and {used.money:.4g} in money"
    return LedgerLost(
        f"the ledger {ledger} {loss}; going on would pay again for up to {used.calls:,} calls with {used.tokens:,} tokens"
        f"{money} that this job has used. Put the ledger back, with its -wal file if it had one, or add --pay-again"
    )


def open_record(folder: Path, story: Story, ledger: Path, *, pay_again: bool) -> None:
    """Compare a job's event log and ledger with what was certain of them, and tell the story which of its events may be cut.
    The record is brought in line before anything is added to either."""
    durable = read_durable(folder)
    if pay_again:
        story.certain, new = 0, Durable()
    else:
        check_ledger(folder, ledger, story.told)
        # Before there were such records nothing was certain; all the same, what is missing was not lost by a power failure.
        story.certain = len(story.told) if durable is None else min(durable.events, len(story.told))
        extent, used = (None, NOTHING) if durable is None else (durable.extent, durable.used)
        new = Durable(story.certain, extent, used)
    if new != durable:
        new.write(folder)
        sync_up_to(folder, ledger.parent)


def sync_up_to(folder: Path, top: Path) -> None:
    """Bring the names of a folder, and of those around it up to `top`, to the disk."""
    around = [parent for parent in folder.resolve().parents if parent.is_relative_to(top.resolve().parent)]
    sync_folders(folder, *around)


def go_back(story: Story, number: int, ledger: Path, what: str) -> None:
    """The ledger lacks `what`, which an event on record stands on: cut the log there, where that is what a power failure
    leaves; else refuse."""
    if number < story.certain:
        raise _lost(ledger, f"lacks {what} that event {number} of {story.path} stands on", _used(story.told))
    story.cut(number)


def _used(told: Sequence[Mapping[str, Any]]) -> Usage:
    """What the events on record used, by their own account."""
    total = NOTHING
    for line in told:
        rows = line.get("usage")
        if line.get("type") == "measured" and isinstance(rows, dict):
            total = sum((Usage.from_told(row) for row in rows.values()), total)
        elif line.get("type") == "asked" and isinstance(rows, list):
            total += Usage.from_told(rows)
    return total


def _is_event(text: bytes, number: int) -> bool:
    try:
        event = json.loads(text)
    except ValueError:
        return False
    return isinstance(event, dict) and event.get("n") == number and "type" in event


class Syncing:
    """Brings a job's ledger and event log to the disk while the job runs, on a thread of its own."""

    def __init__(
        self, folder: Path, story: Story, ledger: Ledger, used: Callable[[], Usage], *, seconds: float
    ) -> None:
        self._folder, self._story, self._ledger, self._used = folder, story, ledger, used
        self._seconds = seconds
        self._changed, self._ending, self._over = threading.Event(), threading.Event(), threading.Event()
        self._last: Extent | None = None
        self._error: StorageError | None = None
        self._thread = threading.Thread(target=self._work, name="sync", daemon=True)
        self._ended: Callable[[], None] = lambda: None
        story.changed = ledger.changed = self._note
        self._thread.start()

    def _note(self) -> None:
        """Something was written. Called for every row and event, so it does next to nothing."""
        if not self._changed.is_set():
            self._changed.set()

    async def finish(self) -> None:
        """Sync a last time, without keeping the event loop waiting; raises if what the job left is not on the disk."""
        loop = asyncio.get_running_loop()
        ended = loop.create_future()
        with suppress(StorageError):  # a ledger that is broken says so to whoever uses it
            self._last = self._ledger.extent()
        self._ended = lambda: _wake(loop, ended)
        self._ending.set()
        self._changed.set()
        try:
            if not self._over.is_set():  # it may have ended with an error before
                await ended
        finally:
            self._thread.join()
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        try:
            is_last = False
            while not is_last:
                self._changed.wait()
                self._ending.wait(self._seconds)
                self._changed.clear()
                is_last = self._ending.is_set()
                self._sync()
        except (OSError, sqlite3.Error, MemoryError) as error:
            why = storage_error(self._folder, error) if isinstance(error, OSError) else in_a_line(error)
            self._error = StorageError(f"{why}; what the last second brought may not outlive a power failure")
            self._ledger.break_down(self._error)
        finally:
            self._over.set()
            self._ended()

    def _sync(self) -> None:
        events = self._story.length  # first: the rows that these stand on are in the ledger by now
        extent = self._last or self._read_extent()
        self._ledger.sync()
        self._story.sync()
        with suppress(StorageError):  # a full disk: what was on record still holds
            Durable(events, extent, self._used()).write(self._folder)

    def _read_extent(self) -> Extent:
        with closing(connect_read_only(self._ledger.path)) as connection:
            return read_extent(connection)


def _wake(loop: asyncio.AbstractEventLoop, waiting: asyncio.Future[None]) -> None:
    """End a wait on the event loop, from another thread."""

    def end() -> None:
        if not waiting.done():
            waiting.set_result(None)

    loop.call_soon_threadsafe(end)
