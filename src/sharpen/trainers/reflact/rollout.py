"""Stage 1, rollout: which train items a step attempts, and how they went."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sharpen.core.candidate import Candidate
from sharpen.core.item import Item
from sharpen.core.outcome import Outcome
from sharpen.engine.evaluation import Evaluation
from sharpen.engine.job import Job

FULL_MARKS = 1.0 - 1e-9


@dataclass(frozen=True)
class Attempted:
    """A train item with what became of it."""

    item: Item
    outcome: Outcome


@dataclass(frozen=True)
class Batch:
    """The attempts of one step, told apart by whether full marks were reached. Failed rollouts are in neither."""

    evaluation: Evaluation
    failures: tuple[Attempted, ...]
    successes: tuple[Attempted, ...]


def steps_per_epoch(train_size: int, batch_size: int) -> int:
    return max(1, math.ceil(train_size / batch_size))


def batch_items(job: Job, step: int, batch_size: int) -> Sequence[Item]:
    """The items of `step` (from 1): every item once per epoch, in an order of the epoch's own."""
    per_epoch = steps_per_epoch(len(job.splits.train), batch_size)
    epoch, position = divmod(step - 1, per_epoch)
    order = job.rng("epoch", epoch).shuffled(job.splits.train)
    return order[position * batch_size : (position + 1) * batch_size]


async def roll_out(job: Job, candidate: Candidate, items: Sequence[Item]) -> Batch:
    """Attempt the items with the current candidate."""
    evaluation = await job.evaluate(candidate, items, purpose="train")
    failures: list[Attempted] = []
    successes: list[Attempted] = []
    for index, score in enumerate(evaluation.hard):
        if score is not None:
            kept = failures if score < FULL_MARKS else successes
            kept.append(Attempted(items[index], evaluation.outcome(index)))
    return Batch(evaluation, tuple(failures), tuple(successes))
