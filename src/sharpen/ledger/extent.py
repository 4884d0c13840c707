"""Which ledger a job stands on, and how far it reaches: enough to notice later that it is gone, cut short or another one.

Every ledger has an id of its own, and rows are only ever added, each with a number. So the id, the numbers of the last rows
and their keys say whether a file still holds all that it held before.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sharpen.core.digest import Json
from sharpen.core.errors import StorageError

ADD_ID = "INSERT OR IGNORE INTO about VALUES('ledger_id', lower(hex(randomblob(16))))"
_ID = "SELECT value FROM about WHERE name='ledger_id'"
_TABLES = ("replies", "rollouts")


@dataclass(frozen=True)
class Last:
    """The last row of a table: its number, 0 where there is none, and its key."""

    number: int = 0
    key: str = ""


@dataclass(frozen=True)
class Extent:
    """A ledger's id and the last rows of its tables."""

    ledger: str
    replies: Last
    rollouts: Last

    def row(self) -> dict[str, Json]:
        def pair(last: Last) -> Json:
            return [last.number, last.key]

        return {"id": self.ledger, "replies": pair(self.replies), "rollouts": pair(self.rollouts)}

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> Extent:
        return cls(row["id"], Last(*row["replies"]), Last(*row["rollouts"]))


def read_extent(connection: sqlite3.Connection) -> Extent:
    """The extent of an open ledger."""
    row = connection.execute(_ID).fetchone()
    return Extent("" if row is None else row[0], *(_last(connection, table) for table in _TABLES))


def connect_read_only(ledger: Path) -> sqlite3.Connection:
    """Open a ledger without changing a byte of it, in a folder that can't be written to as well."""
    if not ledger.exists():
        raise StorageError(f"there is no ledger {ledger}")
    # Without a log, nobody has it open: it can be read as it lies there. With one, SQLite must be let at the log.
    settled = "" if ledger.with_name(ledger.name + "-wal").exists() else "&immutable=1"
    connection = sqlite3.connect(f"{ledger.resolve().as_uri()}?mode=ro{settled}", uri=True, timeout=60)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        connection.close()
        if os.access(ledger.parent, os.W_OK):
            raise
        return _connect_to_copy(ledger)  # a log in a folder that can't be written to
    return connection


def copy_ledger(ledger: Path, folder: Path) -> Path:
    """A copy of a ledger in a folder, with what is still in its log."""
    try:
        for path in (ledger, ledger.with_name(ledger.name + "-wal")):
            if path.exists():
                shutil.copyfile(path, folder / path.name)
    except OSError as error:
        raise StorageError(f"cannot read the ledger {ledger}: {error.strerror}") from error
    return folder / ledger.name


def _connect_to_copy(ledger: Path) -> sqlite3.Connection:
    """A connection to a copy of a ledger that has no name any more, and ends with the connection."""
    with tempfile.TemporaryDirectory(prefix="sharpen-ledger-") as folder:
        connection = sqlite3.connect(copy_ledger(ledger, Path(folder)), isolation_level=None)
        connection.execute("PRAGMA journal_mode=DELETE")  # folds the log into the file
    return connection


def find_loss(ledger: Path, before: Extent) -> str:
    """What a ledger lacks of what it held before, as the rest of a sentence that begins with its path; empty where all of it
    is there. Changes nothing on the disk."""
    if not ledger.exists():
        return "is gone"
    try:
        with closing(connect_read_only(ledger)) as connection:
            if not _has_tables(connection):
                return "holds nothing any more"
            now = read_extent(connection)
            if now.ledger != before.ledger:
                return "is another ledger than the one this job was paid into"
            lost = [_lost(connection, table, getattr(before, table)) for table in _TABLES]
    except sqlite3.Error as error:
        raise StorageError(
            f"cannot read the ledger {ledger}: {error}; if the file is damaged, put back a copy of it, or begin anew"
        ) from error
    return " and ".join(part for part in lost if part)


def _lost(connection: sqlite3.Connection, table: str, before: Last) -> str:
    if before.number == 0:
        return ""
    row = connection.execute(f"SELECT lower(hex(key)) FROM {table} WHERE id=?", (before.number,)).fetchone()
    if row is not None and row[0] == before.key:
        return ""
    there = _last(connection, table).number
    if there < before.number:
        return f"has {there} of the {before.number} {table} it held"
    return f"has other {table} than it held: an older copy was put in its place and has grown since"


def _last(connection: sqlite3.Connection, table: str) -> Last:
    row = connection.execute(f"SELECT id, lower(hex(key)) FROM {table} ORDER BY id DESC LIMIT 1").fetchone()
    return Last() if row is None else Last(*row)


def _has_tables(connection: sqlite3.Connection) -> bool:
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")}
    return {"about", *_TABLES} <= names
