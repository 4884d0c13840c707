"""The gate `margin`: one pass over the val items, and a change must be better by more than a margin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sharpen.core.errors import UsageError
from sharpen.gates.base import Evidence, Need, Verdict
from sharpen.gates.fixed import mean, one_look


@dataclass(frozen=True, slots=True)
class Margin:
    """Accepts when the new mean is above the old one by more than the margin."""

    margin: float = field(default=0.05, metadata={"description": "How much better a change must be."})
    name = "margin"

    def __post_init__(self) -> None:
        if not 0 <= self.margin < 1:
            raise UsageError(f"gate 'margin': margin must lie in 0..1, got {self.margin!r}")

    def decide(self, evidence: Evidence) -> Verdict | Need:
        return one_look(evidence, self._judge)

    def _judge(self, new: Sequence[float], old: Sequence[float]) -> Verdict:
        effect = mean(new) - mean(old)
        return Verdict(effect > self.margin, f"{effect:+.3f} on {len(new)} items, {self.margin:g} is needed", effect)
