"""The SQLite ledger holds to the contract of ledgers."""

from __future__ import annotations

from pathlib import Path

from sharpen.ledger.store import Ledger
from sharpen.testing.ledgers import LedgerContract


class TestSqliteLedger(LedgerContract):
    def open(self, path: Path) -> Ledger:
        return Ledger(path)
