"""The contract of a gate: from paired outcomes so far to accept, reject, or the draws it still needs.

A gate is pure. It never sees a model, a clock or a random generator; the job fetches what it asks for and calls it
again with everything known so far, until it gives a `Verdict`. `Evidence.pairs` has one entry per validation item, in item
order, whether or not anything is known of it yet; draws of one arm are in the order of their sample numbers.

Draws that were there before the decision are *stored*: the incumbent's outcomes above all. They helped to choose it and
flatter it, or they date from before the endpoint changed. A gate that claims a proof rests it on fresh draws alone. A draw
that failed for a reason that is not the agent's is `None`, and asking for it again is pointless.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Pair:
    """The scores (0..1) drawn so far on one item, by sample number, for both arms; the first `stored_new` and `stored_old`
    of them before the decision began."""

    new: tuple[float | None, ...] = ()
    old: tuple[float | None, ...] = ()
    stored_new: int = 0
    stored_old: int = 1


@dataclass(frozen=True, slots=True)
class Evidence:
    """All a gate may look at. `repeatable` is False where a model gives the same answer every time, so that a second draw
    on an item tells nothing; `decision` counts the verdicts given before in this run, `planned` how many are expected.
    `groups` names for each item the group it belongs to, where items of a group are known to succeed and fail together."""

    pairs: tuple[Pair, ...]
    repeatable: bool
    decision: int = 0
    planned: int = 1
    groups: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Draw:
    """A wish: sample number `sample` of one arm (`"new"` or `"old"`) on item number `item`."""

    item: int
    arm: str
    sample: int


@dataclass(frozen=True, slots=True)
class Need:
    """More evidence, please. Draws are made in this order, as far as they are not made side by side."""

    draws: tuple[Draw, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision, why, and the estimated effect with its interval as far as the gate can tell."""

    accepted: bool
    reason: str
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    evidence: float | None = None
    """The p-value the decision rests on; None where the gate tests nothing."""


class Gate(Protocol):
    @property
    def name(self) -> str: ...
    def decide(self, evidence: Evidence) -> Verdict | Need: ...
