"""Disks as power failures leave them, rebuilt from a recording of all that a process did to its files (`recorder.c`).

What was synced is there. Of writes that were not, any may be there and any may be missing, in each file by itself: none,
all, some with holes of zeros between them, or the last one torn. Names (of new, renamed and removed files) reach the disk in
their order, as journals of file systems see to it, at the latest when their folder is synced.
"""

from __future__ import annotations

import random
import struct
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

_HEAD = struct.Struct("<4q")


@dataclass(frozen=True)
class Step:
    """A recorded call: C(reate), W(rite), T(runcate), S(ync), R(ename), X(change), L(ink), U(nlink), M(kdir), D (rmdir)."""

    kind: str
    path: str
    number: int
    data: bytes


@dataclass
class Inode:
    is_folder: bool = False
    synced: bytes = b""
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)
    """Writes since the last sync: place and data; None for a truncation to that place."""


def build_recorder(folder: Path) -> Path:
    library = folder / "recorder.so"
    source = Path(__file__).with_name("recorder.c")
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, source, "-lpthread"], check=True)
    return library


def read_steps(log: Path) -> list[Step]:
    data, place, steps = log.read_bytes(), 0, []
    while place < len(data):
        kind, number, path, size = _HEAD.unpack_from(data, place)
        place += _HEAD.size
        name = data[place : place + path].decode()
        steps.append(Step(chr(kind), name, number, data[place + path : place + path + size]))
        place += path + size
    return steps


class Disk:
    """What was done to the files under `root`, followed up to some step."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self._live: dict[str, Inode] = {self.root: Inode(is_folder=True)}
        self._names: list[tuple[str, str, str, Inode]] = []
        self._certain = 0
        """So many changes of names are certain to be on the disk."""

    def follow(self, step: Step) -> None:
        if step.kind in "CMRXLUD":
            self._rename(step)
        elif step.kind == "S":
            self._sync(step.path)
        elif step.path in self._live:
            self._live[step.path].pending.append((step.number, step.data if step.kind == "W" else None))

    def rebuild(
        self, target: Path, luck: random.Random, always: str, whole: tuple[str, ...] = (), none: tuple[str, ...] = ()
    ) -> None:
        """Write a disk that a power failure at this moment may leave. The file called `always` is not on that disk. Of those
        that end like `whole` all is there, and of those like `none` nothing that was not synced."""
        names: dict[str, Inode] = {self.root: Inode(is_folder=True)}
        for kind, path, other, inode in self._names[: luck.randint(self._certain, len(self._names))]:
            _apply(names, kind, path, other, inode)
        names |= {path: inode for path, inode in self._live.items() if path.endswith(always)}
        for path in sorted(names):
            inode, place = names[path], Path(str(target) + path[len(self.root) :])
            if inode.is_folder:
                place.mkdir(parents=True, exist_ok=True)
            elif not path.endswith("-shm") and place.parent.is_dir():  # shared memory, made anew
                is_whole = path.endswith((always, *whole))
                place.write_bytes(inode.synced if path.endswith(none) else _content(inode, None if is_whole else luck))

    def _rename(self, step: Step) -> None:
        other = step.data.decode()
        if step.kind in "CM":
            inode = Inode(is_folder=step.kind == "M")
        elif step.path not in self._live:
            return
        else:
            inode = self._live[step.path]
        self._names.append((step.kind, step.path, other, inode))
        _apply(self._live, step.kind, step.path, other, inode)

    def _sync(self, path: str) -> None:
        inode = self._live.get(path)
        if inode is None:
            return
        if not inode.is_folder:
            inode.synced, inode.pending = _content(inode, None), []
            return
        inside = [
            n for n, (_, a, b, _) in enumerate(self._names) if path in (a.rpartition("/")[0], b.rpartition("/")[0])
        ]
        self._certain = max([self._certain, *(n + 1 for n in inside)])


def _apply(names: dict[str, Inode], kind: str, path: str, other: str, inode: Inode) -> None:
    if kind in "CM":
        names[path] = inode
    elif kind == "L":
        names[other] = inode
    elif kind in "UD":
        names.pop(path, None)
    elif kind == "R":
        _move(names, path, other)
    else:
        _move(names, path, f"{path}\0")
        _move(names, other, path)
        _move(names, f"{path}\0", other)


def _move(names: dict[str, Inode], path: str, other: str) -> None:
    for name in [name for name in names if name == other or name.startswith(f"{other}/")]:
        del names[name]
    for name in [name for name in names if name == path or name.startswith(f"{path}/")]:
        names[other + name[len(path) :]] = names.pop(name)


def _content(inode: Inode, luck: random.Random | None) -> bytes:
    """All that was written; or, with some luck, what of it reached the disk."""
    pending = inode.pending
    how = "all" if luck is None else luck.choice(("none", "all", "first", "some"))
    if luck is not None and how == "none":
        return inode.synced
    if luck is not None and how == "first":
        pending = pending[: luck.randint(0, len(pending))]
        if pending and pending[-1][1]:
            place, data = pending[-1]
            assert data is not None
            pending = [*pending[:-1], (place, data[: luck.randint(0, len(data))])]
    if luck is not None and how == "some":
        pending = [write for write in pending if write[1] is None or luck.random() < 0.5]
    content = bytearray(inode.synced)
    for place, data in pending:
        if data is None:
            del content[place:]
        if len(content) < place:
            content.extend(bytes(place - len(content)))
        if data is not None:
            content[place : place + len(data)] = data
    return bytes(content)
