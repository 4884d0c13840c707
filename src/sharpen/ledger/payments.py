"""What was really paid, on record before each call leaves.

Every session of a job (a process that works on it) has a row: what its finished attempts cost, and the most that those
under way can cost. The row is committed before an attempt is sent, and again, together with the reply, when it is over. So
whatever ends a process, the ledger has counted every call that left it: an attempt of which no end is on record counts as
one call at its bound. A job's account is the sum over its sessions.

An account is named by where the job's folder is, as seen from the ledger: several jobs share a ledger, and measurements
with a folder of their own have an account of their own.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from sharpen.core.errors import StorageError
from sharpen.ledger.extent import connect_read_only
from sharpen.ledger.guard import secure

TABLE = """
CREATE TABLE IF NOT EXISTS payments (
  session INTEGER PRIMARY KEY, account TEXT NOT NULL, at REAL NOT NULL, calls INTEGER NOT NULL, tokens INTEGER NOT NULL,
  money REAL NOT NULL, lost INTEGER NOT NULL, open_calls INTEGER NOT NULL, open_tokens INTEGER NOT NULL,
  open_money REAL NOT NULL);
"""
WRITE = (
    "INSERT OR REPLACE INTO payments(session,account,at,calls,tokens,money,lost,open_calls,open_tokens,open_money) "
    "VALUES(?,?,?,?,?,?,?,?,?,?)"
)
_SUMS = (
    "SELECT account,SUM(calls+open_calls),SUM(tokens+open_tokens),SUM(money+open_money),SUM(lost+open_calls) "
    "FROM payments GROUP BY account"
)


@dataclass(frozen=True, slots=True)
class Paid:
    """What was paid: `lost` are the calls among `calls` that brought no reply, or whose end nobody was there to see."""

    calls: int = 0
    tokens: int = 0
    money: float = 0.0
    lost: int = 0

    def __add__(self, other: Paid) -> Paid:
        return Paid(
            self.calls + other.calls, self.tokens + other.tokens, self.money + other.money, self.lost + other.lost
        )


@dataclass(slots=True)
class Session:
    """The row of one session, as it is to be written next."""

    account: str
    calls: int = 0
    tokens: int = 0
    money: float = 0.0
    lost: int = 0
    open_calls: int = 0
    open_tokens: int = 0
    open_money: float = 0.0
    number: int = field(default_factory=lambda: secrets.randbits(62))
    began: float = field(default_factory=time.time)

    def row(self) -> tuple[object, ...]:
        return (
            self.number, self.account, self.began, self.calls, self.tokens, self.money, self.lost, self.open_calls,
            self.open_tokens, self.open_money,
        )  # fmt: skip


def account_name(folder: Path, ledger: Path) -> str:
    """The account of the job in `folder`, in a ledger."""
    return Path(os.path.relpath(folder, ledger.parent)).as_posix()


def sum_accounts(connection: sqlite3.Connection) -> dict[str, Paid]:
    """What each account of an open ledger has paid."""
    return {account: Paid(*sums) for account, *sums in connection.execute(_SUMS)}


def read_accounts(ledger: Path) -> dict[str, Paid]:
    """What each account of a ledger has paid; nothing where there is no ledger, or one from before payments were counted."""
    if not ledger.exists():
        return {}
    try:
        with closing(connect_read_only(ledger)) as connection:
            secure(connection, ledger)
            tables = connection.execute("SELECT 1 FROM sqlite_master WHERE type='table' AND name='payments'")
            return sum_accounts(connection) if tables.fetchone() else {}
    except sqlite3.Error as error:
        raise StorageError(f"cannot read what was paid from the ledger {ledger}: {error}") from error
