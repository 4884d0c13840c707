"""Room on the disk, kept for the answers of calls that are under way.

It is a file without a name that takes up space and holds nothing. So it ends with its process, however that ends, and every
process that uses a ledger keeps room for its own calls. Before a call leaves, there must be room for what it may bring; when
the disk is full all the same, the room is given up, and what was paid for gets in.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

_LEAST = 1 << 20
_OVERHEAD = 1.25
"""Pages are written whole, with a header each, and indexes grow too."""
_BLOCK = 1 << 16


class Reserve:
    """Room in the file system of `folder`. `largest` is the most bytes that one call has brought so far."""

    def __init__(self, folder: Path) -> None:
        self._file = _open_nameless(folder)
        self._size = 0
        self.largest = 0
        self._grow(_LEAST)

    def hold(self, calls: int, expected: int) -> None:
        """Keep room for so many calls, each of which may bring the bytes expected of it, or as much as one did before.
        Raises OSError where there is none."""
        needed = _LEAST + int(calls * max(expected, self.largest) * _OVERHEAD)
        if needed > self._size:
            self._grow(needed + needed // 4)

    def give_up(self) -> None:
        """Let others have the room."""
        if self._file >= 0:
            os.ftruncate(self._file, 0)
            self._size = 0

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _grow(self, size: int) -> None:
        try:
            os.posix_fallocate(self._file, 0, size)
        except AttributeError:
            _fill(self._file, self._size, size)
        self._size = size


@dataclass
class Unstored:
    """Rows that found no room on the disk."""

    replies: list[tuple[object, ...]] = field(default_factory=list)
    rollouts: list[tuple[object, ...]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.replies or self.rollouts)

    def __str__(self) -> str:
        size = sum(map(row_bytes, (*self.replies, *self.rollouts)))
        return f"{len(self.replies)} replies and {len(self.rollouts)} scored rollouts ({size / 1000:,.0f} kB)"


def row_bytes(row: tuple[object, ...]) -> int:
    """About how many bytes a row takes."""
    return sum(len(value) for value in row if isinstance(value, str | bytes))


def _open_nameless(folder: Path) -> int:
    with suppress(AttributeError, OSError):  # not every system has such files, nor every file system
        return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    descriptor, name = tempfile.mkstemp(dir=folder)
    os.unlink(name)
    return descriptor


def _fill(descriptor: int, start: int, end: int) -> None:
    """Take up room by writing, where a system has no other way."""
    os.lseek(descriptor, start, os.SEEK_SET)
    for place in range(start, end, _BLOCK):
        os.write(descriptor, b"\0" * min(_BLOCK, end - place))
