"""From a study to its jobs: every cell built and checked, every problem found at once, before anything is paid for.

Building a cell finds its task, trainer, parameters and models, and gives the job its id. Tasks are built once per
configuration here, to be looked at; each job builds its own when it runs.
"""

from __future__ import annotations

from dataclasses import dataclass

from sharpen.bench.runner import Parts, build, make_task
from sharpen.bench.study import Cell, StudyConfig, cells
from sharpen.core.digest import Json
from sharpen.core.errors import SharpenError, UsageError
from sharpen.core.task import Task


@dataclass(frozen=True)
class Planned:
    """A cell that can be carried out."""

    cell: Cell
    parts: Parts

    @property
    def job_id(self) -> str:
        return self.parts.setup.spec.job_id

    @property
    def calls(self) -> int | None:
        """The most model calls it may make, where that is capped."""
        return self.cell.config.budget.calls

    def record(self) -> dict[str, Json]:
        """What the manifest says of it."""
        spec = self.parts.setup.spec
        return {
            "task": self.cell.task,
            "trainer": spec.trainer,
            "arm": self.cell.arm,
            "seed": spec.seed,
            "params": self.parts.trainer.params.model_dump(mode="json", exclude_unset=True),
        }


@dataclass(frozen=True)
class Matrix:
    jobs: tuple[Planned, ...]
    problems: tuple[str, ...]

    def checked(self) -> tuple[Planned, ...]:
        """The jobs, or one error that names every problem."""
        if self.problems:
            raise UsageError("\n".join(self.problems))
        return self.jobs


def lay_out(study: StudyConfig) -> Matrix:
    """Every job of a study, and everything that is wrong with it, each problem once."""
    jobs: dict[str, Planned] = {}
    problems: dict[str, None] = {}
    tasks: dict[str, Task] = {}
    for cell in cells(study):
        try:
            planned = Planned(cell, build(cell.config, task=_task(cell, tasks)))
        except SharpenError as error:
            problems.setdefault(_where(cell, error), None)
            continue
        same = jobs.get(planned.job_id)
        if same is None:
            jobs[planned.job_id] = planned
        else:
            arms = same.cell.arm if same.cell.arm == cell.arm else f"{same.cell.arm} and {cell.arm}"
            problems.setdefault(f"{arms} on {cell.config.task.name}, seed {cell.config.seed}: the same job twice", None)
    return Matrix(tuple(jobs.values()), tuple(problems))


def _task(cell: Cell, made: dict[str, Task]) -> Task:
    if cell.task_key not in made:
        made[cell.task_key] = make_task(cell.config.task)
    return made[cell.task_key]


def _where(cell: Cell, error: SharpenError) -> str:
    """Problems of a task or a model are the same for all seeds and need not name the cell."""
    return str(error) if cell.config.task.name in str(error) else f"{cell.arm} on {cell.config.task.name}: {error}"
