"""Opening a ledger's file: its settings, its tables, and folding its write-ahead log."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import suppress
from pathlib import Path

from sharpen.ledger.guard import secure
from sharpen.ledger.schema import prepare

_OPENING_SECONDS = 30.0


def open_database(path: Path) -> sqlite3.Connection:
    """Open a file that another process may be making at this moment: SQLite does not wait for that by itself."""
    with suppress(FileExistsError):  # SQLite leaves a group no right to write, whatever the umask says
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
    deadline = time.monotonic() + _OPENING_SECONDS
    while True:
        try:
            return _prepared(path)
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _prepared(path: Path) -> sqlite3.Connection:
    db = _connect(path)
    try:
        secure(db, path)
        prepare(db)
    except BaseException:
        db.close()
        raise
    return db


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, timeout=60)
    try:
        for setting in ("journal_mode=WAL", "synchronous=NORMAL", "wal_autocheckpoint=0"):
            connection.execute(f"PRAGMA {setting}")
    except BaseException:
        connection.close()
        raise
    return connection


def fold_log(path: Path) -> None:
    """Fold the write-ahead log into the file."""
    connection = _connect(path)
    try:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
    except sqlite3.Error:
        pass  # the log stays as it is; a disk that is full shows itself at the next commit
    finally:
        connection.close()
