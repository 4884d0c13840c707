"""One pass over all items, then one exact test (`bounded_mean`): for 0/1 scores McNemar's. It believes the incumbent's
stored outcomes, so its price is fixed at one pass, and its error rate holds as long as they are not out of date."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sharpen.core.errors import UsageError
from sharpen.gates.base import Evidence, Need, Verdict
from sharpen.gates.bounded_mean import interval, p_value
from sharpen.gates.fixed import mean, one_look


@dataclass(frozen=True, slots=True)
class Paired:
    """Accepts when one exact test over all items has a p-value of at most `alpha`."""

    alpha: float = field(default=0.05, metadata={"description": "largest p-value that is accepted"})

    name = "paired"

    def __post_init__(self) -> None:
        if not 0.0 < self.alpha < 1.0:
            raise UsageError(f"gate paired: alpha must lie between 0 and 1, got {self.alpha}")

    def decide(self, evidence: Evidence) -> Verdict | Need:
        return one_look(evidence, self._judge)

    def _judge(self, new: Sequence[float], old: Sequence[float]) -> Verdict:
        differences = [a - b for a, b in zip(new, old, strict=True)]
        p = p_value(differences)
        wins, losses = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
        reason = f"{wins} items better, {losses} worse of {len(new)}: p = {p:.4f}, alpha = {self.alpha:g}"
        effect = mean(new) - mean(old)
        low, high = interval(differences, self.alpha)
        return Verdict(p <= self.alpha, reason, effect, min(low, effect), max(high, effect), p)
