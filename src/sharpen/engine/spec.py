"""What decides a job's result, and the id that follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sharpen.core.digest import Json, digest
from sharpen.core.task import SPLITS, Splits

ID_DIGITS = 12


@dataclass(frozen=True)
class JobSpec:
    """Task, trainer, parameters, models and seed: everything a result depends on, and nothing else."""

    task: str
    task_version: str
    trainer: str
    trainer_version: str
    params: dict[str, Any]
    models: dict[str, Json]
    """The identity of each role's model, and its sampling settings."""
    render: str
    splits: dict[str, list[Json]]
    candidate: str
    seed: int

    @property
    def job_id(self) -> str:
        return digest([getattr(self, name) for name in self.__dataclass_fields__])[:ID_DIGITS]


def describe_splits(splits: Splits) -> dict[str, list[Json]]:
    """Size and content digest of each split."""
    return {name: [len(splits[name]), digest([item.digest for item in splits[name]])[:ID_DIGITS]] for name in SPLITS}
