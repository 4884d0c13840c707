"""Arms from TensorBoard's event files, read with the standard library: a folder is an arm, each folder in it that
has event files a run.

Scalars are read as they are written today (a plain value) and as TensorFlow 2 writes them (a tensor of one number). Files of
one folder are one run that was carried on: a step that comes again replaces what followed it. A last record that was cut
short is left out with a note, as it happens to a run that was killed; one in the middle that is damaged is an error. The
sums over large records (images) are not checked: nothing is read from those.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from sharpen.bench.evidence import protobuf
from sharpen.bench.evidence.nouns import Arm, Run, curves
from sharpen.bench.evidence.settings import seed_in
from sharpen.bench.tfevents import crc32c
from sharpen.core.errors import UsageError

_MASK = 0xA282EAD8
_LARGE = 1 << 16
_HEAD, _TAIL = 12, 4
_FLOAT, _DOUBLE, _INT32, _INT64 = 1, 2, 3, 9
_FORMS = {_FLOAT: "<f", _DOUBLE: "<d", _INT32: "<i", _INT64: "<q"}

Points = dict[str, dict[float, float]]


def is_event_file(path: Path) -> bool:
    return "tfevents" in path.name and path.is_file()


def holds(folder: Path) -> bool:
    """Whether a folder has event files in it, at any depth."""
    return any(is_event_file(path) for path in folder.rglob("*tfevents*"))


def read(path: Path) -> list[Arm]:
    """A folder, or one file, as an arm; where all runs are two folders deep, the first of the two is the arm."""
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*tfevents*") if file.is_file())
    notes: list[str] = []
    runs = []
    for home in dict.fromkeys(file.parent for file in files):
        points: Points = {}
        for file in (one for one in files if one.parent == home):
            _read_into(points, file, notes)
        name = home.name if home == path or path.is_file() else str(home.relative_to(path))
        if not points:
            notes.append(f"{home} has no scalars; it is left out")
            continue
        made, faults = curves({tag: list(row.items()) for tag, row in points.items()}, str(home))
        runs.append(Run(name, str(home), seed=seed_in(name), curves=made, faults=faults))
    if not runs:
        raise UsageError(f"{path} has no scalars in its event files{': ' + notes[0] if notes else ''}")
    arms: dict[str, list[Run]] = {}
    deep = path.is_dir() and all(len(Path(run.name).parts) > 1 for run in runs)
    for run in runs:
        arms.setdefault(Path(run.name).parts[0] if deep else path.name, []).append(run)
    return [Arm(name, tuple(own), tuple(notes)) for name, own in arms.items()]


def _read_into(points: Points, path: Path, notes: list[str]) -> None:
    for offset, record in _records(path, notes):
        try:
            for step, tag, value in _scalars(record):
                row = points.setdefault(tag, {})
                if row and step <= next(reversed(row)):
                    for later in [known for known in row if known >= step]:
                        del row[later]
                row[step] = value
        except (protobuf.Malformed, struct.error) as error:
            raise UsageError(f"{path} is damaged at byte {offset}: {error}") from error


def _records(path: Path, notes: list[str]) -> Iterator[tuple[int, bytes]]:
    """Every whole record with its offset."""
    data, at = path.read_bytes(), 0
    if not data:
        notes.append(f"{path} is empty")
    while at < len(data):
        head = data[at : at + _HEAD]
        if len(head) < _HEAD:
            break
        _check(head[:8], head[8:], path, at)
        (size,) = struct.unpack("<Q", head[:8])
        end = at + _HEAD + size + _TAIL
        if end > len(data):
            break
        record = data[at + _HEAD : end - _TAIL]
        if size <= _LARGE:
            _check(record, data[end - _TAIL : end], path, at)
        yield at, record
        at = end
    if at < len(data):
        notes.append(f"{path} ends within a record, at byte {at}: the last record is left out")


def _check(data: bytes, stored: bytes, path: Path, at: int) -> None:
    (masked,) = struct.unpack("<I", stored)
    turned = (masked - _MASK) & 0xFFFFFFFF
    if ((turned >> 17) | (turned << 15)) & 0xFFFFFFFF != crc32c(data):
        raise UsageError(f"{path} is damaged at byte {at}: the sum over the record does not fit; copy the file again")


def _scalars(record: bytes) -> Iterator[tuple[float, str, float]]:
    step, summary = 0, b""
    for number, value in protobuf.fields(record):
        if number == 2:
            step = protobuf.signed(value)
        elif number == 5 and isinstance(value, bytes):
            summary = value
    for number, value in protobuf.fields(summary):
        if number == 1 and isinstance(value, bytes):
            tag, found = _value(value)
            if found is not None:
                yield float(step), tag, found


def _value(message: bytes) -> tuple[str, float | None]:
    tag, found = "", None
    for number, value in protobuf.fields(message):
        if number == 1:
            tag = protobuf.text(value)
        elif number == 2 and isinstance(value, bytes) and len(value) == 4:
            found = protobuf.floating(value)
        elif number == 8 and isinstance(value, bytes):
            found = _tensor(value)
    return tag, found


def _tensor(message: bytes) -> float | None:
    """A tensor of one number; None for texts and for everything that has more than one."""
    kind, held, numbers = 0, b"", 0.0
    plain = False
    for number, value in protobuf.fields(message):
        if number == 1 and isinstance(value, int):
            kind = value
        elif number == 4 and isinstance(value, bytes):
            held = value
        elif number in (5, 6) and isinstance(value, bytes) and len(value) == (4 if number == 5 else 8):
            numbers, plain = protobuf.floating(value), True
    form = _FORMS.get(kind)
    if form is None:
        return None
    if plain:
        return numbers
    return float(struct.unpack(form, held)[0]) if len(held) == struct.calcsize(form) else None
