"""The SQLite store of everything that cost something: every scored rollout and every model reply.

Reads happen on the caller's thread; writes are queued and committed in groups by one writer thread, so that a slow disk
never holds up the event loop and a commit is shared by all that came in meanwhile. What was queued can be read back at
once; `flush` waits until it is safe from a crash of the process. Write-ahead logging lets several processes use one
ledger. When the disk fills up, a small file kept for that moment is given up so that what was already paid for still gets
in, and then the ledger refuses further work with a `StorageError`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import queue
import sqlite3
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sharpen.core.chat import Message, Reply
from sharpen.core.digest import Json
from sharpen.core.errors import StorageError, UsageError
from sharpen.core.outcome import Outcome
from sharpen.core.usage import Usage

SCHEMA_VERSION = 1
_CHUNK = 500
_SPARE_BYTES = 1 << 20
_TABLES = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS rollouts (
  id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, task TEXT NOT NULL, item TEXT NOT NULL, candidate TEXT NOT NULL,
  sample INTEGER NOT NULL, hard REAL NOT NULL, soft REAL NOT NULL, usage TEXT NOT NULL, body TEXT NOT NULL,
  at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS replies (
  id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, model TEXT NOT NULL, role TEXT NOT NULL, request TEXT,
  text TEXT NOT NULL, finish TEXT NOT NULL, tool_calls TEXT NOT NULL, usage TEXT NOT NULL, at REAL NOT NULL);
"""
_INSERT = {
    "rollouts": "INSERT OR IGNORE INTO rollouts(key,task,item,candidate,sample,hard,soft,usage,body,at)"
    " VALUES(?,?,?,?,?,?,?,?,?,?)",
    "replies": "INSERT OR IGNORE INTO replies(key,model,role,request,text,finish,tool_calls,usage,at)"
    " VALUES(?,?,?,?,?,?,?,?,?)",
}


@dataclass(frozen=True, slots=True)
class Scored:
    """The part of a stored rollout that evaluations need; the rest is fetched with `Ledger.outcome`."""

    hard: float
    soft: float
    usage: Mapping[str, Usage]


