"""Arms from a CSV file: long (a row per value, columns `metric` and `value`) or wide (a column per metric). Semicolons or
tabs may stand in place of the commas.

Known columns are `run`, `seed`, `step`, `arm`, `task`, `metric`, `value`, `parameters`, `commit`, `version`; every other
column of a wide file is a metric. Rows of one arm, task and run are one curve; without `run`, the seed tells runs apart.
What W&B exports from a chart (a column per run, named `RUN - METRIC`) is read too. Complaints name the file and the line.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

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
    rows: int = 0

    def add(self, metric: str, step: float, text: str, place: str) -> None:
        """A value as it stands in the table; one that is no number spoils its metric and nothing else."""
        try:
            self.points.setdefault(metric, []).append((step, _number(text, f"{place}: {metric}")))
        except UsageError as error:
            self.faults.setdefault(metric, str(error))


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
    reader.fieldnames = columns

    def rows() -> Iterator[tuple[int, dict[str, str]]]:
        for row in reader:
            if None in row or None in row.values():
                raise UsageError(f"{path}:{reader.line_num}: {len(columns)} columns were expected in this row")
            yield reader.line_num, row

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
        run = row.get("run") or f"seed {row.get('seed', '')}"
        one = found.setdefault((row.get("arm") or path.stem, row.get("task") or "", run), _Gathered())
        for name in ("seed", "parameters", "commit", "version"):
            if row.get(name) and one.about.setdefault(name, row[name]) != row[name]:
                raise UsageError(f"{path}:{line}: {run} has {name} {row[name]} here and {one.about[name]} before")
        step = _number(row[step_name], f"{path}:{line}: {step_name}") if step_name else float(one.rows)
        one.rows += 1
        values = {row["metric"]: row["value"]} if "metric" in columns else {name: row[name] for name in metrics}
        for metric, text in values.items():
            if not metric:
                raise UsageError(f"{path}:{line}: no name of a metric")
            if text == "":
                continue
            if (before := one.lines.setdefault((metric, step), line)) != line:
                raise UsageError(f"{path}:{line}: {run} has {metric} at step {step:g} twice, before in line {before}")
            one.add(metric, step, text, f"{path}:{line}")
    return found


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
