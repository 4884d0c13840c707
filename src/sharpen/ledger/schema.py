"""The tables of a ledger, and what it takes to bring an older ledger up to them."""

from __future__ import annotations

import sqlite3

from sharpen.ledger import payments

_TABLES = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS rollouts (
  id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, task TEXT NOT NULL, item TEXT NOT NULL, candidate TEXT NOT NULL,
  sample INTEGER NOT NULL, hard REAL NOT NULL, soft REAL NOT NULL, usage TEXT NOT NULL, body TEXT NOT NULL,
  at REAL NOT NULL, measures TEXT);
CREATE TABLE IF NOT EXISTS replies (
  id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, model TEXT NOT NULL, role TEXT NOT NULL, request TEXT,
  text TEXT NOT NULL, finish TEXT NOT NULL, tool_calls TEXT NOT NULL, usage TEXT NOT NULL, at REAL NOT NULL);
"""


def prepare(db: sqlite3.Connection) -> None:
    """Make the tables that are not there yet."""
    db.executescript(_TABLES + payments.TABLE)
    _add_measures(db)


def _add_measures(db: sqlite3.Connection) -> None:
    """Ledgers from before measures have no column for them. Looked at under the lock: another process may be adding it."""
    if _has_measures(db):
        return
    db.execute("BEGIN IMMEDIATE")
    if not _has_measures(db):
        db.execute("ALTER TABLE rollouts ADD COLUMN measures TEXT")
    db.execute("COMMIT")


def _has_measures(db: sqlite3.Connection) -> bool:
    return any(row[1] == "measures" for row in db.execute("PRAGMA table_info(rollouts)"))
