"""Stage 6, gate: which val items decide. The verdict itself is the gate's (`sharpen.gates`), fetched by `job.compare`.

A part of val is held back: nothing is decided on it, and the best is confirmed there in the end. Drawing the deciding items
again would not do: even where answers vary, the best was chosen because it suits those items.
"""

from __future__ import annotations

from dataclasses import dataclass

from sharpen.core.item import Item
from sharpen.engine.job import Job

_LEAST_HELD_BACK = 10


@dataclass(frozen=True)
class ValSplit:
    deciding: tuple[Item, ...]
    held_back: tuple[Item, ...]


def held_back(val: int, share: float) -> int:
    """How many of so many val items are kept for confirming; too few to tell anything are not kept."""
    count = round(val * share)
    return count if count >= _LEAST_HELD_BACK else 0


def split_val(job: Job, share: float) -> ValSplit:
    """The val items decisions rest on, and those kept for confirming."""
    val = job.splits.val
    count = held_back(len(val), share)
    if count == 0:
        return ValSplit(val, ())
    kept = {item.id for item in job.rng("held back").sample(val, count)}
    return ValSplit(tuple(item for item in val if item.id not in kept), tuple(item for item in val if item.id in kept))


def unconfirmed(job: Job, split: ValSplit) -> list[str]:
    """What is to be said where no val items are held back."""
    if split.held_back:
        return []
    if job.repeatable:
        return [
            "val is too small to hold items back: the best is confirmed by fresh samples of the items it was chosen on"
        ]
    return ["val is too small to hold items back: the best score can't be confirmed"]
