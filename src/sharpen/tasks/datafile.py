"""Items from files with no code: JSONL, JSON (a list, or an object with a list under `data`), CSV and Parquet.

A row has the fields `input` and `answer`; `id`, `type` and `split` are optional, and every other field becomes a further
input. `fields` says which column stands for which (`{"input": "question"}`), with dots for a field inside an object
(`{"answer": "meta.label"}`, which then is no longer part of `meta`). An item without an id gets one from its content, so
the same row keeps its id wherever it stands. Everything that is wrong with a file is reported with the file and the line
(for JSON and Parquet, the number of the row).
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from sharpen.core.digest import Json, digest
from sharpen.core.errors import UsageError, nearest
from sharpen.core.item import Item
from sharpen.core.task import SPLITS, Splits
from sharpen.tasks import jsonvalue, parquet, splitting

SUFFIXES = (".jsonl", ".json", ".csv", ".parquet")
ROLES = ("input", "answer", "id", "type", "split", "group")


@dataclass(frozen=True, slots=True)
class Row:
    """An item, the split the data puts it in (if it says so), and where it stands."""

    item: Item
    split: str | None
    where: str


@dataclass(frozen=True, slots=True)
class Reading:
    """How rows are read: column by role, whether `input` may be missing (a template makes the text), duplicates."""

    fields: Mapping[str, str]
    needs_input: bool = True
    drop_duplicates: bool = False


PLAIN = Reading({})
_TOO_DEEP = f"nested more than {jsonvalue.MAX_DEPTH} levels deep"
_CELL_LIMIT = 2**31 - 1
"""What csv takes in one cell at most. Its own limit of 131,072 characters is for the whole process, and no other format has
one; this is the largest number that every platform's C takes."""
_LONGEST = 16 << 20
"""Characters of one text in a row. No model reads that much, and each rollout would copy it."""
_LARGEST = 8 << 30
"""Bytes of one file."""


@dataclass(frozen=True, slots=True)
class Located:
    """Splits, and where each of their items stands, by its digest."""

    splits: Splits
    places: Mapping[str, str]


def load(path: Path, reading: Reading = PLAIN, *, ratio: str = splitting.DEFAULT_RATIO, seed: int = 0) -> Splits:
    """The splits that a file or a folder holds, or that a file is split into."""
    return located(path, reading, ratio=ratio, seed=seed).splits


def located(path: Path, reading: Reading = PLAIN, *, ratio: str = splitting.DEFAULT_RATIO, seed: int = 0) -> Located:
    """What `load` gives, with the places."""
    if path.is_dir():
        return _load_folder(path, reading)
    rows = read(path, reading)
    if all(row.split is None for row in rows):
        splits = splitting.by_ratio([row.item for row in rows], ratio, seed, str(path))
        return Located(splits, _places(rows))
    for row in rows:
        if row.split is None:
            raise UsageError(f"{row.where}: no split, while other rows have one; give every row a split, or none")
        splitting.check_name(row.split, row.where)
    splits = splitting.by_name(((row.split, row.item) for row in rows if row.split is not None), str(path))
    return Located(splits, _places(rows))


def read(path: Path, reading: Reading = PLAIN) -> list[Row]:
    """The rows of one file, in order; ids and contents unique."""
    rows: list[Row] = []
    ids: dict[str, str] = {}
    contents: dict[str, str] = {}
    for where, values in _values(path):
        row = _row(where, _lifted(values, reading.fields), reading)
        content = row.item.content
        if content in contents:
            if reading.drop_duplicates:
                continue
            raise UsageError(f"{where}: the same content as {contents[content]}; remove one, or set drop_duplicates")
        if row.item.id in ids:
            raise UsageError(f"{where}: id {row.item.id!r} is already used at {ids[row.item.id]}; ids must be unique")
        contents[content] = ids[row.item.id] = where
        rows.append(row)
    if not rows:
        raise UsageError(f"{path}: no items in it")
    return rows


