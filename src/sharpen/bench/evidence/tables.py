"""Arms from a CSV file: long (a row per value, columns `metric` and `value`) or wide (a column per metric). Semicolons or
tabs may stand in place of the commas.

Known columns are `run`, `seed`, `step`, `arm`, `task`, `metric`, `value`, `parameters`, `commit`, `version`; every other
column of a wide file is a metric. Rows of one arm, task and run are one curve by `step`; without `run`, the seed tells runs
apart. Without `step` a run has one value of each metric: a second one is as likely of another task or seed, and refused.
What W&B exports from a chart (a column per run, named `RUN - METRIC`) is read too. Complaints name the file and the line.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sharpen.bench.evidence.doublets import twice, whose
from sharpen.bench.evidence.nouns import Arm, Run, curves
from sharpen.bench.evidence.settings import seed_in
from sharpen.core.errors import UsageError

_STEPS = ("step", "_step", "global_step", "Step", "timestep", "timesteps")
_KNOWN = ("run", "seed", "arm", "task", "metric", "value", "parameters", "commit", "version", *_STEPS)
_CHART = re.compile(r"(?P<run>.+) - (?P<metric>[^ ]+?)(?P<edge>__MIN|__MAX)?")


@dataclass
class _Gathered:
    """A run while its rows are read."""

    points: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    lines: dict[tuple[str, float], int] = field(default_factory=dict)
    about: dict[str, str] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)

    def add(self, metric: str, step: float, text: str, place: str) -> bool:
        """Take a value as it stands in the table; one that is no number spoils its metric and nothing else."""
        try:
            self.points.setdefault(metric, []).append((step, _number(text, f"{place}: {metric}")))
        except UsageError as error:
            self.faults.setdefault(metric, str(error))
            return False
        return True


def read(path: Path) -> list[Arm]:
    """The arms of a CSV file; one, called after the file, where it has no column `arm`."""
    columns, rows = _rows(path)
    if _is_chart(columns):
        return _arms(path, _chart(path, columns, rows))
    if "run" not in columns and "seed" not in columns:
        raise UsageError(f"{path}: no column run or seed, so runs can't be told apart; there are {', '.join(columns)}")
    if ("metric" in columns) != ("value" in columns):
        raise UsageError(f"{path}: a long table has both metric and value; there are {', '.join(columns)}")
    metrics = [name for name in columns if name and name not in _KNOWN]  # an index that was saved along has no name
    if "metric" not in columns and not metrics:
        raise UsageError(f"{path}: no column with a metric beside {', '.join(columns)}")
    return _arms(path, _gather(path, columns, metrics, rows))


def _rows(path: Path) -> tuple[list[str], Iterator[tuple[int, dict[str, str]]]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}") from error
    reader = csv.DictReader(text.splitlines(), delimiter=_separator(text.partition("\n")[0]))
    columns = [name.strip() for name in reader.fieldnames or []]
    if not columns:
        raise UsageError(f"{path} is empty; a comparison needs the columns run, seed, step and a metric")
    for place, name in enumerate(columns):
        if name and (first := columns.index(name)) < place:
            raise UsageError(
                f"{path}: the header has {name} twice, as columns {first + 1} and {place + 1}; take one away or rename it"
            )
    reader.fieldnames = columns

    def rows() -> Iterator[tuple[int, dict[str, str]]]:
        for row in reader:
            if None in row or None in row.values():
                raise UsageError(f"{path}:{reader.line_num}: {len(columns)} columns were expected in this row")
            cells = {name: text.strip() for name, text in row.items()}
            if any(cells.values()):  # spreadsheets leave rows of empty cells behind
                yield reader.line_num, cells

    return columns, rows()


def _separator(head: str) -> str:
    """What stands between the columns, by the first line; some programs write semicolons, a `.tsv` has tabs."""
    return max(",;\t", key=head.count)


def _gather(
    path: Path, columns: Sequence[str], metrics: Sequence[str], rows: Iterator[tuple[int, dict[str, str]]]
) -> dict[tuple[str, str, str], _Gathered]:
    step_name = next((name for name in _STEPS if name in columns), None)
    found: dict[tuple[str, str, str], _Gathered] = {}
    for line, row in rows:
        run = row.get("run") or (f"seed {row['seed']}" if row.get("seed") else "the run without a seed")
        key = row.get("arm") or path.stem, row.get("task") or "", run
        one = found.setdefault(key, _Gathered())
        for name in ("seed", "parameters", "commit", "version"):
            if row.get(name) and one.about.setdefault(name, row[name]) != row[name]:
                raise UsageError(f"{path}:{line}: {run} has {name} {row[name]} here and {one.about[name]} before")
        step = _number(row[step_name], f"{path}:{line}: {step_name}") if step_name else 0.0
        values = {row["metric"]: row["value"]} if "metric" in columns else {name: row[name] for name in metrics}
        for metric, text in values.items():
            if not metric:
                raise UsageError(f"{path}:{line}: no name of a metric")
            if text == "" or not one.add(metric, step, text, f"{path}:{line}"):
                continue
            if (before := one.lines.setdefault((metric, step), line)) != line:
                who = whose(row.get("arm", ""), *key[1:])
                what = f"{metric} at step {step:g}" if step_name else metric
                unused = _unused(columns, metrics, row, _row_in(path, before))
                raise twice(f"{path}:{line}", who, what, f"line {before}", columns, unused, stepped=bool(step_name))
    return found


def _unused(
    columns: Sequence[str], metrics: Sequence[str], row: Mapping[str, str], other: Mapping[str, str]
) -> list[str]:
    """The columns in which two rows differ and that say nothing here: in a long table all that are not known, in a wide one
    those of texts."""
    differ = [name for name in metrics if row[name] != other[name]]
    return differ if "metric" in columns else [name for name in differ if _is_text(row[name]) or _is_text(other[name])]


def _is_text(cell: str) -> bool:
    try:
        float(cell or "0")
    except ValueError:
        return True
    return False


def _row_in(path: Path, line: int) -> dict[str, str]:
    return next(row for number, row in _rows(path)[1] if number == line)


def _arms(path: Path, gathered: Mapping[tuple[str, str, str], _Gathered]) -> list[Arm]:
    if not gathered:
        raise UsageError(f"{path} has a header and no values below it")
    arms: dict[str, list[Run]] = {}
    for (arm, task, run), one in gathered.items():
        whole = {metric: sorted(points) for metric, points in one.points.items() if metric not in one.faults}
        made, faults = curves(whole, f"{path}, {run}")
        parameters = one.about.get("parameters")
        arms.setdefault(arm, []).append(
            Run(
                name=run,
                source=str(path),
                task=task,
                seed=_seed(one.about.get("seed"), run, path),
                curves=made,
                faults={**one.faults, **faults},
                version=one.about.get("version", ""),
                commit=one.about.get("commit", ""),
                parameters=None if parameters is None else _number(parameters, f"{path}: parameters of {run}"),
            )
        )
    return [Arm(name, tuple(runs)) for name, runs in arms.items()]


def _seed(given: str | None, run: str, path: Path) -> int | None:
    if given is None:
        return seed_in(run)
    try:
        return int(given.removesuffix(".0"))  # a column with a gap in it is often saved as floats
    except ValueError:
        raise UsageError(f"{path}: the seed of {run} is {given!r}; seeds are whole numbers") from None


def _number(text: str, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise UsageError(f"{what} is {text!r}, which is not a number") from None
    if not math.isfinite(value):
        raise UsageError(f"{what} is {text}; leave the cell empty where a value is missing")
    return value


def _is_chart(columns: Sequence[str]) -> bool:
    """What W&B exports from a chart: the step, then columns named after run and metric."""
    return columns[0] in _STEPS and len(columns) > 1 and all(_CHART.fullmatch(name) for name in columns[1:])


def _chart(
    path: Path, columns: Sequence[str], rows: Iterator[tuple[int, dict[str, str]]]
) -> dict[tuple[str, str, str], _Gathered]:
    found: dict[tuple[str, str, str], _Gathered] = {}
    for line, row in rows:
        step = _number(row[columns[0]], f"{path}:{line}: {columns[0]}")
        for name in columns[1:]:
            part = _CHART.fullmatch(name)
            assert part is not None
            if row[name] != "" and not part["edge"] and not part["metric"].startswith("_"):
                one = found.setdefault((path.stem, "", part["run"]), _Gathered())
                one.add(part["metric"], step, row[name], f"{path}:{line}")
    return found
