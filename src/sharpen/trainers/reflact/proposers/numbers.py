"""Other values for the numbers among a candidate's parts: larger and smaller ones, by steps that differ from time to time.

A number with a range moves by a share of it, one without by a factor. What was turned down before is not proposed again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from sharpen.skill.edits import Edit, Op
from sharpen.skill.kinds import Number, number
from sharpen.trainers.reflact.proposers.base import Proposal, View, offered

_SHARES = (0.5, 0.25, 0.1, 0.05)


@dataclass(frozen=True)
class NumbersProposer:
    """Other values for the numbers among a candidate's parts.

    `alternatives` proposals a step, one number each.
    """

    alternatives: int = 4
    name: str = "numbers"

    def propose(self, view: View) -> list[Proposal]:
        parts = [part for part in view.candidate.parts if part.endswith(".number")]
        if not parts or not view.failures:
            return []
        ideas = [idea for part in parts for idea in self._ideas(view, part)]
        return offered(view, view.rng.shuffled(ideas), self.alternatives)

    def _ideas(self, view: View, part: str) -> Iterator[Proposal]:
        text = view.candidate[part]
        now = number(text)
        for share in _SHARES:
            for value in _moved(now, share):
                changed = now.with_value(value)
                edit = Edit(Op.REPLACE, changed.text(), text, part, source=self.name)
                yield Proposal((edit,), f"{part}: {changed.value:g} instead of {now.value:g}", 1, self.name)


def _moved(now: Number, share: float) -> tuple[float, float]:
    if math.isfinite(now.low) and math.isfinite(now.high):
        step = share * (now.high - now.low)
        return now.value - step, now.value + step
    return now.value * (1.0 - share), now.value * (1.0 + share) if now.value else share
