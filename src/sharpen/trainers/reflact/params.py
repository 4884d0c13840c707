"""The settings of ReflACT. Unknown names are errors; every one is shown by `sharpen list trainers`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from sharpen.core.errors import nearest


class ReflACTParams(BaseModel):
    """Names follow the paper where it has one for the thing."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    epochs: int = Field(4, ge=1, description="How often the train split is gone through.")
    batch_size: int = Field(40, ge=1, description="Train items attempted per step.")
    max_steps: int | None = Field(None, ge=1, description="Stop after this many steps, whatever the epochs say.")
    minibatch_size: int = Field(8, ge=1, description="Attempts one analyst reads at once.")
    merge_batch_size: int = Field(8, ge=2, description="Patches merged by one call of the optimizer.")
    edit_budget: int = Field(4, ge=1, description="The most edits a step may make (the paper's learning rate).")
    min_edit_budget: int = Field(2, ge=1, description="What linear and cosine schedules fall to.")
    schedule: Literal["constant", "linear", "cosine"] = Field("cosine", description="How the edit budget falls.")
    proposers: tuple[str, ...] = Field(
        ("examples", "instructions", "prune"), description="Proposers that need no optimizer model; may be empty."
    )
    analysts: bool = Field(True, description="Let the optimizer model reflect, where there is one.")
    alternatives: int = Field(
        6, ge=1, description="Proposals of a step that are tried against each other on train items."
    )
    screen_items: int = Field(40, ge=0, description="Train items the last alternatives standing are tried on; 0: none.")
    drafts: bool = Field(True, description="Build on what did better on train items, though the gate wants more proof.")
    gate: str = Field("sequential", description="Who decides: sequential, paired, strict or force.")
    gate_params: dict[str, Any] = Field(default_factory=dict, description="Settings of the gate, such as alpha.")
    confirm_share: float = Field(
        0.34, ge=0.0, le=0.8, description="Share of val held back to confirm the best, where models are deterministic."
    )
    max_length: int = Field(20_000, ge=1, description="The most characters the candidate may have.")
    max_change: int = Field(8_000, ge=1, description="The most characters a step may insert and delete.")

    @field_validator("gate")
    @classmethod
    def _known_gate(cls, name: str) -> str:
        from sharpen.gates import registry

        return _one_of(name, "gate", registry.names())

    @field_validator("proposers")
    @classmethod
    def _known_proposers(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        from sharpen.trainers.reflact import proposers

        return tuple(_one_of(name, "proposer", proposers.NAMES) for name in names)

    @model_validator(mode="after")
    def _budget_in_order(self) -> ReflACTParams:
        if self.schedule != "constant" and self.min_edit_budget > self.edit_budget:
            raise ValueError(f"min_edit_budget {self.min_edit_budget} is above edit_budget {self.edit_budget}")
        return self


def _one_of(name: str, what: str, known: Sequence[str]) -> str:
    if name not in known:
        raise ValueError(f"unknown {what} {name!r}{nearest(name, list(known))}; there are {', '.join(known)}")
    return name
