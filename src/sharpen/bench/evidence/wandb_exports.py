"""Arms from what was exported of W&B as JSON: a run's history as a list of rows, or as `columns` and `data`, which is also
how its tables are written.

A file is a run, called after the file; a folder of such files is an arm. Where rows name their run (`run`, `run_id`,
`name`), seed, arm or task, those count, as in a CSV file. Everything else that is a number is a metric, also one that W&B
writes as the text "NaN". Other texts, media and what begins with an underscore are not read, and null is a gap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sharpen.bench.evidence.json_files import load
from sharpen.bench.evidence.nouns import Arm, Run, curves
from sharpen.bench.evidence.settings import seed_in
from sharpen.core.errors import UsageError

_STEPS = ("_step", "step", "global_step", "Step")
_RUNS = ("run", "run_id", "name")
_ABOUT = ("seed", "arm", "task", *_RUNS)
_NO_NUMBERS = ("NaN", "Infinity", "-Infinity")
_START = 4_000

Key = tuple[str, str, str]
Points = dict[str, list[tuple[float, float]]]


def holds(path: Path) -> bool:
    """Whether a JSON file, or all there are in a folder, look like rows."""
    files = _files(path)
    return bool(files) and all(_looks_like_rows(file) for file in files)


def read(path: Path) -> list[Arm]:
    """The arms of a file, or of a folder of files."""
    arms: dict[str, list[Run]] = {}
    for file in _files(path):
        for (arm, task, name), points, seed in _runs(file, path):
            made, faults = curves(points, f"{file}, {name}")
            if not made and not faults:
                raise UsageError(f"{file} has no numbers for {name}; a history has _step and at least one metric")
            own = arms.setdefault(arm, [])
            if any(run.name == name and run.task == task for run in own):
                raise UsageError(f"{file}: the run {name} is in another file too; a run counts once")
            own.append(Run(name, str(file), task, seed, made, faults))
    return [Arm(name, tuple(runs)) for name, runs in arms.items()]


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path] if path.suffix == ".json" else []
    return sorted(path.glob("*.json"))


def _looks_like_rows(file: Path) -> bool:
    with file.open(encoding="utf-8", errors="replace") as opened:
        start = opened.read(_START).lstrip("\ufeff \n\r\t")
    return start[:1] in ("", "[") or ('"columns"' in start or '"data"' in start)


def _runs(file: Path, path: Path) -> Iterator[tuple[Key, Points, int | None]]:
    """Each run of a file with its points by metric, and its seed."""
    found: dict[Key, Points] = {}
    seeds: dict[Key, int | None] = {}
    lone = file.stem if path.is_dir() or path == file else path.stem
    for number, row in enumerate(_rows(file)):
        name = next((str(row[key]) for key in _RUNS if row.get(key) not in (None, "")), lone)
        key = str(row.get("arm") or (path.name if path.is_dir() else path.stem)), str(row.get("task") or ""), name
        seed = row.get("seed")
        seeds.setdefault(key, seed if isinstance(seed, int) else seed_in(name))
        points = found.setdefault(key, {})
        step = next((row[one] for one in _STEPS if _is_number(row.get(one))), None)
        if step is None and any(one in row for one in _STEPS):
            raise UsageError(f"{file}: row {number + 1} has no number for its step")
        for metric, value in row.items():
            if (_is_number(value) or value in _NO_NUMBERS) and metric not in (*_STEPS, *_ABOUT) and metric[:1] != "_":
                row_of = points.setdefault(metric, [])
                row_of.append((float(len(row_of) if step is None else step), float(value)))
    for key, points in found.items():
        yield key, {metric: sorted(row) for metric, row in points.items()}, seeds[key]


def _rows(file: Path) -> list[Mapping[str, Any]]:
    content = load(file)
    if isinstance(content, Mapping):
        content = _from_columns(file, content)
    if not isinstance(content, list) or not all(isinstance(row, Mapping) for row in content):
        raise UsageError(f"{file}: a history is a list of rows, or has columns and data; this is neither")
    if not content:
        raise UsageError(f"{file} has no rows")
    return content


def _from_columns(file: Path, content: Mapping[str, Any]) -> list[dict[str, Any]]:
    columns, data = content.get("columns"), content.get("data")
    if not isinstance(columns, list) or not isinstance(data, list):
        raise UsageError(
            f"{file}: a history is a list of rows, or has columns and data; there are {', '.join(content)}"
        )
    for number, row in enumerate(data, start=1):
        if not isinstance(row, Sequence) or isinstance(row, str) or len(row) != len(columns):
            raise UsageError(f"{file}: row {number} of data has not the {len(columns)} values that columns name")
    return [dict(zip(map(str, columns), row, strict=True)) for row in data]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
