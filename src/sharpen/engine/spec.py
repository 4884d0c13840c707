"""What decides a job's result, and the id that follows from it."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
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
    benchmark: dict[str, Json] | None = None
    """`Benchmark.row()`, where scores are measured against something."""
    repeat: int = 0
    """Which repetition of the same seed this is: what differs between repetitions is not the seed's doing."""

    @property
    def job_id(self) -> str:
        """Of everything that is said; what is not said leaves no trace, so that ids outlast new things to say."""
        always = [getattr(self, field.name) for field in fields(self) if field.default is MISSING]
        optional = [(field.name, getattr(self, field.name)) for field in fields(self) if field.default is not MISSING]
        return digest([*always, *([name, value] for name, value in optional if value)])[:ID_DIGITS]


def describe_splits(splits: Splits) -> dict[str, list[Json]]:
    """Size and content digest of each split."""
    return {name: [len(splits[name]), digest([item.digest for item in splits[name]])[:ID_DIGITS]] for name in SPLITS}
