"""The settings of ReflACT. Unknown names are errors; every one is shown by `sharpen list trainers`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from sharpen.core.errors import nearest

FORMER_NAMES = {
    "num_epochs": "epochs",
    "learning_rate": "edit_budget",
    "min_learning_rate": "min_edit_budget",
    "lr_scheduler": "schedule",
    "lr_control_mode": "budget_control",
    "skill_update_mode": "update_mode",
    "use_gate": "gate (gate: force accepts everything)",
    "use_slow_update": "slow_update",
    "slow_update_gate_with_selection": "slow_update_gate",
    "use_meta_skill": "meta_skill",
    "use_skill_aware_reflection": "skill_aware",
    "skill_aware_appendix_source": "appendix_source",
    "skill_aware_consolidate_threshold": "consolidate_threshold",
    "analyst_workers": "workers, at the top of the configuration,",
}
"""What the same settings are called elsewhere."""


class ProposalParams(BaseModel):
    """How changes are proposed: what every trainer that reflects on attempts has in common."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    minibatch_size: int = Field(8, ge=1, description="Attempts one analyst reads at once.")
    merge_batch_size: int = Field(8, ge=2, description="Patches merged by one call of the optimizer.")
    failure_only: bool = Field(False, description="Let analysts read failures alone.")
    update_mode: Literal["patch", "rewrite_from_suggestions", "full_rewrite_minibatch"] = Field(
        "patch", description="What analysts propose: exact edits, suggestions for one rewriting, or whole rewritings."
    )
    proposers: tuple[str, ...] = Field(
        ("examples", "instructions", "prune", "numbers", "syntax"),
        description="Proposers that need no optimizer model; may be empty.",
    )
    analysts: bool = Field(True, description="Let the optimizer model reflect, where there is one.")
    context_tokens: int = Field(32_000, ge=512, description="The optimizer's context, where its model does not tell.")
    answer_tokens: int = Field(8_192, ge=64, description="The longest answer of the optimizer.")
    prompts: dict[str, str] = Field(
        default_factory=dict, description="Texts, or Markdown files, in place of prompts by name."
    )
    max_length: int = Field(20_000, ge=1, description="The most characters the candidate may have.")
    max_change: int = Field(8_000, ge=1, description="The most characters a step may insert and delete.")

    @field_validator("prompts")
    @classmethod
    def _texts_of_prompts(cls, given: dict[str, str]) -> dict[str, str]:
        from sharpen.trainers.reflact.prompts import names

        return {one_of(name, "prompt", names()): _text_of(name, text) for name, text in given.items()}

    @field_validator("proposers")
    @classmethod
    def _known_proposers(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        from sharpen.trainers.reflact import proposers

        for name in names:
            proposers.get(one_of(name, "proposer", proposers.names()))  # a broken package is met now, not after a step
        return names


class ReflACTParams(ProposalParams):
    """Names follow the paper where it has one for the thing."""

    epochs: int = Field(4, ge=1, description="How often the train split is gone through.")
    batch_size: int = Field(40, ge=1, description="Train items attempted per batch.")
    accumulation: int = Field(1, ge=1, description="Batches per step, reflected on before anything is changed.")
    max_steps: int | None = Field(None, ge=1, description="Stop after this many steps, whatever the epochs say.")
    train_size: int | None = Field(None, ge=1, description="Train items you count on; another number is an error.")
    edit_budget: int = Field(4, ge=1, description="The most edits a step may make (the paper's learning rate).")
    min_edit_budget: int = Field(2, ge=1, description="What linear and cosine schedules fall to.")
    schedule: Literal["constant", "linear", "cosine"] = Field("cosine", description="How the edit budget falls.")
    budget_control: Literal["fixed", "autonomous", "none"] = Field(
        "fixed", description="Who sets the edit budget: the schedule, the optimizer, or nobody (no limit)."
    )
    alternatives: int = Field(
        6, ge=1, description="Proposals tried against each other on train items per step; twice as many at the first."
    )
    screen_items: int = Field(40, ge=0, description="Train items the last alternatives standing are tried on; 0: none.")
    drafts: bool = Field(True, description="Build on what did better on train items, though the gate wants more proof.")
    gate: str = Field("sequential", description="Who decides: sequential, paired, strict or force.")
    gate_params: dict[str, Any] = Field(default_factory=dict, description="Settings of the gate, such as alpha.")
    gate_metric: Literal["hard", "soft", "mixed"] = Field("hard", description="The score gate and screening go by.")
    gate_mixed_weight: float = Field(0.5, ge=0.0, le=1.0, description="Weight of soft in the mixed score.")
    slow_update: bool = Field(True, description="At an epoch's end, let the optimizer take the long view.")
    slow_update_samples: int = Field(20, ge=1, description="Train items attempted with both epochs' candidates.")
    slow_update_gate: bool = Field(True, description="The slow update must pass the gate; else it is forced in.")
    longitudinal_pair_policy: Literal["mixed", "changed", "unchanged"] = Field(
        "mixed", description="Which of these items the slow update is shown."
    )
    meta_skill: bool = Field(True, description="Let the optimizer keep a notebook on what kind of change works.")
    skill_aware: bool = Field(False, description="Tell lapses from defects of the skill; lapses become notes.")
    appendix_source: Literal["both", "failure_only"] = Field("both", description="Whose readers may write notes.")
    consolidate_threshold: int = Field(20, ge=0, description="More notes than this are made fewer; 0: never.")
    confirm_share: float = Field(0.34, ge=0.0, le=0.8, description="Share of val held back to confirm the best.")

    @model_validator(mode="before")
    @classmethod
    def _known_by_another_name(cls, values: Any) -> Any:
        for name in values if isinstance(values, dict) else ():
            if name in FORMER_NAMES:
                raise ValueError(f"{name} is called {FORMER_NAMES[name]} here")
        return values

    @field_validator("gate")
    @classmethod
    def _known_gate(cls, name: str) -> str:
        from sharpen.gates import registry

        return one_of(name, "gate", registry.names())

    @model_validator(mode="after")
    def _budget_in_order(self) -> ReflACTParams:
        if self.schedule != "constant" and self.min_edit_budget > self.edit_budget:
            raise ValueError(f"min_edit_budget {self.min_edit_budget} is above edit_budget {self.edit_budget}")
        return self


def one_of(name: str, what: str, known: Sequence[str]) -> str:
    if name not in known:
        raise ValueError(f"unknown {what} {name!r}{nearest(name, list(known))}; there are {', '.join(known)}")
    return name


def _text_of(name: str, given: str) -> str:
    """The text itself, or that of the Markdown file it names."""
    if "\n" in given or not given.endswith(".md"):
        return given
    path = Path(given)
    if not path.is_file():
        raise ValueError(f"no file {given} for the prompt {name}")
    return path.read_text(encoding="utf-8")