class Ledger:
    """One open ledger file. Use as a context manager, or call `close`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._spare = path.with_name(path.name + ".spare")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._reader = self._connect()
            self._reader.executescript(_TABLES)
            self._check_version()
            if not self._spare.exists():
                self._spare.write_bytes(b"\0" * _SPARE_BYTES)
        except (sqlite3.Error, OSError) as error:
            raise StorageError(f"cannot open the ledger {path}: {error}") from error
        self._pending: dict[bytes, tuple[str, tuple[object, ...]]] = {}
        self._queue: queue.SimpleQueue[tuple[str, tuple[object, ...]] | None] = queue.SimpleQueue()
        self._queued = 0
        self._committed = 0
        self._error: StorageError | None = None
        self._done = threading.Condition()
        self._waiting: list[tuple[int, asyncio.AbstractEventLoop, asyncio.Future[None]]] = []
        self._writer = threading.Thread(target=self._write, name="ledger-writer", daemon=True)
        self._writer.start()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Commit what is queued and let go of the file. Safe to call twice."""
        if self._writer.is_alive():
            self._queue.put(None)
            self._writer.join()
        self._reader.close()
        if self._error is None:
            self._spare.unlink(missing_ok=True)

    def scores(self, keys: Iterable[bytes]) -> dict[bytes, Scored]:
        """What is known of these rollouts. Unknown keys are absent."""
        found: dict[bytes, Scored] = {}
        asked: list[bytes] = []
        for key in keys:
            # Looked at before the table: the writer commits first and forgets afterwards.
            entry = self._pending.get(key)
            if entry is None:
                asked.append(key)
            else:
                hard, soft, usage = entry[1][5:8]
                found[key] = Scored(hard, soft, _usage(usage))  # type: ignore[arg-type]
        for start in range(0, len(asked), _CHUNK):
            chunk = asked[start : start + _CHUNK]
            marks = ",".join("?" * len(chunk))
            rows = self._reader.execute(f"SELECT key,hard,soft,usage FROM rollouts WHERE key IN ({marks})", chunk)
            found.update((key, Scored(hard, soft, _usage(usage))) for key, hard, soft, usage in rows)
        return found

    def outcome(self, key: bytes) -> Outcome | None:
        """A stored rollout in full, trajectory included."""
        entry = self._pending.get(key)
        if entry is not None:
            row = entry[1][2:9]
        else:
            row = self._reader.execute(
                "SELECT item,candidate,sample,hard,soft,usage,body FROM rollouts WHERE key=?", (key,)
            ).fetchone()
        if row is None:
            return None
        item, _, _, hard, soft, usage, body = row
        answer, feedback, trajectory = json.loads(body)  # type: ignore[arg-type]
        messages = tuple(Message(role, content) for role, content in trajectory)
        return Outcome(item, hard, soft, answer, feedback, messages, _usage(usage))  # type: ignore[arg-type]

    def add_rollout(self, key: bytes, task: str, candidate: str, sample: int, outcome: Outcome) -> None:
        """Queue a scored rollout. Failed ones are not paid for and are never stored."""
        if outcome.failure is not None:
            raise ValueError("a failed rollout does not belong in the ledger")
        usage = json.dumps({role: used.row() for role, used in outcome.usage.items()})
        body = json.dumps(outcome.body(), ensure_ascii=False)
        row = (key, task, outcome.item_id, candidate, sample, outcome.hard, outcome.soft, usage, body, time.time())
        self._add("rollouts", row)

    def reply(self, key: bytes) -> Reply | None:
        """A stored model reply."""
        entry = self._pending.get(key)
        if entry is not None:
            row = entry[1][4:8]
        else:
            row = self._reader.execute(
                "SELECT text,finish,tool_calls,usage FROM replies WHERE key=?", (key,)
            ).fetchone()
        if row is None:
            return None
        text, finish, tool_calls, usage = row
        calls = tuple(json.loads(tool_calls)) if tool_calls != "[]" else ()  # type: ignore[arg-type]
        return Reply(text, Usage(*json.loads(usage)), finish, tool_calls=calls)  # type: ignore[arg-type]

    def add_reply(self, key: bytes, model: str, role: str, reply: Reply, request: Json = None) -> None:
        """Queue a model reply; `request` is kept beside it where somebody will want to read it."""
        kept = None if request is None else json.dumps(request, ensure_ascii=False)
        calls = json.dumps([dict(call) for call in reply.tool_calls]) if reply.tool_calls else "[]"
        usage = json.dumps(reply.usage.row())
        self._add("replies", (key, model, role, kept, reply.text, reply.finish, calls, usage, time.time()))

    async def flush(self) -> None:
        """Wait until everything queued so far is committed."""
        with self._done:
            self._raise_if_broken()
            if self._committed >= self._queued:
                return
            loop = asyncio.get_running_loop()
            future: asyncio.Future[None] = loop.create_future()
            self._waiting.append((self._queued, loop, future))
        await future
        self._raise_if_broken()

    def counts(self) -> dict[str, int]:
        """How many rollouts and replies are stored."""
        return {
            table: self._reader.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]
            for table in ("rollouts", "replies")
        }

    def paid(self) -> dict[str, Usage]:
        """What all stored replies cost, by model."""
        totals: dict[str, Usage] = {}
        for model, usage in self._reader.execute("SELECT model,usage FROM replies"):
            totals[model] = totals.get(model, Usage()) + Usage(*json.loads(usage))
        return totals

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, isolation_level=None, timeout=60, check_same_thread=False)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        return connection

    def _check_version(self) -> None:
        self._reader.execute("INSERT OR IGNORE INTO about VALUES('schema_version', ?)", (str(SCHEMA_VERSION),))
        found = self._reader.execute("SELECT value FROM about WHERE name='schema_version'").fetchone()[0]
        if found != str(SCHEMA_VERSION):
            raise UsageError(
                f"{self.path} is a ledger of schema version {found}; this version of sharpen reads version {SCHEMA_VERSION}"
            )

    def _add(self, table: str, row: tuple[object, ...]) -> None:
        self._raise_if_broken()
        self._pending[row[0]] = (table, row)  # type: ignore[index]
        self._queued += 1
        self._queue.put((table, row))

    def _raise_if_broken(self) -> None:
        if self._error is not None:
            raise self._error

    def _write(self) -> None:
        connection = self._connect()
        open_for_more = True
        while open_for_more:
            batch = [self._queue.get()]
            with contextlib.suppress(queue.Empty):
                while True:
                    batch.append(self._queue.get_nowait())
            open_for_more = batch[-1] is not None
            entries = [entry for entry in batch if entry is not None]
            try:
                self._commit_with_spare(connection, entries)
            except sqlite3.Error as error:
                self._error = StorageError(
                    f"cannot write to the ledger {self.path}: {error}; "
                    "what was stored before is safe, free some space and resume"
                )
            self._settle(entries)
        connection.close()

    def _commit_with_spare(self, connection: sqlite3.Connection, entries: list[tuple[str, tuple[object, ...]]]) -> None:
        """Commit; when the disk is full, give up the spare file, commit with the room that makes, and then refuse more."""
        try:
            self._commit(connection, entries)
        except sqlite3.OperationalError:
            if not self._spare.exists():
                raise
            self._spare.unlink()
            self._commit(connection, entries)
            self._error = StorageError(
                f"cannot write to the ledger {self.path}: the disk is full; all that was paid for is stored, "
                "free some space and resume"
            )

    @staticmethod
    def _commit(connection: sqlite3.Connection, entries: list[tuple[str, tuple[object, ...]]]) -> None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            for table, insert in _INSERT.items():
                rows = [row for name, row in entries if name == table]
                if rows:
                    connection.executemany(insert, rows)
            connection.execute("COMMIT")
        except sqlite3.Error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _settle(self, entries: list[tuple[str, tuple[object, ...]]]) -> None:
        with self._done:
            for _, row in entries:
                self._pending.pop(row[0], None)  # type: ignore[call-overload]
            self._committed += len(entries)
            ready = [entry for entry in self._waiting if entry[0] <= self._committed]
            self._waiting = [entry for entry in self._waiting if entry[0] > self._committed]
        for _, loop, future in ready:
            with contextlib.suppress(RuntimeError):  # the loop is gone: nobody waits any more
                loop.call_soon_threadsafe(_resolve, future)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _usage(text: str) -> dict[str, Usage]:
    return {role: Usage(*row) for role, row in json.loads(text).items()}
