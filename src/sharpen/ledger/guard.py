"""A ledger may be somebody else's: it is opened as data.

SQLite carries out what a file's own schema says: triggers on every write, views and computed columns on every read. A ledger
of sharpen has plain tables and indices alone, so anything else is refused before the first read or write, and functions
that a schema might call are switched off besides.
"""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

from sharpen.core.errors import UsageError

_SETTINGS = ("trusted_schema=OFF", "cell_size_check=ON")
_TABLE = re.compile(r"\s*CREATE\s+TABLE\s", re.IGNORECASE)
_COMPUTED = re.compile(r"\b(?:CHECK|GENERATED|AS)\b|DEFAULT\s*\(", re.IGNORECASE)
_INDEX = re.compile(r"\s*CREATE\s+(?:UNIQUE\s+)?INDEX\s+[\w\s]+\([\w\s,]+\)\s*", re.IGNORECASE)


def secure(db: sqlite3.Connection, path: Path) -> None:
    """Make a connection to a ledger safe to use; `UsageError` where its schema is not one that sharpen writes."""
    for setting in _SETTINGS:
        db.execute(f"PRAGMA {setting}")
    for kind, name, sql in db.execute("SELECT type, name, sql FROM sqlite_master"):
        if not _is_plain(kind, sql):
            raise UsageError(
                f"{path} is no ledger that sharpen wrote: it has the {kind} {name!r}, which would act by itself; "
                "ask whoever sent it for the original"
            )


def _is_plain(kind: str, sql: str | None) -> bool:
    if kind == "table":
        return sql is not None and _TABLE.match(sql) is not None and _COMPUTED.search(sql) is None
    return kind == "index" and (sql is None or _INDEX.fullmatch(sql) is not None)
