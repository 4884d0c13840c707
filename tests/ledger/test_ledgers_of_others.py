"""A ledger may come from anybody: one that would act by itself is refused before it is read or written."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sharpen.bench.evidence.ledgers import item_means
from sharpen.core.errors import UsageError
from sharpen.ledger.payments import read_accounts
from sharpen.ledger.store import Ledger


@pytest.mark.parametrize(
    "act",
    [
        "CREATE TRIGGER t AFTER INSERT ON rollouts BEGIN DELETE FROM replies; END",
        "CREATE VIEW v AS SELECT * FROM rollouts",
        "DROP TABLE rollouts; CREATE VIEW rollouts AS SELECT load_extension('x')",
        "CREATE TABLE more (a TEXT, b TEXT GENERATED ALWAYS AS (upper(a)))",
        "CREATE TABLE more (a TEXT CHECK (length(a) < 3))",
        "CREATE TABLE more (a TEXT DEFAULT (hex(zeroblob(9))))",
        "CREATE VIRTUAL TABLE more USING fts5(a)",
        "CREATE INDEX i ON replies (upper(text))",
        "CREATE INDEX i ON replies (text) WHERE text > 'a'",
    ],
)
def test_a_schema_that_acts_is_refused(tmp_path: Path, act: str) -> None:
    path = tmp_path / "ledger.db"
    Ledger(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.executescript(act)
    before = path.read_bytes()
    with pytest.raises(UsageError, match="no ledger that sharpen wrote"):
        Ledger(path)
    with pytest.raises(UsageError, match="no ledger that sharpen wrote"):
        read_accounts(path)
    with pytest.raises(UsageError, match="no ledger that sharpen wrote"):
        item_means(path, "task", "candidate", ["a"])
    assert path.read_bytes() == before


def test_plain_tables_and_indices_are_no_reason_to_refuse(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    Ledger(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.executescript(
            "CREATE TABLE later (a TEXT NOT NULL); CREATE INDEX i ON later (a); CREATE UNIQUE INDEX j ON later (a)"
        )
    Ledger(path).close()
