"""The rows of published question files, as they lie on disk: JSON in all its forms, JSONL, CSV, Parquet, also gzipped.

What is called `.json` may hold one object a line, one object in all, a list, or a list under `data`, `examples` or `rows`;
an object of objects is a row for each, with its key under `KEY`. A folder is searched through. The published split is read
from the name of the file or of a folder above it: `train`, `dev`, `validation`, `test` as a word of the name. Where some
files of a folder say their split, those that say none (descriptions, sample outputs) are left out.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sharpen.core.digest import Json
from sharpen.core.errors import UsageError
from sharpen.tasks import parquet
from sharpen.tasks.qa.family import Row

KEY = "__key__"
"""Where a row's own key is put when the file is an object of objects."""
KINDS = (".parquet", ".jsonl", ".json", ".csv")
_BARE = (".train", ".dev", ".test")
"""Endings of files that hold JSONL and do not say so."""
_WRAPPED = ("data", "examples", "rows")
_SPLITS = {
    "train": "train", "auxiliary_train": "extra", "val": "val", "valid": "val", "validation": "val", "dev": "dev",
    "test": "test", "prompt": "extra",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Found:
    """A row, the split its file's name says (`train`, `val`, `dev`, `test`, `extra` or none), its file, where it stands."""

    row: Row
    split: str
    file: Path
    where: str


def read(data: Path, columns: Sequence[str] = ()) -> Iterator[Found]:
    """Every row under `data`, file by file in the order of their names."""
    root = data if data.is_dir() else data.parent
    splits = {file: _split(file.relative_to(root)) for file in _files(data)}
    for file, split in splits.items():
        if not split and any(splits.values()):
            continue
        for where, row in _rows(file, columns):
            yield Found(row, split, file, where)


def _files(data: Path) -> list[Path]:
    if data.is_file():
        return [data]
    if not data.is_dir():
        raise UsageError(f"no such file or folder: {data}")
    found = [path for path in sorted(data.rglob("*")) if path.is_file() and _kind(path) and not _ignored(path, data)]
    twins: dict[str, list[Path]] = {}
    for path in found:
        kind = _kind(path) if _kind(path) in KINDS else ""
        twins.setdefault(str(path).removesuffix(".gz").removesuffix(kind), []).append(path)
    chosen = [min(paths, key=lambda path: (*KINDS, *_BARE).index(_kind(path))) for paths in twins.values()]
    if not chosen:
        raise UsageError(f"{data}: no data files in it; looked for {', '.join(KINDS)}, also with .gz")
    return chosen


def _ignored(path: Path, root: Path) -> bool:
    """What is hidden, and what holds the same again in tokens."""
    return ".tok." in path.name or any(part.startswith(".") for part in path.relative_to(root).parts)


def _kind(path: Path) -> str:
    suffix = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    return suffix if suffix in (*KINDS, *_BARE) else ""


def _split(path: Path) -> str:
    """The split a path names, the nearest part first: `ARC-Challenge-Dev.jsonl`, `data/val/law_val.csv`."""
    for part in (path.name, *reversed(path.parent.parts)):
        lower = part.lower()
        if "auxiliary_train" in lower:
            return "extra"
        words = [word for word in re.split(r"[^a-z]+", lower) if word in _SPLITS]
        if words:
            return _SPLITS[words[-1]]
    return ""


def _rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, Row]]:
    if _kind(path) == ".parquet":
        return parquet.rows(path)
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8-sig")
    except (OSError, EOFError) as error:
        raise UsageError(f"cannot read {path}: {error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 text, and not a .parquet file by its name") from error
    if not text.strip():
        raise UsageError(f"{path}: the file is empty")
    return _csv(path, text, columns) if _kind(path) == ".csv" else _json(path, text)


def _json(path: Path, text: str) -> Iterator[tuple[str, Row]]:
    values: Iterable[Json]
    try:
        values, unit = _unwrapped(json.loads(text)), "row"
    except ValueError as whole:
        values, unit = _lines(path, text, whole), "line"
    for number, value in enumerate(values, start=1):
        if value is None:
            continue
        where = f"{path}, {unit} {number}"
        if not isinstance(value, dict):
            raise UsageError(f"{where}: expected an object with fields, got {json.dumps(value)[:60]}")
        yield where, value


def _lines(path: Path, text: str, whole: ValueError) -> Iterator[Json]:
    """One JSON value a line; None for an empty line. When the first line is none either, the whole file is what is wrong."""
    for number, line in enumerate(text.split("\n"), start=1):
        try:
            yield json.loads(line) if line.strip() else None
        except ValueError as error:
            said = f"{path}, line {number}: not JSON: {error}" if number > 1 else f"{path}: not JSON: {whole}"
            raise UsageError(said) from error


def _unwrapped(value: Json) -> list[Json]:
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        for name in _WRAPPED:
            if isinstance(value.get(name), list):
                return list(value[name])
        if value and all(isinstance(inner, dict) for inner in value.values()):
            return [{KEY: key, **inner} for key, inner in value.items()]
    return [value]


def _csv(path: Path, text: str, columns: Sequence[str]) -> Iterator[tuple[str, Row]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header = list(columns)
    try:
        for cells in reader:
            where = f"{path}, line {reader.line_num}"
            if not header:
                header = [name.strip() for name in cells]
            elif len(cells) != len(header):
                raise UsageError(f"{where}: {len(cells)} values for the columns {', '.join(header)}")
            elif cells != header:
                yield where, dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise UsageError(f"{path}, line {reader.line_num}: not CSV: {error}") from error
