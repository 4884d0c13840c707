"""The events only ReflACT tells: what was proposed, tried, changed and decided in each step."""

from __future__ import annotations

from dataclasses import dataclass

from sharpen.core.digest import Json
from sharpen.engine.events import Event


@dataclass(frozen=True)
class Proposed(Event):
    """The alternatives of a step after merging, and how many calls of the optimizer brought nothing usable."""

    step: int
    failures: int
    successes: int
    alternatives: list[dict[str, Json]]
    lost_answers: int


@dataclass(frozen=True)
class Selected(Event):
    """The alternatives tried against each other on train items: `[number, score, score of the current candidate on the
    same items, items, edits kept]` each. None is chosen where none did better than the current candidate."""

    step: int
    edit_budget: int
    tried: list[list[Json]]
    chosen: int | None


@dataclass(frozen=True)
class Revised(Event):
    """The chosen edits applied to the current candidate, one report row per edit, and what the leak check found."""

    step: int
    candidate: str
    edits: list[dict[str, Json]]
    report: list[dict[str, Json]]
    leaks: list[Json]


@dataclass(frozen=True)
class StepDone(Event):
    """How a step ended. Actions: accept, reject; skip_no_failures, skip_no_edits (nothing was proposed), skip_no_promise
    (nothing proposed did better on train items), skip_no_change, skip_leak, skip_tried (by an earlier step)."""

    step: int
    epoch: int
    action: str
    batch_score: float | None
    current: str
    current_score: float | None
    best: str
    best_score: float | None
    best_step: int
