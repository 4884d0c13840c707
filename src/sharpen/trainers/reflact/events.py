"""The events only ReflACT tells: what was read, proposed, tried, changed and decided, step by step and epoch by epoch."""

from __future__ import annotations

from dataclasses import dataclass, field

from sharpen.core.digest import Json
from sharpen.engine.events import Event


@dataclass(frozen=True)
class Planned(Event):
    """What the settings come to for this task, and remarks on where they do not fit it."""

    steps: int
    steps_per_epoch: int
    items_per_step: int
    deciding: int
    held_back: int
    remarks: list[str]


@dataclass(frozen=True)
class Shortened(Event):
    """The material of a question was cut to fit the optimizer's context; `fits` is False where even that was too long."""

    scope: list[str | int]
    characters: int
    fits: bool


@dataclass(frozen=True)
class Reflected(Event):
    """What the analysts made of a step's attempts. `batches`: items, hard and soft mean, failures and successes of each
    accumulated batch. `readings`: one per minibatch, with the items it showed, what was seen in them (patterns with their
    items), how many changes came of it, the notes, and the error where the answer was of no use."""

    step: int
    batches: list[list[Json]]
    readings: list[dict[str, Json]]


@dataclass(frozen=True)
class Proposed(Event):
    """The alternatives of a step after merging, and how many calls of the optimizer brought nothing usable."""

    step: int
    failures: int
    successes: int
    alternatives: list[dict[str, Json]]
    lost_answers: int


@dataclass(frozen=True)
class BudgetChosen(Event):
    """The optimizer's own decision on how many changes to make. `usable` is False where its answer was not, and the
    schedule's number was taken."""

    step: int
    budget: int
    pool: int
    usable: bool
    reasons: str
    confidence: str
    risks: str


@dataclass(frozen=True)
class Refused(Event):
    """Alternatives that can't be tried: `[number, source, refusal, why]` each; the refusals are those of `StepDone`."""

    step: int
    alternatives: list[list[Json]]


@dataclass(frozen=True)
class Selected(Event):
    """The alternatives tried against each other on train items: `[number, score, score of the current candidate on the
    same items, items, changes kept]` each. None is chosen where none did better than the current candidate. `edit_budget`
    is null where there is no limit."""

    step: int
    edit_budget: int | None
    tried: list[list[Json]]
    chosen: int | None


@dataclass(frozen=True)
class Revised(Event):
    """The chosen changes made: all that leads from the current candidate to this one, those of a draft it builds on
    included; a report row for each edit that is new in this step; what the leak check found; and the new text of each
    part that was rewritten as a whole."""

    step: int
    candidate: str
    edits: list[dict[str, Json]]
    report: list[dict[str, Json]]
    leaks: list[Json]
    texts: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class StepDone(Event):
    """How a step ended. Actions: accept; draft (not proven, but kept to build on); reject; skip_no_failures; skip_no_edits
    (nothing was proposed); skip_no_rewrite (none was written); skip_no_promise (nothing proposed did better on train
    items); skip_no_change; skip_leak; skip_tried (by an earlier step). `unscored` says what was put into the current
    candidate without being measured; its score is null until it is."""

    step: int
    epoch: int
    action: str
    batch_score: float | None
    batch_soft: float | None
    current: str
    current_score: float | None
    best: str
    best_score: float | None
    best_step: int
    unscored: str = ""


@dataclass(frozen=True)
class NotesKept(Event):
    """Reminders that went into the appendix of the current candidate after a step, and what they came to there."""

    step: int
    added: list[str]
    total: int
    consolidated: bool
    candidate: str


@dataclass(frozen=True)
class SlowUpdated(Event):
    """The long view at an epoch's end. `pairs`: item, category, score with the previous and with today's candidate.
    Actions: accept, reject, force_accept, no_content, no_change, leak, too_long, no_pairs, same_candidate, lost_answer."""

    epoch: int
    step: int
    action: str
    policy: str
    previous: str
    current: str
    pairs: list[list[Json]]
    tried: int
    reasons: str = ""
    content: str = ""
    candidate: str | None = None


@dataclass(frozen=True)
class MetaSkillWritten(Event):
    """The optimizer's notebook after an epoch; it is never part of a candidate."""

    epoch: int
    action: str
    reasons: str
    content: str


@dataclass(frozen=True)
class EpochDone(Event):
    epoch: int
    step: int
    current: str
    current_score: float | None
    best: str
    best_score: float | None
    unscored: str = ""


@dataclass(frozen=True)
class Promoted(Event):
    """The final check of a candidate training ended with that is not the best one: the difference between the two on val,
    whether it was proven better than the initial one, and so whether it is now the best. `measured` is its score on val."""

    candidate: str
    effect: float | None
    low: float | None
    high: float | None
    promoted: bool
    measured: float | None = None