def parse_fields(fields: Mapping[str, str] | str | None) -> dict[str, str]:
    """The mapping role to column, also from a text such as `input=question,answer=label`."""
    if isinstance(fields, str):
        pairs = [part.partition("=") for part in fields.split(",") if part.strip()]
        if not all(role.strip() and column.strip() for role, _, column in pairs):
            raise UsageError(f"fields must look like input=question,answer=label, got {fields!r}")
        fields = {role.strip(): column.strip() for role, _, column in pairs}
    for role in fields or {}:
        if role not in ROLES:
            raise UsageError(f"fields: unknown field {role!r}; known are {', '.join(ROLES)}{nearest(role, ROLES)}")
    return dict(fields or {})


def _places(rows: Iterable[Row]) -> dict[str, str]:
    return {row.item.digest: row.where for row in rows}


def _load_folder(folder: Path, reading: Reading) -> Located:
    sources: dict[str, list[Path]] = {}
    for entry in sorted(folder.iterdir()):
        files = _data_files(entry)
        if not files or entry.name.startswith(".") or entry.name == splitting.MANIFEST:
            continue
        name = entry.name if entry.is_dir() else entry.stem
        splitting.check_name(name, str(entry))
        if name in sources:
            raise UsageError(
                f"{folder}: both {sources[name][0].relative_to(folder)} and {entry.name} hold {name}; keep one"
            )
        sources[name] = files
    missing = [name for name in SPLITS if name not in sources]
    if missing:
        wanted = ", ".join(f"{name}.jsonl or {name}/" for name in missing)
        raise UsageError(
            f"{folder}: no data for {' and '.join(missing)}; expected {wanted} with JSONL, JSON, CSV or Parquet files "
            "(one file in place of the folder is split for you)"
        )
    named: list[tuple[str, Item]] = []
    places: dict[str, str] = {}
    for name in SPLITS:
        for row in (row for file in sources[name] for row in read(file, reading)):
            if row.split not in (None, name):
                raise UsageError(f"{row.where}: split {row.split!r} in the data of {name}")
            named.append((name, row.item))
            places[row.item.digest] = row.where
    splits = splitting.by_name(named, str(folder))
    splitting.check_manifest(folder, splits)
    return Located(splits, places)


def _data_files(entry: Path) -> list[Path]:
    if entry.is_dir():
        return [file for file in sorted(entry.iterdir()) if file.suffix in SUFFIXES and not file.name.startswith(".")]
    return [entry] if entry.suffix in SUFFIXES else []


def _row(where: str, values: Mapping[str, Json], reading: Reading) -> Row:
    # A column of that name is an input like any other, unless the settings say that it names groups.
    known = [role for role in ROLES if role != "group" or role in reading.fields]
    column = {role: reading.fields.get(role, role) for role in known}
    needed = [role for role in ("input", "answer") if role == "answer" or reading.needs_input]
    for role in needed:
        if column[role] not in values:
            found = ", ".join(map(repr, values)) or "none"
            hint = nearest(column[role], list(values))
            raise UsageError(
                f"{where}: no column {column[role]!r} for the {role}; the columns are {found}{hint}. "
                f"task.fields says which is which, as in 'task.fields={{{role}: COLUMN}}'"
            )
    for name, value in values.items():
        if isinstance(value, str) and len(value) > _LONGEST:
            raise UsageError(f"{where}: column {name!r} has {len(value):,} characters; {_LONGEST:,} are the most")
    roles = {name: role for role, name in column.items()}
    inputs = {roles.get(name, name): value for name, value in values.items() if roles.get(name) in (None, "input")}
    for name in inputs:
        if name != "input" and name in column:
            raise UsageError(
                f"{where}: column {name!r} stands beside the column {column[name]!r} that is to be the {name}; "
                f"rename or drop one of them"
            )
    if reading.needs_input and values[column["input"]] is None:
        raise UsageError(f"{where}: the input (column {column['input']!r}) is null; give a text, or drop the row")
    reference = values[column["answer"]]
    if reference is None or (isinstance(reference, str) and not reference.strip()):
        raise UsageError(f"{where}: the answer (column {column['answer']!r}) is empty")
    kind = _text(values, column["type"], where) or "default"
    given = _text(values, column["id"], where)
    group = _text(values, column["group"], where) if "group" in column else ""
    item = Item(given or digest([inputs, reference, kind])[:16], inputs, reference, kind, group)
    return Row(item, _text(values, column["split"], where) or None, where)


