"""The gate of the peers: a higher mean on one pass over all items is enough. Offered for parity: it lets a change that does
nothing pass a third to a half of the time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sharpen.gates.base import Evidence, Need, Verdict
from sharpen.gates.fixed import mean, one_look


@dataclass(frozen=True, slots=True)
class Strict:
    """Accepts when the new mean is above the old one, whatever the margin."""

    name = "strict"

    def decide(self, evidence: Evidence) -> Verdict | Need:
        return one_look(evidence, _judge)


def _judge(new: Sequence[float], old: Sequence[float]) -> Verdict:
    effect = mean(new) - mean(old)
    accepted = sum(new) > sum(old)
    return Verdict(accepted, f"mean {mean(new):.4f} against {mean(old):.4f} on {len(new)} items", effect)
