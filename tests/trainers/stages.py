"""What tests of single ReflACT stages and of whole trainings both start from."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from sharpen.core.chat import Request
from sharpen.core.task import Task
from sharpen.engine.job import Job
from sharpen.models.scripted import ScriptedModel
from sharpen.skill.edits import Edit, Limits, Op
from sharpen.skill.leaks import LeakIndex
from sharpen.tasks.codebook import Codebook, code_words
from sharpen.testing.jobs import make_setup, running_job
from sharpen.trainers.reflact.patches import Patch
from sharpen.trainers.reflact.update import Update, update

T = TypeVar("T")
LIMITS = Limits()


def append(content: str, support: int = 1, items: tuple[str, ...] = ()) -> Edit:
    return Edit(Op.APPEND, content, support=support, items=items)


def with_job(
    folder: Path,
    do: Callable[[Job], Awaitable[T]],
    optimizer: Callable[[Request], str] | None = None,
    task: Task | None = None,
    target: str = "scripted/rules",
) -> T:
    async def main() -> T:
        models = {"target": ScriptedModel(target)}
        if optimizer is not None:
            models["optimizer"] = ScriptedModel("scripted/own", optimizer)
        async with running_job(make_setup(task or Codebook(), models), folder) as job:
            return await do(job)

    return asyncio.run(main())


def rules(count: int) -> str:
    return "\n".join(f"- {kind}: {word}" for kind, word in list(code_words().items())[:count])


def made(job: Job, content: str) -> Update:
    leaks = LeakIndex(job.splits, job.task.answers)
    return update(job.initial, Patch((append(content),), "test"), LIMITS, leaks, frozenset())
