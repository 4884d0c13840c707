"""The plain searches: one current candidate and its children, a beam of several, and a buffer with confidence bounds."""

from __future__ import annotations

from pydantic import Field

from sharpen.trainers.search.loop import PoolSearch
from sharpen.trainers.search.params import IteratedParams, PoolParams
from sharpen.trainers.search.plan import Plan
from sharpen.trainers.search.priority import ByPriority, Memory, Priority
from sharpen.trainers.search.retention import BestOnStep, Remember
from sharpen.trainers.search.selection import Everyone
from sharpen.trainers.search.yardstick import Drawn, Whole


class BasicParams(IteratedParams):
    num_proposals: int = Field(4, ge=1, description="Children of the current candidate in a step.")


class BeamParams(PoolParams):
    beam_width: int = Field(3, ge=1, description="Candidates that go on from step to step.")
    num_proposals: int = Field(4, ge=1, description="Children of each of them.")
    max_depth: int = Field(4, ge=1, description="Steps.")
    validation_dataset_size: int = Field(20, ge=1, description="Val items drawn for a step.")


class UCBParams(IteratedParams):
    max_buffer_size: int = Field(10, ge=2, description="The most members; who has the lowest bound leaves.")
    ucb_exploration_factor: float = Field(1.0, ge=0.0, description="Weight of having been tried little.")
    evaluation_batch_size: int = Field(20, ge=1, description="Val items drawn for a step.")


class BasicSearch(PoolSearch):
    name = "basic-search"
    description = "several children of the current candidate, all measured on val; the best of them goes on"
    Params = BasicParams
    params: BasicParams

    def policies(self) -> Plan:
        return Plan(self.params.iterations, Everyone(), Whole(), BestOnStep(1))


class BeamSearch(PoolSearch):
    name = "beam-search"
    description = "several candidates side by side; the best of them and of their children go on"
    Params = BeamParams
    params: BeamParams

    def policies(self) -> Plan:
        given = self.params
        return Plan(
            given.max_depth,
            Everyone(),
            Drawn(given.validation_dataset_size, parents=True),
            BestOnStep(given.beam_width),
        )


class UCBSearch(PoolSearch):
    name = "ucb-search"
    description = "a buffer of candidates; the one with the highest upper confidence bound is built on"
    Params = UCBParams
    params: UCBParams

    def policies(self) -> Plan:
        given = self.params
        memory = Memory(Priority("ucb", given.ucb_exploration_factor), given.max_buffer_size)
        return Plan(
            given.iterations,
            ByPriority(1, memory, use_best_candidate_to_explore=False),
            Drawn(given.evaluation_batch_size, parents=False),
            Remember(memory),
        )
