"""A measurement as the story tells it, and what the story said of failures, read back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sharpen.core.digest import Json
from sharpen.core.item import Item
from sharpen.core.outcome import Failure, FailureKind, Outcome
from sharpen.core.task import SPLITS, Splits
from sharpen.core.usage import Usage
from sharpen.engine.evaluation import Evaluation, Group
from sharpen.engine.events import Measured
from sharpen.engine.meter import rows


def describe(
    evaluation: Evaluation, sample: int, splits: Splits, failed_outcomes: Sequence[Outcome | None]
) -> dict[str, Json]:
    """One group of a measurement: a split by its name where all of it was asked for, scores in item order."""
    items = evaluation.items
    failed = {}
    for item, outcome in zip(items, failed_outcomes, strict=True):
        if item.id in evaluation.failures and outcome is not None:
            failure = evaluation.failures[item.id]
            trace = [failure.trace] if failure.trace else []
            failed[item.id] = [failure.kind, failure.message, rows(outcome.usage), *trace]
    soft = None if evaluation.soft == evaluation.hard else [_compact(score) for score in evaluation.soft]
    described: dict[str, Json] = {
        "candidate": evaluation.candidate.digest,
        "sample": sample,
        "items": _describe_items(items, splits),
        "hard": [_compact(score) for score in evaluation.hard],
        "soft": soft,
        "failed": failed,
    }
    if evaluation.measures:
        described["measures"] = {name: list(values) for name, values in evaluation.measures.items()}
    return described


def describe_wish(stage: str, purpose: str, groups: Sequence[Group], splits: Splits) -> dict[str, Any]:
    """The fields of a measurement's event that are known before it is carried out."""
    asked = [
        {"candidate": group.candidate.digest, "sample": group.sample, "items": _describe_items(group.items, splits)}
        for group in groups
    ]
    return {"type": Measured.type, "stage": stage, "purpose": purpose, "groups": asked}


def _describe_items(items: Sequence[Item], splits: Splits) -> str | list[str]:
    """The name of a split where all of it is meant, else the ids."""
    whole = next((name for name in SPLITS if _same_items(items, splits[name])), None)
    return whole or [item.id for item in items]


def failures_on_record(told: Mapping[str, Any] | None) -> dict[tuple[str, int, str], Outcome]:
    """What the story says about failures at this place: history is not tried again, only what it did not reach is."""
    if told is None or told.get("type") != Measured.type:
        return {}
    found = {}
    for group in told["groups"]:
        for item_id, (kind, message, used, *trace) in group["failed"].items():
            usage = {role: Usage.from_told(row) for role, row in used.items()}
            failure = Failure(FailureKind(kind), message, *trace)
            found[(group["candidate"], group["sample"], item_id)] = Outcome(
                item_id, None, None, usage=usage, failure=failure
            )
    return found


def _same_items(some: Sequence[Item], others: Sequence[Item]) -> bool:
    return len(some) == len(others) and all(a.id == b.id for a, b in zip(some, others, strict=True))


def _compact(score: float | None) -> float | int | None:
    """0 and 1 as integers: most scores are, and the file is half as long."""
    return int(score) if score in (0.0, 1.0) else score
