"""The record of one rollout: what was done, how it scored, what it cost, or why it could not be scored.

A failure (a timeout, a rate limit, a broken sandbox) is never a zero: a failed outcome has no score at all, and is left
out of every mean with its count shown beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

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


@dataclass(frozen=True, slots=True)
class Failure:
    kind: FailureKind
    message: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """`hard` and `soft` are scores in 0..1; both are None exactly when `failure` is set."""

    item_id: str
    hard: float | None
    soft: float | None
    answer: str = ""
    feedback: str = ""
    trajectory: tuple[Message, ...] = ()
    usage: Mapping[str, Usage] = field(default_factory=dict)
    failure: Failure | None = None

    @property
    def scored(self) -> bool:
        return self.failure is None

    @property
    def total(self) -> Usage:
        """Usage of all roles together."""
        return sum(self.usage.values(), NOTHING)

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
) -> Outcome:
    """An outcome with a score. `soft` is `hard` where a scorer has no finer scale."""
    hard = float(hard)
    soft = hard if soft is None else float(soft)
    if not (0.0 <= hard <= 1.0 and 0.0 <= soft <= 1.0):
        raise ValueError(f"scores must lie in 0..1, got hard={hard}, soft={soft} for item {item_id!r}")
    return Outcome(item_id, hard, soft, answer, feedback, trajectory)
