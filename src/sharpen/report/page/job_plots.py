"""The pictures of one job: its curves, its scores by type before and after, its gate's evidence, its items, its spend.

A job that trains a policy has evaluations by step and neither gate nor items; its curve marks the best and what it came to
when it was measured again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sharpen.report import steps, text
from sharpen.report.page.bars import Bar, bars
from sharpen.report.page.curves import UNIT, Banded, Pin, curves
from sharpen.report.page.forest import Row, Value, forest
from sharpen.report.page.gather import JobStory, Line
from sharpen.report.page.heat import Column, heat
from sharpen.report.page.marks import Picture
from sharpen.report.page.normal import differences
from sharpen.report.page.plots import file_name

_CURVES = {"current_score": "current, on val", "best_score": "best, on val", "batch_score": "train batch"}
_POLICY = {"current_score": "evaluated", "batch_score": "training episodes"}
_NOT_VAL = frozenset({"train", "screen", "slow-update", "test"})
_MOST_ITEMS = 60
_MOST_COLUMNS = 80
_MOST_TYPES = 40


def learning(job: JobStory) -> Picture | None:
    """The scores by step; of a policy its evaluations and training episodes, with the best marked."""
    series = []
    for key, name in (_POLICY if job.is_policy else _CURVES).items():
        points = [(float(row["step"]), float(row[key])) for row in job.results["steps"] if row[key] is not None]
        series.append(Banded(name, tuple(step for step, _ in points), tuple(value for _, value in points)))
    if not any(one.values for one in series):
        return None
    values = [value for one in series for value in one.values]
    unit = UNIT if all(0.0 <= value <= 1.0 for value in values) else None
    return curves(
        file_name("curves", job.job_id), f"{job.title}: scores by step", series, "step", "score", within=unit,
        normal=job.normal, pins=_best(job) if job.is_policy else (),
    )  # fmt: skip


def _best(job: JobStory) -> list[Pin]:
    """The evaluation that the best was chosen by, and what it came to when it was measured again."""
    best = job.results["best"] or {}
    step, confirmed = best.get("step"), best.get("confirmed") or {}
    pins = []
    if step is not None and best.get("raw") is not None:
        pins.append(Pin("best", float(step), best["raw"]))
    if step is not None and confirmed.get("value") is not None:
        pins.append(Pin("best, measured again", float(step), confirmed["value"], confirmed["low"], confirmed["high"]))
    return pins


def by_type(job: JobStory) -> Picture | None:
    """Before and after, with the intervals of each."""
    test = job.results["test"]
    before, after = (test.get(which, {}).get("by_type", {}) for which in ("initial", "best"))
    kinds = sorted(before, key=lambda kind: (-before[kind]["n"], kind))[:_MOST_TYPES]
    rows = []
    for kind in kinds:
        values = tuple(
            Value(row["mean"], row["low"], row["high"], place)
            for place, row in enumerate((before[kind], after.get(kind)))
            if row is not None and row["mean"] is not None
        )
        if values:
            rows.append(Row(kind, values, text.plural(before[kind]["n"], "item")))
    if len(rows) < 2:
        return None
    title = f"{job.title}: test scores by type with 95 % intervals"
    ends = [x for row in rows for value in row.values for x in (value.value, value.low, value.high) if x is not None]
    return forest(
        file_name("types", job.job_id), title, rows, ("before", "after"), "score on test",
        within=UNIT if all(0.0 <= x <= 1.0 for x in ends) else None, normal=job.normal,
    )  # fmt: skip


def evidence(job: JobStory) -> Picture | None:
    """What the gate saw of each candidate that was put before it, as far as there is an interval."""
    rows = []
    for line in decisions(job.lines):
        if line["effect"] is None:
            continue
        label = f"step {line['step']}, {'accepted' if line['accepted'] else 'not accepted'}"
        value = Value(line["effect"], line["low"], line["high"], 0 if line["accepted"] else 1)
        rows.append(Row(label, (value,), steps.effect(line)))
    if not rows:
        return None
    names = ("accepted", "not accepted")
    title = f"{job.title}: effects on val as the gate saw them, with 90 % intervals"
    return forest(
        file_name("gate", job.job_id),
        title,
        rows,
        names,
        "difference on val",
        zero=True,
        normal=differences(job.normal),
    )


def decisions(lines: Sequence[Line]) -> list[Line]:
    return [line for line in lines if line["type"] == "decided"]


def items(job: JobStory) -> Picture | None:
    """Val items against steps: the candidate each step put forward, or the current one where it put forward none."""
    known = _val_scores(job.lines)
    columns = _columns(job.lines)
    columns = [(column, digest) for column, digest in columns if known.get(digest)]
    columns = (
        columns[: _MOST_COLUMNS // 2] + columns[-_MOST_COLUMNS // 2 :] if len(columns) > _MOST_COLUMNS else columns
    )
    names = list(dict.fromkeys(item for _, digest in columns for item in known[digest]))
    table = {item: [known[digest].get(item) for _, digest in columns] for item in names}
    if len(columns) < 2:
        return None
    # Items in the order in which they came right, so that progress is a slope; those that differ are the ones worth a row.
    order = sorted(names, key=lambda item: _place(table[item]))
    if len(order) > _MOST_ITEMS:
        moved = [item for item in order if len({x for x in table[item] if x is not None}) > 1]
        rest = [item for item in order if item not in set(moved)]
        kept = set((moved + rest)[:_MOST_ITEMS])
        order = [item for item in order if item in kept]
    shown = "" if len(order) == len(names) else f" ({len(order)} of {len(names)} items, those that changed first)"
    title = f"{job.title}: val items by step{shown}; 0 is the start, bold steps were accepted"
    return heat(
        file_name("items", job.job_id), title, order, [column for column, _ in columns], [table[item] for item in order]
    )


def _place(row: Sequence[float | None]) -> tuple[int, float]:
    first = next((place for place, score in enumerate(row) if score is not None and score >= 0.5), len(row))
    return first, -sum(score for score in row if score is not None)


def _columns(lines: Sequence[Line]) -> list[tuple[Column, str]]:
    """The start, and for each step what it put forward."""
    if not lines or not lines[0].get("candidate"):
        return []
    made = [(Column("0", True, "the start"), str(lines[0]["candidate"]))]
    tried: str | None = None
    for line in lines:
        if line["type"] == "revised":
            tried = line["candidate"]
        elif line["type"] == "step_done":
            taken = line["action"] == "accept"
            digest = str(line["current"] if tried is None or taken else tried)
            made.append((Column(str(line["step"]), taken, f"step {line['step']}"), digest))
            tried = None
    return made


def _val_scores(lines: Sequence[Line]) -> dict[str, dict[str, float]]:
    """By candidate and item the mean of its attempts on val. Where events name the whole split and never its items, these
    are known by their place; where they do both, what has no ids is left out, since nobody can tell who is who."""
    measured = [line for line in lines if line["type"] == "measured" and line["purpose"] not in _NOT_VAL]
    named = any(isinstance(group["items"], list) for line in measured for group in line["groups"])
    attempts: dict[str, dict[str, list[float]]] = {}
    for line in measured:
        for group in line["groups"]:
            names = group["items"]
            if named and isinstance(names, str):
                continue
            for place, score in enumerate(group["hard"]):
                if score is not None:
                    item = f"{names}[{place}]" if isinstance(names, str) else str(names[place])
                    attempts.setdefault(group["candidate"], {}).setdefault(item, []).append(float(score))
    return {
        candidate: {item: sum(scores) / len(scores) for item, scores in own.items()}
        for candidate, own in attempts.items()
    }


def spend(job: JobStory) -> Picture | None:
    """Tokens by stage."""
    stages: dict[str, float] = {}
    order = list(job.results["clock"]["stages"])
    for key, roles in job.results["usage"]["stages"].items():
        name = key.partition("/")[0]
        stages[name] = stages.get(name, 0) + sum(map(_tokens, roles.values()))
    rows = [Bar(name, amount, f"{text.count(amount)} tokens") for name, amount in _ordered(stages, order) if amount]
    return bars(file_name("spend", job.job_id), f"{job.title}: tokens by stage", rows) if rows else None


def _ordered(stages: Mapping[str, float], order: Sequence[str]) -> list[tuple[str, float]]:
    """As they were gone through, where that is known."""
    return sorted(stages.items(), key=lambda one: order.index(one[0]) if one[0] in order else len(order))


def _tokens(row: Mapping[str, Any]) -> int:
    return int(row["prompt_tokens"] + row["completion_tokens"])
