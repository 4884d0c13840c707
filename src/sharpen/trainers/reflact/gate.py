"""Stage 6, gate: which val items decide. The verdict itself is the gate's (`sharpen.gates`), fetched by `job.compare`.

Where the models are deterministic, drawing again tells nothing new, so a part of val is held back: nothing is decided on
it, and the best is confirmed there in the end.
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
    count = 0 if job.repeatable else held_back(len(val), share)
    if count == 0:
        return ValSplit(val, ())
    kept = {item.id for item in job.rng("held back").sample(val, count)}
    return ValSplit(tuple(item for item in val if item.id not in kept), tuple(item for item in val if item.id in kept))
