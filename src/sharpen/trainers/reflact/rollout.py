"""Stage 1, rollout: which train items a step attempts, and how they went.

A step takes `accumulation` batches, all with the same candidate; each is reflected on by itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sharpen.core.candidate import Candidate
from sharpen.core.digest import Json
from sharpen.core.item import Item
from sharpen.core.outcome import Outcome
from sharpen.engine.evaluation import Evaluation
from sharpen.engine.job import Job
from sharpen.engine.metric import mean_of

FULL_MARKS = 1.0 - 1e-9


@dataclass(frozen=True)
class Attempted:
    """A train item with what became of it."""

    item: Item
    outcome: Outcome


@dataclass(frozen=True)
class Batch:
    """Attempts, told apart by whether full marks were reached. Failed rollouts are in neither."""

    size: int
    hard: float | None
    soft: float | None
    failures: tuple[Attempted, ...]
    successes: tuple[Attempted, ...]

    def record(self) -> list[Json]:
        return [self.size, self.hard, self.soft, len(self.failures), len(self.successes)]


@dataclass(frozen=True)
class Attempts:
    """All attempts of one step, and the batches they were made in."""

    evaluation: Evaluation
    batches: tuple[Batch, ...]

    @property
    def failures(self) -> tuple[Attempted, ...]:
        return tuple(attempt for batch in self.batches for attempt in batch.failures)

    @property
    def successes(self) -> tuple[Attempted, ...]:
        return tuple(attempt for batch in self.batches for attempt in batch.successes)


def steps_per_epoch(train_size: int, items_per_step: int) -> int:
    return max(1, math.ceil(train_size / items_per_step))


def items_of_step(job: Job, step: int, items_per_step: int) -> Sequence[Item]:
    """The items of `step` (from 1): every item once per epoch, in an order of the epoch's own."""
    per_epoch = steps_per_epoch(len(job.splits.train), items_per_step)
    epoch, position = divmod(step - 1, per_epoch)
    order = job.rng("epoch", epoch).shuffled(job.splits.train)
    return order[position * items_per_step : (position + 1) * items_per_step]


async def roll_out(job: Job, candidate: Candidate, items: Sequence[Item], batch_size: int) -> Attempts:
    """Attempt the items with the candidate."""
    return attempts_of(await job.evaluate(candidate, items, purpose="train"), batch_size)


def attempts_of(evaluation: Evaluation, batch_size: int) -> Attempts:
    """An evaluation on train items as batches to reflect on."""
    starts = range(0, len(evaluation.items), batch_size)
    return Attempts(evaluation, tuple(_batch(evaluation, start, start + batch_size) for start in starts))


def _batch(evaluation: Evaluation, start: int, end: int) -> Batch:
    failures: list[Attempted] = []
    successes: list[Attempted] = []
    for index in range(start, min(end, len(evaluation.items))):
        score = evaluation.hard[index]
        if score is not None:
            kept = failures if score < FULL_MARKS else successes
            kept.append(Attempted(evaluation.items[index], evaluation.outcome(index)))
    hard, soft = evaluation.hard[start:end], evaluation.soft[start:end]
    return Batch(len(hard), mean_of(hard), mean_of(soft), tuple(failures), tuple(successes))
