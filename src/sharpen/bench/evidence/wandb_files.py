"""Arms from what Weights & Biases keeps of offline runs: `run-ID.wandb` files, read with the standard library.

Supported are the numbers of the history (`run.log`), the configuration, name, group, git commit and exit code. Runs of one
group are an arm; runs without a group are one together. Media, tables, system metrics and the summary are not read. Such a
file is a log in LevelDB's framing whose records are protocol buffers; a last one that was cut short is left out with a note.
Runs that are only on the server: export a chart as CSV, which `sharpen compare` reads too.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sharpen.bench.evidence import protobuf
from sharpen.bench.evidence.nouns import Arm, Run, curves
from sharpen.bench.evidence.settings import flattened, parameters_of, seed_in, without_seed
from sharpen.core.errors import UsageError

_IDENT = b":W&B"
_START, _BLOCK, _HEAD = 7, 1 << 15, 7
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4


@dataclass
class _Story:
    points: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    group: str = ""
    commit: str = ""
    exit_code: int | None = None


def holds(path: Path) -> bool:
    return path.suffix == ".wandb" or (path.is_dir() and any(path.rglob("run-*.wandb")))


def read(path: Path) -> list[Arm]:
    """The arms of a folder of offline runs, or of one run's file."""
    files = [path] if path.is_file() else sorted(path.rglob("run-*.wandb"))
    notes: list[str] = []
    arms: dict[str, list[Run]] = {}
    for file in files:
        story = _story(file, notes)
        if not story.points:
            notes.append(f"{file} has no numbers in its history; it is left out")
            continue
        arms.setdefault(story.group or path.stem, []).append(_run(file, story))
    if not arms:
        raise UsageError(f"{path} has no run with a history")
    return [Arm(name, tuple(runs), tuple(notes)) for name, runs in arms.items()]


def _run(file: Path, story: _Story) -> Run:
    name = story.name or file.stem.removeprefix("run-")
    settings = flattened(story.config)
    seed = settings.get("seed")
    if not isinstance(seed, int):
        seed = seed_in(name)
    made, faults = curves(story.points, str(file))
    lacks = "has no end in its log" if story.exit_code is None else f"ended with code {story.exit_code}"
    return Run(
        name,
        str(file),
        seed=seed,
        curves=made,
        faults=faults,
        lacks="" if story.exit_code == 0 else lacks,
        commit=story.commit,
        parameters=parameters_of(settings),
        settings=without_seed(settings),
    )


def _story(file: Path, notes: list[str]) -> _Story:
    story = _Story()
    for offset, record in _records(file, notes):
        try:
            for number, value in protobuf.fields(record):
                if not isinstance(value, bytes):
                    continue
                if number == 2:
                    _history(story, value)
                elif number == 5:
                    story.config |= dict(_items(value, 1))
                elif number == 17:
                    _about(story, value)
                elif number == 18:
                    codes = [code for place, code in protobuf.fields(value) if place == 1 and isinstance(code, int)]
                    story.exit_code = codes[0] if codes else 0
                elif number == 26:
                    story.commit = _commit(value, 9) or story.commit
        except (protobuf.Malformed, ValueError) as error:
            raise UsageError(f"{file} is damaged at byte {offset}: {error}") from error
    return story


def _history(story: _Story, message: bytes) -> None:
    row = dict(_items(message, 1))
    steps = [value for number, value in protobuf.fields(message) if number == 2 and isinstance(value, bytes)]
    step = row.get("_step")
    if step is None:
        step = next((value for part in steps for place, value in protobuf.fields(part) if place == 1), 0)
    for key, value in row.items():
        if not key.startswith("_") and isinstance(value, int | float) and not isinstance(value, bool):
            story.points.setdefault(key, []).append((float(step), float(value)))


def _about(story: _Story, message: bytes) -> None:
    for number, value in protobuf.fields(message):
        if not isinstance(value, bytes):
            continue
        if number == 4:
            story.config |= dict(_items(value, 1))
        elif number == 6:
            story.group = protobuf.text(value)
        elif number == 8:
            story.name = protobuf.text(value)
    story.commit = _commit(message, 21) or story.commit


def _commit(message: bytes, place: int) -> str:
    for number, value in protobuf.fields(message):
        if number == place and isinstance(value, bytes):
            return next((protobuf.text(found) for key, found in protobuf.fields(value) if key == 2), "")
    return ""


def _items(message: bytes, place: int) -> Iterator[tuple[str, Any]]:
    """The keys and values of a history or of a configuration."""
    for number, item in protobuf.fields(message):
        if number != place or not isinstance(item, bytes):
            continue
        keys: list[str] = []
        found: Any = None
        for part, value in protobuf.fields(item):
            if part in (1, 2):
                keys.append(protobuf.text(value))
            elif part == 5 and isinstance(value, int):
                found = protobuf.zigzag(value)
            elif part == 6 and isinstance(value, bytes):
                found = protobuf.floating(value)
            elif part in (8, 16):
                found = _plain(json.loads(protobuf.text(value)))
        key = ".".join(keys)
        if key and key != "_wandb":
            yield key, found


def _plain(value: Any) -> Any:
    """A setting that was wrapped as {"value": ...} without the wrapping."""
    if isinstance(value, Mapping) and set(value) <= {"value", "desc"} and "value" in value:
        return value["value"]
    return value


def _records(path: Path, notes: list[str]) -> Iterator[tuple[int, bytes]]:
    data = path.read_bytes()
    if not data:
        raise UsageError(f"{path} is empty")
    if data[:4] != _IDENT:
        raise UsageError(f"{path} is no log of W&B: it begins with {data[:4]!r}")
    at, parts = _START, bytearray()
    while at + _HEAD <= len(data):
        left = _BLOCK - at % _BLOCK
        if left < _HEAD:
            at += left
            continue
        stored, size, kind = struct.unpack("<IHB", data[at : at + _HEAD])
        if kind == 0 and size == 0:
            at += left
            continue
        piece = data[at + _HEAD : at + _HEAD + size]
        if len(piece) < size:
            break
        if zlib.crc32(piece, zlib.crc32(bytes([kind]))) != stored:
            raise UsageError(
                f"{path} is damaged at byte {at}: the sum over the record does not fit; copy the file again"
            )
        begin, at = at, at + _HEAD + size
        if kind in (_FULL, _FIRST):
            parts.clear()
        parts += piece
        if kind in (_FULL, _LAST):
            yield begin, bytes(parts)
            parts.clear()
    if at < len(data) and any(data[at:]):
        notes.append(f"{path} ends within a record, at byte {at}: the last record is left out")
