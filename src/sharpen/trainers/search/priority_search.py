"""PrioritySearch, and POLCA, which is PrioritySearch with a filter for novelty.

Every step explores the members of highest priority, and deals its proposals out over them: in the first step all come from
the initial candidate. New and explored members are measured on val items drawn for the step.
"""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field

from sharpen.trainers.search.loop import PoolSearch
from sharpen.trainers.search.params import IteratedParams
from sharpen.trainers.search.plan import Plan
from sharpen.trainers.search.priority import ByPriority, Memory, Priority, ScoreFunction
from sharpen.trainers.search.retention import Remember
from sharpen.trainers.search.yardstick import Drawn


class PriorityParams(IteratedParams):
    num_candidates: int = Field(3, ge=1, description="Members explored in a step.")
    num_proposals: int = Field(1, ge=1, description="Children per member explored; dealt out over those there are.")
    num_batches: int = Field(1, ge=1, description="Batches of train items a parent attempts in a step.")
    evaluation_batch_size: int = Field(20, ge=1, description="Val items drawn for a step.")
    validate_exploration_candidates: bool = Field(True, description="Measure explored members on them too.")
    use_best_candidate_to_explore: bool = Field(True, description="The leader is always among the explored.")
    score_function: ScoreFunction = Field("mean", description="What comes first: mean, ucb, or time (newer first).")
    ucb_exploration_constant: float = Field(1.0, ge=0.0, description="Weight of having been tried little, with ucb.")
    long_term_memory_size: int | None = Field(None, ge=1, description="The most members remembered; none: no limit.")
    short_term_memory_size: int | None = Field(None, ge=1, description="The most members on the short shelf.")
    memory_update_frequency: int | None = Field(
        0, ge=0, description="0: one long memory; none: one short; k: both become one every k steps."
    )


class PolcaParams(PriorityParams):
    epsilon: float = Field(0.05, ge=0.0, le=1.4, description="How far a child must be from every member; 0 to 1.4.")


class PrioritySearch(PoolSearch):
    name = "priority-search"
    description = "explores the members of highest priority: by mean, by upper confidence bound, or newest first"
    Params = PriorityParams
    params: PriorityParams

    def policies(self) -> Plan:
        given = self.params
        memory = Memory(
            Priority(given.score_function, given.ucb_exploration_constant),
            given.long_term_memory_size,
            given.short_term_memory_size,
            given.memory_update_frequency,
        )
        return Plan(
            given.iterations,
            ByPriority(given.num_candidates, memory, given.use_best_candidate_to_explore),
            Drawn(given.evaluation_batch_size, given.validate_exploration_candidates),
            Remember(memory),
            batches=given.num_batches,
            share=given.num_candidates,
        )


class Polca(PrioritySearch):
    name = "polca"
    description = "priority-search that lets in only what differs from all there is"
    Params = PolcaParams
    params: PolcaParams

    def policies(self) -> Plan:
        return replace(super().policies(), epsilon=self.params.epsilon)
