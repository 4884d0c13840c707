"""The typed events of a job and the lines they are written as.

A job's `events.jsonl` tells its story in order; every other file and page is derived from it. Each line holds `n` (its
number), `type`, the event's own fields, and `clock`, the only place for anything that depends on when or how fast it ran.
Two runs of the same job agree in everything but `clock`. A new kind of event is a frozen dataclass derived from `Event`;
trainers may add their own.
"""

from __future__ import annotations

import builtins
import dataclasses
import json
import re
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from sharpen.core.digest import Json
from sharpen.core.errors import UsageError

SCHEMA_VERSION = 1
LOG_VERSION = 2
"""How positions in the log are given out. Since 2, nothing moves into the position of a question that failed."""

UsageRow: TypeAlias = list[int | float | None]
"""`Usage.told()`: calls, prompt tokens, completion tokens, money."""


@dataclass(frozen=True)
class Event:
    """Base class. The type's name in the file is the class name in snake_case."""

    kinds: ClassVar[dict[str, builtins.type[Event]]] = {}
    type: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        taken = {"n", "type", "clock"} & set(cls.__annotations__)
        if taken:
            raise TypeError(f"{cls.__name__}: every line has a field {', '.join(taken)} of its own")
        cls.type = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        Event.kinds[cls.type] = cls

    def fields(self) -> dict[str, Json]:
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}


@dataclass(frozen=True)
class JobStarted(Event):
    """The first event: what is being done. `splits` maps each split to its size and the digest of its items."""

    schema: int
    job_id: str
    task: str
    task_version: str
    trainer: str
    trainer_version: str
    params: dict[str, Json]
    models: dict[str, Json]
    render: str
    seed: int
    repeatable: bool
    splits: dict[str, list[Json]]
    candidate: str


@dataclass(frozen=True)
class ObjectivesStated(Event):
    """The second event of a job whose task aims at several things: of each its direction, weight and range. `val` are the
    ids of the items on which candidates are told apart."""

    objectives: dict[str, list[Json]]
    val: list[str]


@dataclass(frozen=True)
class BenchmarkStated(Event):
    """Follows the start of a job whose scores are measured against something: a benchmark's row, and how the task measures
    its scores, in words."""

    random_score: float | None
    human_score: float | None
    reference: str
    protocol: str
    scale: float
    best_metric: str
    best_metric_mode: str
    task_protocol: str


@dataclass(frozen=True)
class RepeatStated(Event):
    """Follows the start of a job that repeats another with the same seed."""

    repeat: int


@dataclass(frozen=True)
class Measured(Event):
    """Rollouts of one or more (candidate, sample) groups. `items` is a split's name where all of it was asked for, else a
    list of ids. `hard` and `soft` are in item order, with null for a failure; `soft` is absent (null) where it equals
    `hard`. `failed` says why, by item id. `measures`, where the task gives any, has the values of each in item order, null
    where there is none. `usage` is by role and counts each rollout once per job, the first time."""

    stage: str
    purpose: str
    groups: list[dict[str, Json]]
    usage: dict[str, UsageRow]
    reused: int


@dataclass(frozen=True)
class Asked(Event):
    """One question to a model outside of rollouts. `error` is null when the answer was usable."""

    stage: str
    role: str
    scope: list[str | int]
    asked_again: bool
    error: str | None
    usage: UsageRow


@dataclass(frozen=True)
class Decided(Event):
    """A gate's verdict on a candidate against the incumbent."""

    step: int
    gate: str
    new: str
    old: str
    accepted: bool
    reason: str
    effect: float | None
    low: float | None
    high: float | None
    evidence: float | None
    rollouts: int
    """Fresh rollouts this decision took, both arms together; what was known before is not counted."""
    items: int


@dataclass(frozen=True)
class Checkpointed(Event):
    """A candidate was saved under `path`, relative to the job's folder."""

    step: int
    candidate: str
    path: str
    metrics: dict[str, Json]


@dataclass(frozen=True)
class StageDone(Event):
    """One stage of one step: what it used, by role. `clock.seconds` says how long it took."""

    step: int
    stage: str
    usage: dict[str, UsageRow]


@dataclass(frozen=True)
class BestConfirmed(Event):
    """The winner measured again where selection had no hand. `raw` is the score it was chosen by, `value` the honest one."""

    candidate: str
    how: str
    items: int
    raw: float | None
    value: float | None
    low: float | None
    high: float | None
    initial: float | None
    """The initial candidate's score on the same fresh measurements."""


@dataclass(frozen=True)
class Tested(Event):
    """A candidate's score on the test split, whole and by task type: mean, low, high, scored, failed. `groups` has the group
    of each test item where the data declare groups, else it is empty."""

    which: str
    candidate: str
    score: list[Json]
    by_type: dict[str, list[Json]]
    groups: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Gained(Event):
    """The paired difference on the test split between two tested candidates, with its 95 % interval and two-sided p."""

    new: str
    old: str
    mean: float | None
    low: float | None
    high: float | None
    items: int
    method: str
    p: float | None = None


@dataclass(frozen=True)
class Normalised(Event):
    """What was told just before on the benchmark's scale: `what` is confirmed, test/WHICH or gain/WHICH. None where there
    was no score."""

    what: str
    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class BudgetEnded(Event):
    """The next piece of work would have passed a cap; what follows is the closing measurement only."""

    message: str


@dataclass(frozen=True)
class JobEnded(Event):
    """The last event. `status` is done, budget or failed."""

    status: str
    message: str = ""
    usage: dict[str, dict[str, UsageRow]] = field(default_factory=dict)
    """By `stage/purpose`, then by role."""


def line(n: int, event: Event, clock: dict[str, Json]) -> bytes:
    """The line of an event, without its newline."""
    return encode({"n": n, "type": event.type, **event.fields(), "clock": clock})


def encode(record: dict[str, Any]) -> bytes:
    """A record as one line of UTF-8; escaped where it holds half a surrogate pair, which UTF-8 has no form for."""
    try:
        return json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(record, allow_nan=False, separators=(",", ":")).encode()


def without_clock(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key != "clock"}


def comparable(n: int, event: Event) -> dict[str, Any]:
    """What a line of this event would read back as, clock aside."""
    read: dict[str, Any] = json.loads(line(n, event, {}))
    return without_clock(read)


def decode(record: dict[str, Any]) -> Event:
    """The event of a line that was read back."""
    kind = Event.kinds.get(record.get("type", ""))
    if kind is None:
        raise UsageError(f"unknown event type {record.get('type')!r} in line {record.get('n')}")
    return kind(**{key: value for key, value in record.items() if key not in ("n", "type", "clock")})
