"""The SQLite store of everything that cost something: every scored rollout and every model reply.

Everything happens on the event loop's own thread, because waiting for a second thread costs more than the writing does. New
rows are committed in groups: after at most a handful, and in any case before the event loop next waits for anything, so that
a killed process has lost next to nothing that was paid for. Commits go to the write-ahead log without waiting for the
platter; folding the log into the file, which does wait, is done by a thread of its own. Several processes may use one
ledger. Whoever is about to pay for a reply claims it first (`claims.py`), so that of several only one does; a claim ends
when the reply can be read by everybody. What a call may cost is on record before it leaves (`payments.py`).

Before a call leaves, there is room on the disk for what it may bring (`reserve.py`). When the disk is full all the same,
that room is given up so that what was paid for still gets in; from then on the ledger refuses further work with a
`StorageError`, and at its end it says what found no room.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sharpen.core.chat import Message, Reply
from sharpen.core.digest import Json, encoder
from sharpen.core.errors import StorageError, UsageError
from sharpen.core.outcome import Outcome
from sharpen.core.usage import Usage
from sharpen.files import sync_file, sync_folders
from sharpen.ledger.claims import Claims
from sharpen.ledger.connection import fold_log, open_database
from sharpen.ledger.extent import ADD_ID, Extent, read_extent
from sharpen.ledger.key_filter import KeyFilter
from sharpen.ledger.payments import WRITE, Paid, Session, sum_accounts
from sharpen.ledger.reserve import Reserve, Unstored, row_bytes
from sharpen.ledger.rows import as_text, read_measures, read_text, read_usage

SCHEMA_VERSION = 1
_CHUNK = 500
_GROUP = 32
_IN_VAIN = 200
"""Replies that were asked for and not there, before those that are there are learnt by heart."""
_FOLD_BYTES = 8 << 20
"""How large the write-ahead log may grow before it is folded into the file."""
_INSERT_ROLLOUT = (
    "INSERT OR IGNORE INTO rollouts(key,task,item,candidate,sample,hard,soft,usage,body,at,measures) "
    "VALUES(?,?,?,?,?,?,?,?,?,?,?)"
)
_INSERT_REPLY = (
    "INSERT OR IGNORE INTO replies(key,model,role,request,text,finish,tool_calls,usage,at) VALUES(?,?,?,?,?,?,?,?,?)"
)
_as_json = encoder()


@dataclass(frozen=True, slots=True)
class Scored:
    """The part of a stored rollout that evaluations need; the rest is fetched with `Ledger.outcome`."""

    hard: float
    soft: float
    usage: Mapping[str, Usage]
    measures: Mapping[str, float]


class Ledger:
    """One open ledger file. Use as a context manager, or call `close`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._log = path.with_name(path.name + "-wal")
        self._claims = Claims(path)
        self._error: StorageError | None = None
        self._rollouts: list[tuple[object, ...]] = []
        self._replies: dict[bytes, tuple[object, ...]] = {}
        self._sessions: dict[int, Session] = {}
        self._unstored = Unstored()
        self._committing: list[asyncio.Future[None]] = []
        self._commit_is_due = False
        self._folding: threading.Thread | None = None
        self._since_fold = 0
        self._asked_in_vain = 0
        self._named = False
        """Whether the file's name, and that of its log, are known to be on the disk."""
        self.changed: Callable[[], None] = lambda: None
        """Called when rows were committed."""
        self._paid_replies: KeyFilter | None = None
        """Made once it is worth its making: a small job asks for less than a large ledger holds."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = open_database(path)
            self._check_version()
            self._db.execute(ADD_ID)
            self._reserve = Reserve(path.parent)
        except (sqlite3.Error, OSError) as error:
            raise StorageError(f"cannot open the ledger {path}: {error}") from error

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Commit what is queued and let go of the file; raises if something that was paid for could not be stored."""
        self._commit()
        if self._unstored:
            self._write_what_fits()
        if self._folding is not None:
            self._folding.join()
        self._db.close()
        self._claims.close()
        self._reserve.close()
        unstored, self._unstored = self._unstored, Unstored()
        if unstored:
            raise StorageError(
                f"the disk had no room for {unstored}: they are lost, and what was paid for them is paid again on resume; "
                f"all others are stored in {self.path}. Make room on the disk, then resume"
            )

    def scores(self, keys: Iterable[bytes]) -> dict[bytes, Scored]:
        """What is known of these rollouts. Unknown keys are absent."""
        self._commit()
        found: dict[bytes, Scored] = {}
        asked = list(keys)
        for start in range(0, len(asked), _CHUNK):
            chunk = asked[start : start + _CHUNK]
            marks = ",".join("?" * len(chunk))
            rows = self._rows(f"SELECT key,hard,soft,usage,measures FROM rollouts WHERE key IN ({marks})", chunk)
            found.update(
                (key, Scored(hard, soft, read_usage(used), read_measures(more))) for key, hard, soft, used, more in rows
            )
        return found

    def outcome(self, key: bytes) -> Outcome | None:
        """A stored rollout in full, trajectory included."""
        self._commit()
        asked = "SELECT item,hard,soft,usage,body,measures FROM rollouts WHERE key=?"
        rows = self._rows(asked, (key,))
        if not rows:
            return None
        item, hard, soft, usage, body, measures = rows[0]
        answer, feedback, trajectory = json.loads(read_text(body))
        messages = tuple(Message(role, content) for role, content in trajectory)
        return Outcome(
            read_text(item), hard, soft, answer, feedback, messages, read_usage(usage), measures=read_measures(measures)
        )

    def add_rollout(self, key: bytes, task: str, candidate: str, sample: int, outcome: Outcome) -> None:
        """Store a scored rollout. Failed ones are not paid for and are never stored."""
        if outcome.failure is not None:
            raise ValueError("a failed rollout does not belong in the ledger")
        usage = _as_json({role: used.row() for role, used in outcome.usage.items()})
        body = as_text(_as_json(outcome.body()))
        item = as_text(outcome.item_id)
        measures = _as_json(dict(outcome.measures)) if outcome.measures else None
        row = (key, task, item, candidate, sample, outcome.hard, outcome.soft, usage, body, time.time(), measures)
        self._rollouts.append(row)
        self._reserve.largest = max(self._reserve.largest, 2 * row_bytes(row))
        self._commit_soon()

    def claim(self, key: bytes, expected: int = 0) -> bool:
        """Whether it is for this process to pay for a reply; False while another one does. Look for the reply again once it
        is. The claim ends when the reply is stored, or with `release`. Where the disk has no room for what all calls under
        way may bring, `expected` bytes each or as much as one did before, nothing is to be paid for."""
        if not self._claims.take(key):
            return False
        try:
            self._reserve.hold(len(self._claims), expected)
        except OSError as error:
            self._claims.release(key)
            raise StorageError(
                f"the disk has no room for the answers of {len(self._claims) + 1} calls at once beside the ledger "
                f"{self.path}: {error.strerror}; this one was not made. Make room on the disk, then resume"
            ) from error
        return True

    def release(self, key: bytes) -> None:
        """Give a claim up. That of a reply which is stored ends when others can read it."""
        if key not in self._replies:
            self._claims.release(key)

    def reply(self, key: bytes, *, claimed: bool = False) -> Reply | None:
        """A stored model reply. Whoever finds none will pay for one, so a ledger that can't keep it refuses here. The answer
        to who has `claimed` the key is certain; else it may leave out what another process stored a moment ago."""
        self._raise_if_broken()
        if not claimed and self._paid_replies is not None and not self._paid_replies.may_hold(key):
            return None
        if key in self._replies:
            self._commit()
        rows = self._rows("SELECT text,finish,tool_calls,usage FROM replies WHERE key=?", (key,))
        if not rows:
            self._note_in_vain()
            return None
        text, finish, tool_calls, usage = rows[0]
        calls = tuple(json.loads(tool_calls)) if tool_calls != "[]" else ()
        return Reply(read_text(text), Usage(*json.loads(usage)), finish, tool_calls=calls)

    def add_reply(self, key: bytes, model: str, role: str, reply: Reply, request: Json = None) -> None:
        """Store a model reply; `request` is kept beside it where somebody will want to read it."""
        kept = None if request is None else as_text(_as_json(request))
        calls = json.dumps([dict(call) for call in reply.tool_calls]) if reply.tool_calls else "[]"
        usage = _as_json(reply.usage.row())
        self._replies[key] = row = (
            key,
            model,
            role,
            kept,
            as_text(reply.text),
            reply.finish,
            calls,
            usage,
            time.time(),
        )
        # The rollout that comes of it quotes what was asked and answered.
        self._reserve.largest = max(self._reserve.largest, 3 * row_bytes(row))
        if self._paid_replies is not None:
            self._paid_replies.add(key)
        self._commit_soon()

    def paid(self, account: str) -> Paid:
        """What the sessions of an account have paid, those that were killed included."""
        self._commit()
        try:
            return sum_accounts(self._db).get(account, Paid())
        except sqlite3.Error as error:
            raise StorageError(f"cannot read the ledger {self.path}: {error}") from error

    def note_payments(self, session: Session) -> None:
        """Write what a session has paid with the next commit."""
        self._sessions[session.number] = session
        self._commit_soon()

    async def committed(self) -> None:
        """Wait until all that was handed over so far outlives this process; raises if it can't be made to."""
        if self._rollouts or self._replies or self._sessions:
            waiting = asyncio.get_running_loop().create_future()
            self._committing.append(waiting)
            await waiting
        self._raise_if_broken()

    def flush(self) -> None:
        """Commit everything stored so far; raises if it, or anything before it, could not be."""
        self._commit()
        self._raise_if_broken()

    def extent(self) -> Extent:
        """Which ledger this is, and how far it reaches."""
        self.flush()
        return read_extent(self._db)

    def sync(self) -> None:
        """Bring everything that was committed to the disk. Called from another thread, which it keeps waiting."""
        if self._log.exists():
            sync_file(self._log)
        if not self._named:
            sync_folders(self.path.parent)
            self._named = True

    def break_down(self, error: StorageError) -> None:
        """Refuse further work: something that was to be kept can't be."""
        self._error = self._error or error

    def counts(self) -> dict[str, int]:
        """How many rollouts and replies are stored."""
        self._commit()
        tables = ("rollouts", "replies")
        return {table: self._rows(f"SELECT COUNT(*) FROM {table}")[0][0] for table in tables}

    def _check_version(self) -> None:
        asked = "SELECT value FROM about WHERE name='schema_version'"
        row = self._db.execute(asked).fetchone()
        if row is None:
            self._db.execute("INSERT OR IGNORE INTO about VALUES('schema_version', ?)", (str(SCHEMA_VERSION),))
            row = self._db.execute(asked).fetchone()
        found = row[0]
        if found != str(SCHEMA_VERSION):
            self._db.close()
            raise UsageError(
                f"{self.path} is a ledger of schema version {found}; this sharpen reads version {SCHEMA_VERSION}"
            )

    def _note_in_vain(self) -> None:
        self._asked_in_vain += 1
        if self._paid_replies is None and self._asked_in_vain == _IN_VAIN:
            self._commit()
            self._paid_replies = KeyFilter()
            for (key,) in self._rows("SELECT key FROM replies"):
                self._paid_replies.add(key)

    def _rows(self, query: str, values: Sequence[object] = ()) -> list[Any]:
        try:
            return self._db.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise StorageError(
                f"cannot read the ledger {self.path}: {error}; if the file is damaged, put back a copy of it, or begin anew"
            ) from error

    def _raise_if_broken(self) -> None:
        if self._error is not None:
            raise self._error

    def _commit_soon(self) -> None:
        """Commit now if a group is full, else as soon as the event loop has dealt with what is at hand."""
        if self._error is not None:
            self._commit()
            raise self._error
        if len(self._rollouts) + len(self._replies) >= _GROUP:
            self._commit()
        elif not self._commit_is_due:
            try:
                asyncio.get_running_loop().call_soon(self._commit)
                self._commit_is_due = True
            except RuntimeError:  # no event loop: nothing to wait for
                self._commit()

    def _commit(self) -> None:
        self._commit_is_due = False
        if not (self._rollouts or self._replies or self._sessions):
            return
        try:
            if self._error is None:
                self._write(self._replies.values(), self._rollouts, self._sessions.values())
            else:
                self._write_what_fits()
        except sqlite3.Error as error:
            self._reserve.give_up()
            self._write_what_fits()
            self._error = StorageError(f"cannot write to the ledger {self.path}: {error}; {self._what_is_stored()}")
        for key in self._replies:
            self._claims.release(key)
        self._rollouts.clear()
        self._replies.clear()
        self._sessions.clear()
        for waiting in self._committing:
            if not waiting.done():
                waiting.set_result(None)
        self._committing.clear()

    def _write(
        self,
        replies: Collection[tuple[object, ...]] = (),
        rollouts: Collection[tuple[object, ...]] = (),
        sessions: Collection[Session] = (),
    ) -> None:
        db = self._db
        db.execute("BEGIN IMMEDIATE")
        try:
            if replies:
                db.executemany(_INSERT_REPLY, replies)
            if rollouts:
                db.executemany(_INSERT_ROLLOUT, rollouts)
            for session in sessions:
                db.execute(WRITE, session.row())
            db.execute("COMMIT")
        except sqlite3.Error:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
        self.changed()
        self._since_fold += len(replies) + len(rollouts)
        if self._since_fold > 1000:
            self.fold()

    def _write_what_fits(self) -> None:
        """Write row by row, what did not fit before included. What does not fit now is kept in memory for the next time."""
        with suppress(sqlite3.Error):
            self._write(sessions=self._sessions.values())
        before, self._unstored = self._unstored, Unstored()
        for row in (*before.replies, *self._replies.values()):
            try:
                self._write(replies=[row])
            except sqlite3.Error:
                self._unstored.replies.append(row)
        for row in (*before.rollouts, *self._rollouts):
            try:
                self._write(rollouts=[row])
            except sqlite3.Error:
                self._unstored.rollouts.append(row)

    def _what_is_stored(self) -> str:
        if not self._unstored:
            return "all that was answered so far is stored. Make room on the disk, then resume"
        return (
            f"{self._unstored} do not fit, and are lost unless there is room before this process ends; all others are "
            "stored. Make room on the disk, then resume"
        )

    def fold(self) -> None:
        """Fold the write-ahead log into the file, on a thread of its own, if it has grown large."""
        self._since_fold = 0
        busy = self._folding is not None and self._folding.is_alive()
        if not busy and self._log.exists() and self._log.stat().st_size > _FOLD_BYTES:
            self._folding = threading.Thread(target=fold_log, args=(self.path,), name="ledger-fold", daemon=True)
            self._folding.start()
