"""The settings of the pool searches: what all have in common. What one search alone has stands beside it."""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator

from sharpen.trainers.reflact.params import ProposalParams, one_of
from sharpen.trainers.search.acceptance import ALWAYS, MINIBATCH
from sharpen.trainers.search.course import CourseParams

ACCEPTANCE = "Who is measured on val: always, minibatch (better on its train items), or what a gate passes."


class SearchParams(CourseParams, ProposalParams):
    """How a step attempts and changes."""

    batch_size: int = Field(8, ge=1, description="Train items a parent attempts before its children are written.")
    edit_budget: int = Field(4, ge=1, description="The most edits between a parent and its child.")
    failure_only: bool = Field(True, description="Let analysts read failures alone.")


class PoolParams(SearchParams):
    """What every search with a pool can be told."""

    num_proposals: int = Field(1, ge=1, description="Children of each parent in a step.")
    acceptance: str = Field(ALWAYS, description=ACCEPTANCE)
    gate_params: dict[str, Any] = Field(default_factory=dict, description="Settings of that gate, such as alpha.")
    finalists: int = Field(3, ge=1, description="Members measured on all deciding val items in the end.")

    @field_validator("acceptance")
    @classmethod
    def _known_acceptance(cls, name: str) -> str:
        from sharpen.gates import registry

        return one_of(name, "acceptance", (ALWAYS, MINIBATCH, *registry.names()))


class IteratedParams(PoolParams):
    """A search that takes a number of steps."""

    iterations: int = Field(20, ge=1, description="Steps: each explores, proposes, measures and sorts out.")
