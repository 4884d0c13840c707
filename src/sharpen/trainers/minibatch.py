"""Minibatch training: batch after batch of train items, one change after each, taken back where the batch got no better.

There is one current candidate. Every one that is kept is measured on val, so that the best of them is known in the end; what
training ended with may be another one.
"""

from __future__ import annotations

from pydantic import Field

from sharpen.trainers.reflact.rollout import steps_per_epoch
from sharpen.trainers.search.acceptance import ALWAYS, MINIBATCH
from sharpen.trainers.search.loop import Search
from sharpen.trainers.search.params import SearchParams
from sharpen.trainers.search.plan import Plan
from sharpen.trainers.search.retention import BestOnStep
from sharpen.trainers.search.selection import Newest
from sharpen.trainers.search.yardstick import Whole


class MinibatchParams(SearchParams):
    epochs: int = Field(2, ge=1, description="How often the train split is gone through.")
    max_steps: int | None = Field(None, ge=1, description="Stop after this many steps, whatever the epochs say.")
    ensure_improvement: bool = Field(True, description="Take a change back unless the batch gets better.")
    improvement_threshold: float = Field(0.0, ge=0.0, description="By how much it must get better.")


class MinibatchTrainer(Search):
    name = "minibatch"
    description = "one change per batch of train items, taken back unless the batch gets better"
    Params = MinibatchParams
    params: MinibatchParams

    def plan(self, train: int) -> Plan:
        given = self.params
        steps = given.epochs * steps_per_epoch(train, given.batch_size)
        return Plan(
            min(steps, given.max_steps or steps),
            Newest(),
            Whole(),
            BestOnStep(1),
            acceptance=MINIBATCH if given.ensure_improvement else ALWAYS,
            threshold=given.improvement_threshold,
            walk=True,
        )
