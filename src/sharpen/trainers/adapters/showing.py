"""An attempt in words, for optimizers that read texts: what was given, what came of it, and what the scorer says."""

from __future__ import annotations

from sharpen.core.item import Item
from sharpen.core.outcome import Outcome


def remark(item: Item, outcome: Outcome, score: float | None) -> str:
    """The score, the scorer's remark, and what was expected."""
    lines = ["" if score is None else f"Score: {score:g} of 1.", outcome.feedback]
    if item.reference is not None:
        lines.append(f"Expected: {item.reference}")
    return "\n".join(line for line in lines if line)


def course(outcome: Outcome) -> list[str]:
    """What was said on the way, where it was more than a question and an answer."""
    if len(outcome.trajectory) <= 2:
        return []
    return [f"{said.role}: {said.content}" for said in outcome.trajectory]
