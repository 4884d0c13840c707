"""Jobs for tests and benchmarks: a real job, with its real ledger and story, around a task and models of one's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from sharpen.core.candidate import Candidate
from sharpen.core.digest import Json
from sharpen.core.task import Task
from sharpen.engine.job import Job
from sharpen.engine.opening import How, Setup, open_job
from sharpen.engine.rollouts import Sampling
from sharpen.engine.spec import JobSpec, describe_splits
from sharpen.models.base import Model

NO_SETTINGS = How()


def make_setup(
    task: Task,
    models: Mapping[str, Model],
    *,
    seed: int = 0,
    initial: Candidate | None = None,
    params: dict[str, Json] | None = None,
) -> Setup:
    """What `sharpen train` would set up for this task and these models."""
    splits = task.splits()
    start = task.seed() if initial is None else initial
    target = models.get("target")
    render = "none" if target is None else task.renders.get(target.family, target.render)
    spec = JobSpec(
        task.name, task.version, "test", "1", params or {}, {role: model.identity for role, model in models.items()},
        render, describe_splits(splits), start.digest, seed,
    )  # fmt: skip
    rolling = [model for role, model in models.items() if role != "optimizer"]
    random = task.stochastic or not all(model.deterministic for model in rolling)
    return Setup(spec, task, splits, start, models, Sampling(seed if random else None))


@asynccontextmanager
async def running_job(setup: Setup, folder: Path, how: How = NO_SETTINGS, **changes: object) -> AsyncIterator[Job]:
    """An open job in `folder`, with a ledger of its own beside its events. `changes` are fields of `How`."""
    async with open_job(setup, folder, folder / "ledger.db", replace(how, **changes)) as job:  # type: ignore[arg-type]
        yield job
