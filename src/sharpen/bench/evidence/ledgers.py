"""What a ledger knows of a candidate: `sharpen eval` measures into the ledger of the run, and not into its story."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from sharpen.core.errors import StorageError
from sharpen.ledger.guard import secure


def item_means(ledger: Path, task: str, candidate: str, items: Sequence[str]) -> dict[str, float]:
    """The mean of a candidate's attempts at each item; empty unless all items were attempted."""
    if not ledger.exists():
        return {}
    try:
        opened = sqlite3.connect(f"{ledger.resolve().as_uri()}?mode=ro", uri=True)
        try:
            secure(opened, ledger)
            rows = opened.execute(
                "SELECT item, avg(hard) FROM rollouts WHERE task = ? AND candidate = ? GROUP BY item", (task, candidate)
            ).fetchall()
        finally:
            opened.close()
    except sqlite3.Error as error:
        raise StorageError(f"cannot read the ledger {ledger}: {error}") from error
    known = dict(rows)
    return {item: known[item] for item in items} if all(item in known for item in items) else {}
