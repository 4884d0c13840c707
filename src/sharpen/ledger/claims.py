"""Who is paying for a reply now: one claim per key, over all processes that use a ledger.

A claim is a lock on one byte of a file beside the ledger, at a place made of the key. It is taken or not, at once; nobody
who holds one waits for another, so nobody can wait in a circle. The kernel drops the claims of a process that dies, and a
process forked off does not inherit any. Two keys may share a byte; then one waits for the other, and no harm is done. Where
the file system has no locks, everybody gets every claim and may pay twice, as without claims.

Whoever uses the file holds a shared lock on its last byte. Who can have that byte alone is the last and removes the file.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import sys
import weakref
from contextlib import suppress
from pathlib import Path

_OF_OPEN_FILES = sys.platform == "linux"
"""Locks of an open file rather than of a process, so that two ledgers in one process exclude each other too."""
_FLOCK = struct.Struct("hhqqhh")
_PRESENCE = (1 << 62) - 1
_TAKEN = (errno.EAGAIN, errno.EACCES)
_open: weakref.WeakSet[Claims]


class Claims:
    """The claims of one open ledger."""

    def __init__(self, ledger: Path) -> None:
        self.path = ledger.with_name(ledger.name + "-claims")
        self._file = -1
        self._held: set[bytes] = set()
        _open.add(self)

    def __len__(self) -> int:
        """How many replies are being paid for here."""
        return len(self._held)

    def take(self, key: bytes) -> bool:
        """Claim a key; False while somebody else has it."""
        try:
            if self._file < 0:
                self._open_file()
            self._lock(_place(key), fcntl.F_WRLCK)
        except OSError as error:
            if error.errno in _TAKEN:
                return False
        self._held.add(key)
        return True

    def release(self, key: bytes) -> None:
        """Give a claim back; nothing happens where it is not held."""
        if key in self._held:
            self._held.remove(key)
            with suppress(OSError):  # there were no locks to begin with
                self._lock(_place(key), fcntl.F_UNLCK)

    def close(self) -> None:
        """Give everything back; who is the last removes the file."""
        if self._file >= 0:
            self._held.clear()
            try:
                self._lock(0, fcntl.F_UNLCK, length=_PRESENCE)
                self._lock(_PRESENCE, fcntl.F_WRLCK)
                self.path.unlink(missing_ok=True)
            except OSError:
                pass  # others use it, or there are no locks
            self.abandon()

    def abandon(self) -> None:
        """Let go of the file without giving anything back: it is another process's."""
        self._held.clear()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _open_file(self) -> None:
        while self._file < 0:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            self._file = descriptor
            try:
                self._lock(_PRESENCE, fcntl.F_RDLCK)
                is_there = os.path.samestat(os.fstat(descriptor), os.stat(self.path))
            except FileNotFoundError:
                is_there = False
            except OSError as error:
                is_there = error.errno not in _TAKEN
            if not is_there:  # its last user is removing it, or has
                os.close(descriptor)
                self._file = -1

    def _lock(self, place: int, kind: int, length: int = 1) -> None:
        if _OF_OPEN_FILES:
            fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, _FLOCK.pack(kind, os.SEEK_SET, place, length, 0, 0))
            return
        wanted = {fcntl.F_UNLCK: fcntl.LOCK_UN, fcntl.F_RDLCK: fcntl.LOCK_SH, fcntl.F_WRLCK: fcntl.LOCK_EX}[kind]
        fcntl.lockf(self._file, wanted | fcntl.LOCK_NB, length, place)


def _place(key: bytes) -> int:
    return int.from_bytes(key[-8:], "big") % _PRESENCE


def _abandon_all() -> None:
    """In a process forked off: locks of an open file would outlive the parent with it."""
    for claims in list(_open):
        claims.abandon()


_open = weakref.WeakSet()
os.register_at_fork(after_in_child=_abandon_all)
