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
    """The chosen edits applied: all that leads from the current candidate to this one, those of a draft it builds on
    included; a report row for each edit that is new in this step; and what the leak check found."""

    step: int
    candidate: str
    edits: list[dict[str, Json]]
    report: list[dict[str, Json]]
    leaks: list[Json]


@dataclass(frozen=True)
class StepDone(Event):
    """How a step ended. Actions: accept; draft (not proven, but kept to build on); reject; skip_no_failures; skip_no_edits
    (nothing was proposed); skip_no_promise (nothing proposed did better on train items); skip_no_change; skip_leak;
    skip_tried (by an earlier step)."""

    step: int
    epoch: int
    action: str
    batch_score: float | None
    current: str
    current_score: float | None
    best: str
    best_score: float | None
    best_step: int


@dataclass(frozen=True)
class Promoted(Event):
    """The final check of a draft that was left: the difference between it and the current candidate on val, which is not
    proven, whether it was proven better than the initial one, and so whether it is now the best."""

    candidate: str
    effect: float | None
    low: float | None
    high: float | None
    promoted: bool
