"""The contract of a gate: from paired outcomes so far to accept, reject, or the draws it still needs.

A gate is pure. It never sees a model, a clock or a random generator; the job fetches what it asks for and calls it
again with everything known so far, until it gives a `Verdict`. `Evidence.pairs` has one entry per validation item, in item
order, whether or not anything is known of it yet; draws of one arm are in the order of their sample numbers. Sample 0 of
the old arm may be there from the start: the incumbent's stored outcomes, which helped to choose it and are therefore
likely to flatter it. A draw that failed for a reason that is not the agent's is `None`, and asking for it again is
pointless.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Pair:
    """The scores (0..1) drawn so far on one item, by sample number, for both arms."""

    new: tuple[float | None, ...] = ()
    old: tuple[float | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """All a gate may look at. `repeatable` is False where a model gives the same answer every time, so that a second draw
    on an item tells nothing; `decision` counts the verdicts given before in this run, `planned` how many are expected."""

    pairs: tuple[Pair, ...]
    repeatable: bool
    decision: int = 0
    planned: int = 1


@dataclass(frozen=True, slots=True)
class Draw:
    """A wish: sample number `sample` of one arm (`"new"` or `"old"`) on item number `item`."""

    item: int
    arm: str
    sample: int


@dataclass(frozen=True, slots=True)
class Need:
    """More evidence, please."""

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
    """The gate's own measure of evidence: an e-value for the sequential gate, a p-value for the fixed ones."""


class Gate(Protocol):
    @property
    def name(self) -> str: ...
    def decide(self, evidence: Evidence) -> Verdict | Need: ...
