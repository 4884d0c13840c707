"""What came of a task that aims at several things at once, told from the lines of a job's story.

For the candidates that were tested: the mean of each objective on test. For all that were measured on val: the Pareto front,
those whom nobody beats in one objective without losing in another. Means over few items say little, so only candidates take
part that were measured on at least half as many val items as the one measured on most. Where every objective has a range,
the front is summed up by its hypervolume: the share of all values in the ranges that it dominates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from sharpen.core.digest import Json
from sharpen.core.objective import Objective
from sharpen.stats import pareto

Line = Mapping[str, Any]

_ENOUGH = 0.5
_DIGITS = 9


Values = dict[str, dict[str, dict[int, float]]]
"""By objective, item and sample."""


def of_job(lines: Sequence[Line]) -> dict[str, Json] | None:
    """What a job came to in each objective; None for a task that has none."""
    told = next((line for line in lines if line["type"] == "objectives_stated"), None)
    if told is None:
        return None
    stated = told["objectives"]
    tested, val = _collect(lines, told, "test"), _collect(lines, told, "val")
    most = max(map(_count, val.values()), default=0)
    born = _first_steps(lines)
    measured = [
        {"candidate": candidate, "step": born[candidate], "n": _count(values), "means": _means(values)}
        for candidate, values in val.items()
        if _count(values) >= max(1.0, _ENOUGH * most)
    ]
    which = {line["which"]: tested.get(line["candidate"]) for line in lines if line["type"] == "tested"}
    return {
        "stated": stated,
        "test": {name: _means(values) for name, values in which.items() if values is not None and _count(values)},
        "measured_on_val": len(val),
        **front(stated, measured),
    }


def front(stated: Mapping[str, Sequence[Json]], rows: Sequence[Mapping[str, Any]]) -> dict[str, Json]:
    """Those of `rows` that nobody dominates by their `means`, and the hypervolume of all."""
    objectives = {name: Objective.from_row(row) for name, row in stated.items()}
    directions = [objective.direction for objective in objectives.values()]
    points = [[row["means"][name] for name in objectives] for row in rows]
    return {
        "compared": len(rows),
        "front": [rows[place] for place in pareto.front(points, directions)],
        "hypervolume": _hypervolume(objectives, rows),
    }


def of_study(rows: Iterable[Mapping[str, Any]]) -> dict[str, Json]:
    """By task: the front over all jobs, each candidate once, from the job that measured it on most items. `rows` are those
    of the table of results."""
    tasks: dict[str, dict[str, Any]] = {}
    for row in rows:
        found = row["objectives"]
        if found is None:
            continue
        whose = {"job_id": row["job_id"], "arm": row["arm"], "seed": row["seed"]}
        task = tasks.setdefault(row["task_id"], {"stated": found["stated"], "rows": {}})
        for one in found["front"]:
            same = task["rows"].setdefault(one["candidate"], {**whose, **one})
            if one["n"] > same["n"]:
                task["rows"][one["candidate"]] = {**whose, **one}
    return {
        name: {"stated": task["stated"], **front(task["stated"], list(task["rows"].values()))}
        for name, task in tasks.items()
    }


def _hypervolume(objectives: Mapping[str, Objective], rows: Sequence[Mapping[str, Any]]) -> float | None:
    if any(objective.range is None for objective in objectives.values()):
        return None
    shares = [[objectives[name].share(row["means"][name]) for name in objectives] for row in rows]
    return round(pareto.hypervolume(shares, [0.0] * len(objectives), ["max"] * len(objectives)), _DIGITS)


def _collect(lines: Sequence[Line], told: Line, split: str) -> dict[str, Values]:
    """What was measured on a split, by candidate, in the order they were first measured in."""
    found: dict[str, Values] = {}
    val = frozenset(told["val"])
    for group in (group for line in lines if line["type"] == "measured" for group in line["groups"]):
        items = group["items"]
        if items == split:
            ids = told["val"] if split == "val" else range(len(group["hard"]))
        elif split == "val" and not isinstance(items, str) and val.issuperset(items):
            ids = items
        else:
            continue
        values = found.setdefault(group["candidate"], {name: {} for name in told["objectives"]})
        for name, known in values.items():
            for item, value in zip(ids, group.get("measures", {}).get(name, ()), strict=False):
                if value is not None:
                    known.setdefault(str(item), {})[group["sample"]] = value
    return found


def _count(values: Values) -> int:
    return min((len(known) for known in values.values()), default=0)


def _means(values: Values) -> dict[str, float]:
    """The mean over items, each counting once."""
    return {
        name: round(fmean(fmean(samples.values()) for samples in known.values()), _DIGITS)
        for name, known in values.items()
    }


def _first_steps(lines: Sequence[Line]) -> dict[str, int]:
    """The step in which each candidate was first measured: that of the stage that ends next, or the last one there was."""
    born: dict[str, int] = {}
    step = max((line["step"] for line in lines if line["type"] == "stage_done"), default=0)
    for line in reversed(lines):
        if line["type"] == "stage_done":
            step = line["step"]
        elif line["type"] == "measured":
            born.update({group["candidate"]: step for group in line["groups"]})
    return {**born, lines[0].get("candidate", ""): 0}
