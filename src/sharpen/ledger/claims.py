"""Who is paying for a reply now: one claim per key, over all processes that use a ledger.

A claim is a lock on one byte of a file beside the ledger, at a place made of the key. The kernel drops those of a process
that dies, so a dead process holds nobody up. Two keys may share a byte; then one waits for the other, and no harm is done.
Where the file system has no locks, everybody gets every claim and may pay twice, as without claims.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from pathlib import Path

_OWN_LOCKS = getattr(fcntl, "F_OFD_SETLK", None)
"""Locks of an open file rather than of a process, so that two ledgers in one process exclude each other too. Linux alone."""
_FLOCK = struct.Struct("hhqqhh")
_LARGEST = (1 << 62) - 1
_TAKEN = (errno.EAGAIN, errno.EACCES)


class Claims:
    """The claims of one open ledger."""

    def __init__(self, ledger: Path) -> None:
        self.path = ledger.with_name(ledger.name + "-claims")
        self._file = -1
        self._held: set[bytes] = set()

    def take(self, key: bytes) -> bool:
        """Claim a key; False while somebody else has it."""
        try:
            if self._file < 0:
                self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            self._set(key, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno in _TAKEN:
                return False
        self._held.add(key)
        return True

    def release(self, key: bytes) -> None:
        """Give a claim back; nothing happens where it is not held."""
        if key in self._held:
            self._held.remove(key)
            try:
                self._set(key, fcntl.LOCK_UN)
            except OSError:
                return  # there were no locks to begin with

    def close(self, *, last: bool) -> None:
        """Give everything back; `last` removes the file, since nobody else uses the ledger."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        self._held.clear()
        if last:
            self.path.unlink(missing_ok=True)

    def _set(self, key: bytes, kind: int) -> None:
        place = int.from_bytes(key[-8:], "big") & _LARGEST
        if _OWN_LOCKS is None:
            fcntl.lockf(self._file, kind | fcntl.LOCK_NB, 1, place)
            return
        wanted = fcntl.F_UNLCK if kind == fcntl.LOCK_UN else fcntl.F_WRLCK
        fcntl.fcntl(self._file, _OWN_LOCKS, _FLOCK.pack(wanted, os.SEEK_SET, place, 1, 0, 0))
