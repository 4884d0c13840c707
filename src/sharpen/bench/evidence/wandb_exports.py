"""Arms from what was exported of W&B as JSON: a run's history as a list of rows, or as `columns` and `data`, which is also
how its tables are written.

A file is a run, called after the file; a folder of such files is an arm. Where rows name their run (`run`, `run_id`,
`name`), seed, arm or task, those count, as in a CSV file. A history of one run may be without steps: its rows are in order.
Where a file has several runs, each has one row without a step. Everything else that is a number is a metric, also one that
W&B writes as the text "NaN". Other texts, media and what begins with an underscore are not read, and null is a gap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sharpen.bench.evidence.doublets import twice, whose
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
    rows = _rows(file)
    own = [_seed(row, f"{file}: row {number}") for number, row in enumerate(rows, start=1)]
    keys = _keys(rows, own, file.stem, path.stem if path.is_file() else path.name)
    alone = len(set(keys)) == 1
    stepped = any(one in row for row in rows for one in _STEPS)
    found: dict[Key, Points] = {}
    seeds: dict[Key, int] = {}
    places: dict[tuple[Key, str], int] = {}
    for number, (key, seed, row) in enumerate(zip(keys, own, rows, strict=True), start=1):
        place = f"{file}: row {number}"
        if seed is not None and seeds.setdefault(key, seed) != seed:
            raise UsageError(f"{place}: {key[2]} has seed {seed} here and {seeds[key]} before")
        points = found.setdefault(key, {})
        step = next((row[one] for one in _STEPS if _is_number(row.get(one))), None)
        if step is None and stepped:
            raise UsageError(f"{place} has no number for its step")
        for metric, value in row.items():
            if (_is_number(value) or value in _NO_NUMBERS) and metric not in (*_STEPS, *_ABOUT) and metric[:1] != "_":
                row_of = points.setdefault(metric, [])
                if row_of and not stepped and not alone:
                    before = places[key, metric]
                    who, unused = whose(_word(row, "arm"), *key[1:]), _unused(row, rows[before - 1])
                    raise twice(place, who, metric, f"row {before}", row.keys(), unused, stepped=False)
                places[key, metric] = number
                row_of.append((float(len(row_of) if step is None else step), float(value)))
    for key, points in found.items():
        yield key, {metric: sorted(row) for metric, row in points.items()}, seeds.get(key, seed_in(key[2]))


def _keys(rows: Sequence[Mapping[str, Any]], seeds: Sequence[int | None], file: str, source: str) -> list[Key]:
    """Whose each row is. Rows that do not name their run are of the file's, or of its seeds' where there are several."""
    named = [next((_word(row, key) for key in _RUNS if _word(row, key)), "") for row in rows]
    several = len({seed for seed, name in zip(seeds, named, strict=True) if not name and seed is not None}) > 1
    lone = [f"seed {seed}" if several and seed is not None else file for seed in seeds]
    return [
        (_word(row, "arm") or source, _word(row, "task"), name or otherwise)
        for row, name, otherwise in zip(rows, named, lone, strict=True)
    ]


def _word(row: Mapping[str, Any], key: str) -> str:
    return "" if row.get(key) is None else str(row[key]).strip()


def _seed(row: Mapping[str, Any], place: str) -> int | None:
    word = _word(row, "seed")
    try:
        return int(word.removesuffix(".0")) if word else None
    except ValueError:
        raise UsageError(f"{place}: the seed is {word!r}; seeds are whole numbers") from None


def _unused(row: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """The texts in which two rows differ and that say nothing here."""
    texts = [name for name, value in row.items() if isinstance(value, str) and value not in _NO_NUMBERS]
    return [name for name in texts if name not in _ABOUT and other.get(name) != row[name]]


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
    doubled = next((name for name in columns if columns.count(name) > 1), None)
    if doubled is not None:
        raise UsageError(f"{file}: columns has {doubled} twice; take one away or rename it")
    for number, row in enumerate(data, start=1):
        if not isinstance(row, Sequence) or isinstance(row, str) or len(row) != len(columns):
            raise UsageError(f"{file}: row {number} of data has not the {len(columns)} values that columns name")
    return [dict(zip(map(str, columns), row, strict=True)) for row in data]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