def _lifted(values: Mapping[str, Json], fields: Mapping[str, str]) -> Mapping[str, Json]:
    """The row with every field that is named by a path, such as `meta.label`, taken out of its object and put beside it."""
    row = values
    for column in fields.values():
        first, dot, rest = column.partition(".")
        if dot and column not in row and isinstance(row.get(first), Mapping):
            inner = _lifted(row[first], {"": rest})
            if rest in inner:
                row = {
                    **row,
                    first: {name: value for name, value in inner.items() if name != rest},
                    column: inner[rest],
                }
    return row


def _text(values: Mapping[str, Json], column: str, where: str) -> str:
    value = values.get(column)
    if value is None:
        return ""
    if isinstance(value, bool | float | list | dict):
        raise UsageError(f"{where}: {column!r} must be a text or a whole number, got {value!r}")
    return str(value).strip()


def _values(path: Path) -> Iterator[tuple[str, Mapping[str, Json]]]:
    """Each row's fields with where it stands."""
    if path.suffix not in SUFFIXES:
        raise UsageError(f"{path}: unknown kind of file {path.suffix!r}; known are {', '.join(SUFFIXES)}")
    if path.suffix == ".parquet":
        return parquet.rows(path)
    if path.exists() and not path.is_file():
        raise UsageError(f"{path} is no ordinary file; save the data as one")
    readers = {".jsonl": _jsonl, ".json": _json, ".csv": _csv}
    try:
        if path.stat().st_size > _LARGEST:
            raise UsageError(f"{path} has more than {_LARGEST >> 30} GiB; split it, or take a sample of it")
        data = path.read_bytes()
    except FileNotFoundError:
        raise UsageError(f"no such file: {path}") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}, line {line}: not UTF-8 text; save the file as UTF-8") from error
    if not text.strip():
        raise UsageError(f"{path}: the file is empty")
    return readers[path.suffix](path, text)


def _jsonl(path: Path, text: str) -> Iterator[tuple[str, Mapping[str, Json]]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            value = json.loads(line, parse_constant=_refuse, parse_int=_whole)
        except ValueError as error:
            raise UsageError(f"{where}: not JSON: {error}") from error
        except RecursionError as error:
            raise UsageError(f"{where}: {_TOO_DEEP}") from error
        yield where, _object(where, value)


def _json(path: Path, text: str) -> Iterator[tuple[str, Mapping[str, Json]]]:
    try:
        value = json.loads(text, parse_constant=_refuse, parse_int=_whole)
    except json.JSONDecodeError as error:
        raise UsageError(f"{path}, line {error.lineno}: not JSON: {error.msg} (column {error.colno})") from error
    except ValueError as error:
        raise UsageError(f"{path}: not JSON: {error}") from error
    except RecursionError as error:
        raise UsageError(f"{path}: {_TOO_DEEP}") from error
    rows = value.get("data") if isinstance(value, dict) else value
    if not isinstance(rows, list):
        raise UsageError(f"{path}: expected a list of objects, or an object with such a list under 'data'")
    for number, row in enumerate(rows, start=1):
        yield f"{path}, row {number}", _object(f"{path}, row {number}", row)


def _csv(path: Path, text: str) -> Iterator[tuple[str, Mapping[str, Json]]]:
    csv.field_size_limit(_CELL_LIMIT)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header: list[str] = []
    end = 0
    try:
        for cells in reader:
            where, end = f"{path}, line {end + 1}", reader.line_num
            if not cells:
                continue
            if not header:
                header = [name.strip() for name in cells]
                double = {name for name in header if header.count(name) > 1}
                if double:
                    raise UsageError(f"{where}: column {sorted(double)[0]!r} occurs twice")
                continue
            if len(cells) != len(header):
                raise UsageError(f"{where}: {len(cells)} values for {len(header)} columns ({', '.join(header)})")
            yield where, dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise UsageError(f"{path}, line {end + 1}: not CSV: {error}") from error


def _object(where: str, value: Json) -> Mapping[str, Json]:
    problem = jsonvalue.problem(value)
    if problem is not None:
        raise UsageError(f"{where}: {problem}")
    if not isinstance(value, dict):
        raise UsageError(
            f"{where}: expected an object with the fields 'input' and 'answer', got {json.dumps(value)[:60]}"
        )
    return value


def _whole(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:
        raise ValueError(f"a whole number of {len(digits)} digits is too long; write it as a text") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON value")
