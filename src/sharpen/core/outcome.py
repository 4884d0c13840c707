"""The record of one rollout: what was done, how it scored, what it cost, or why it could not be scored.

A failure (a timeout, a rate limit, a broken sandbox) is never a zero: a failed outcome has no score at all, and is left
out of every mean with its count shown beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import isfinite
from numbers import Real

from sharpen.core.chat import Message
from sharpen.core.digest import Json
from sharpen.core.usage import NOTHING, Usage


class FailureKind(StrEnum):
    """Why a rollout has no score. None of these is the agent's doing."""

    TIMEOUT = "timeout"
    RATE_LIMITED = "rate_limited"
    UNAVAILABLE = "unavailable"
    REFUSED = "refused"
    BAD_REPLY = "bad_reply"
    SANDBOX = "sandbox"
    CRASHED = "crashed"
    """The task's own code, or its metric, raised an exception."""
    NOT_A_NUMBER = "not_a_number"
    """It was carried out to no score: the rest of the evaluation goes on, and the candidate can't be the best by it."""


@dataclass(frozen=True, slots=True)
class Failure:
    """`trace` is the way to the place in the task's code that raised, where there is one."""

    kind: FailureKind
    message: str
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """`hard` and `soft` are scores in 0..1; both are None exactly when `failure` is set. `measures` are what was measured
    besides, by name and in units of their own: a sum of radii, an answer's length. Every one is a finite number."""

    item_id: str
    hard: float | None
    soft: float | None
    answer: str = ""
    feedback: str = ""
    trajectory: tuple[Message, ...] = ()
    usage: Mapping[str, Usage] = field(default_factory=dict)
    failure: Failure | None = None
    measures: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.measures:
            object.__setattr__(self, "measures", {name: self._finite(name) for name in self.measures})

    def _finite(self, name: str) -> float:
        value = self.measures[name]
        if not isinstance(value, Real) or not isfinite(value):
            raise ValueError(f"measure {name!r} of item {self.item_id!r} must be a finite number, got {value!r}")
        return float(value)

    @property
    def scored(self) -> bool:
        return self.failure is None

    @property
    def total(self) -> Usage:
        """Usage of all roles together."""
        return sum(self.usage.values(), NOTHING)

    def charged(self, item_id: str, usage: Mapping[str, Usage]) -> Outcome:
        """The same outcome, told whose it is and what it used. Said field by field: every rollout comes through here."""
        return Outcome(
            item_id,
            self.hard,
            self.soft,
            self.answer,
            self.feedback,
            self.trajectory,
            usage,
            self.failure,
            self.measures,
        )

    def body(self) -> Json:
        """The part that is kept for reading, next to the scores and the usage."""
        return [self.answer, self.feedback, [[m.role, m.content] for m in self.trajectory]]


def scored(
    item_id: str,
    hard: float | bool,
    *,
    soft: float | None = None,
    answer: str = "",
    feedback: str = "",
    trajectory: tuple[Message, ...] = (),
    measures: Mapping[str, float] | None = None,
) -> Outcome:
    """An outcome with a score. `soft` is `hard` where a scorer has no finer scale. `measures` are raw values beside it."""
    hard = float(hard)
    soft = hard if soft is None else float(soft)
    if not (0.0 <= hard <= 1.0 and 0.0 <= soft <= 1.0):
        raise ValueError(f"scores must lie in 0..1, got hard={hard}, soft={soft} for item {item_id!r}")
    return Outcome(item_id, hard, soft, answer, feedback, trajectory, measures=measures or {})
