"""What a training remembers from step to step: failure patterns of this epoch, edits that were turned down, and edits that
could not be made.

A pattern belongs to the items it names, and only to those of the attempts its reader saw: names a reader made up are
dropped, and a pattern none is left of with them. A rejected edit is kept with what it cost, the measured effect of the
candidate it was part of. Patterns are told until the epoch ends, rejected edits as long as the training lasts, the latest
few of them. There is nothing here to save or load: a resumed training replays its steps and remembers the same.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from sharpen.core.digest import Json
from sharpen.trainers.reflact.answers import Pattern
from sharpen.trainers.reflact.patches import Change

_MOST_REJECTED = 12


@dataclass(frozen=True)
class FailurePattern:
    pattern: str
    items: tuple[str, ...]

    def record(self) -> dict[str, Json]:
        return {"pattern": self.pattern, "count": len(self.items), "items": list(self.items)}


def belonging(patterns: Sequence[Pattern], shown: Collection[str]) -> tuple[FailurePattern, ...]:
    """The patterns with those of their items that were shown to whoever named them; without any, a pattern is dropped."""
    found = []
    for pattern in patterns:
        items = tuple(item for item in dict.fromkeys(pattern.items) if item in shown)
        if items and pattern.pattern.strip():
            found.append(FailurePattern(pattern.pattern.strip(), items))
    return tuple(found)


@dataclass(frozen=True)
class Remembered:
    """One step, as later ones are told of it."""

    step: int
    epoch: int
    action: str
    attempts: int
    failures: int
    patterns: tuple[FailurePattern, ...] = ()
    before: float | None = None
    after: float | None = None
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    rejected: tuple[Change, ...] = ()
    refused: tuple[tuple[Change, str], ...] = ()
    """Edits that could not be made as they stood, and why."""

    def record(self) -> dict[str, Json]:
        return {
            "step": self.step,
            "action": self.action,
            "attempts": self.attempts,
            "failures": self.failures,
            "patterns": [pattern.record() for pattern in self.patterns],
            "score_before": _short(self.before),
            "score_after": _short(self.after),
        }


@dataclass
class Memory:
    steps: list[Remembered] = field(default_factory=list)

    def add(self, step: Remembered) -> None:
        self.steps.append(step)

    def told(self, epoch: int) -> dict[str, Json]:
        """What the optimizer is told in this epoch."""
        rejected: list[Json] = []
        refused: list[Json] = []
        for step in reversed(self.steps):
            for change in step.rejected:
                cost = {"effect": _short(step.effect), "between": [_short(step.low), _short(step.high)]}
                rejected.append({"step": step.step, "change": _told(change), **cost})
            refused += [{"step": step.step, "change": _told(change), "why": why} for change, why in step.refused]
        return {
            "steps": [step.record() for step in self.steps if step.epoch == epoch],
            "rejected": rejected[:_MOST_REJECTED],
            **({"refused": refused[:_MOST_REJECTED]} if refused else {}),
        }


def _told(change: Change) -> dict[str, Json]:
    return {key: value for key, value in change.record().items() if key not in ("source", "items")}


def _short(score: float | None) -> float | None:
    return None if score is None else round(score, 4)
