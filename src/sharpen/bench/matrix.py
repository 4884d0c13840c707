"""From a study to its jobs: every cell built and checked, every problem found at once, before anything is paid for.

Tasks, models and trainers are looked at one by one first, so that what is wrong with one does not hide what is wrong with
another; then every cell whose parts are fine is built, which gives the job its id. Tasks are built once per configuration
here, to be looked at; each job builds its own when it runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from sharpen.bench.config import TaskConfig, faults
from sharpen.bench.runner import Parts, build, choose_start, make_task
from sharpen.bench.study import Cell, StudyConfig, arms, cells, task_key, task_labels, task_settings
from sharpen.core.digest import Json, digest
from sharpen.core.errors import MissingRequirement, SharpenError, UsageError, nearest
from sharpen.core.task import Task
from sharpen.models.registry import open_model
from sharpen.tasks import python_path
from sharpen.tasks import registry as tasks
from sharpen.tasks.datatask import DataTask
from sharpen.trainers import registry as trainers


@dataclass(frozen=True)
class Planned:
    """A cell that can be carried out."""

    cell: Cell
    parts: Parts

    @property
    def job_id(self) -> str:
        return self.parts.setup.spec.job_id

    def record(self) -> dict[str, Json]:
        """What the manifest says of it."""
        spec, config = self.parts.setup.spec, self.cell.config
        return {
            "task": self.cell.task,
            "suite": suite(config.task.name, self.parts.setup.task),
            "settings": task_settings(config.task),
            "trainer": spec.trainer,
            "arm": self.cell.arm,
            "seed": spec.seed,
            **({"repeat": spec.repeat} if spec.repeat else {}),
            "params": self.parts.trainer.params.model_dump(mode="json", exclude_unset=True),
            "models": {role: name for role, name in config.models.model_dump(mode="json").items() if name is not None},
        }


@dataclass(frozen=True)
class Skipped:
    """A cell that can't be carried out here, for want of a package or a program."""

    cell: Cell
    reason: str

    @property
    def row_id(self) -> str:
        """A name for its row: the id of the job can't be known without what is missing."""
        return f"skipped-{digest(_what(self.cell))[:8]}"

    def record(self) -> dict[str, Json]:
        """What the manifest says of it."""
        config = self.cell.config
        return {
            "task": self.cell.task,
            "trainer": config.trainer.name,
            "arm": self.cell.arm,
            "seed": config.seed,
            **({"repeat": config.repeat} if config.repeat else {}),
            "skipped": self.reason,
        }


@dataclass(frozen=True)
class Matrix:
    jobs: tuple[Planned, ...]
    problems: tuple[str, ...]
    skipped: tuple[Skipped, ...] = ()

    def checked(self) -> tuple[Planned, ...]:
        """The jobs, or one error that names every problem."""
        if self.problems:
            raise UsageError("\n".join(self.problems))
        return self.jobs


def suite(name: str, task: Task) -> str:
    """Where a task comes from: the name of a family, `built-in`, `data`, `own` for a class in a file, or `installed`."""
    family = name.partition("/")[0]
    if f"{family}/" in tasks.families():
        return family
    if isinstance(task, DataTask):
        return "data"
    if type(task).__module__.startswith("sharpen."):
        return "built-in"
    return "own" if ":" in name else "installed"


def lay_out(study: StudyConfig) -> Matrix:
    """Every job of a study, and everything that is wrong with it, each problem once."""
    looked = _Looked(study)
    jobs: dict[str, Planned] = {}
    skipped: list[Skipped] = []
    problems: dict[str, None] = dict.fromkeys(looked.problems)
    first: dict[str, Cell] = {}
    for cell in cells(study):
        same = first.setdefault(_what(cell), cell)
        if same is not cell:
            problems.setdefault(_twice(same, cell), None)
        if same is cell and (lacking := looked.lacking(cell)):
            skipped.append(Skipped(cell, lacking))
        if same is not cell or not looked.fine(cell):
            continue
        try:
            with watched(cell.config.trainer.name, f"{cell.arm} on {cell.config.task.name}"):
                planned = Planned(cell, build(cell.config, task=looked.tasks[cell.task_key]))
        except SharpenError as error:
            problems.setdefault(_where(cell, error), None)
            continue
        known = jobs.setdefault(planned.job_id, planned)
        if known is not planned:
            problems.setdefault(_twice(known.cell, cell), None)
    return Matrix(tuple(jobs.values()), tuple(problems), tuple(skipped))


def watched(name: str, what: str) -> AbstractContextManager[None]:
    """Where a trainer or task is somebody's own code: what it raises is a problem of the study, told with the others. What
    one of ours raises is a bug, and keeps its traceback."""
    return python_path.own_code(what, python_path.file_of(name)) if ":" in name else nullcontext()


class _Looked:
    """The tasks, models and trainers of a study, each looked at alone."""

    def __init__(self, study: StudyConfig) -> None:
        self.tasks: dict[str, Task] = {}
        self.problems: list[str] = []
        self._strict = study.strict
        self._missing: dict[str, str] = {}
        """By task and by arm: what can't be had here that it needs."""
        for config in study.tasks:
            self._look_at_task(config)
        self.problems += _wrong_with_benchmark(study)
        self._models_fine = self._look_at_models(study)
        self._good_arms = set()
        for label, trainer in arms(study):
            try:
                wrong = list(_wrong_with_trainer(label, trainer.name, trainer.params))
            except MissingRequirement as error:
                self._lack(label, f"{label}: {error}")
                continue
            self.problems += wrong
            if not wrong:
                self._good_arms.add(label)

    def fine(self, cell: Cell) -> bool:
        return self._models_fine and cell.task_key in self.tasks and cell.arm in self._good_arms

    def lacking(self, cell: Cell) -> str:
        """Why a cell is left out, where it is."""
        return self._missing.get(cell.task_key) or self._missing.get(cell.arm, "")

    def _lack(self, whose: str, what: str) -> None:
        if self._strict:
            self.problems.append(what)
        else:
            self._missing[whose] = what

    def _look_at_task(self, config: TaskConfig) -> None:
        try:
            with watched(config.name, f"task {config.name}"):
                task = make_task(config)
                missing = task.requirements.missing()
                if missing:
                    raise MissingRequirement(f"task {task.name!r} can't run here: it needs {', '.join(missing)}")
                if task.untrainable:
                    raise UsageError(f"task {task.name!r} can't be trained: {task.untrainable}")
                task.splits()
                choose_start(config, task)
        except MissingRequirement as error:
            self._lack(task_key(config), _named(f"task {config.name}", config.name, error))
        except SharpenError as error:
            self.problems.append(_named(f"task {config.name}", config.name, error))
        else:
            self.tasks[task_key(config)] = task

    def _look_at_models(self, study: StudyConfig) -> bool:
        """Whether all models can be had that somebody will ask: a study of tasks that ask none needs no target."""
        before = len(self.problems)
        rolling = not self.tasks or any(task.calls_per_rollout for task in self.tasks.values())
        for role in ("target", "optimizer", "judge") if rolling else ("optimizer",):
            name: str | None = getattr(study.models, role)
            try:
                if name is not None:
                    open_model(name)
            except SharpenError as error:
                self.problems.append(f"models.{role}: {error}")
        return len(self.problems) == before


def _wrong_with_trainer(label: str, name: str, params: dict[str, Json]) -> Iterator[str]:
    try:
        kind = trainers.get(name)
        with watched(name, f"trainer {label}"):
            wrong = faults(kind.Params, params, f"trainer {label}")
    except MissingRequirement:
        raise
    except SharpenError as error:
        yield str(error)
        return
    for fault in wrong:
        yield fault.message


def _wrong_with_benchmark(study: StudyConfig) -> Iterator[str]:
    """What can't be told from one cell: scores for tasks that are not there, and one task's scores for several."""
    block, labels = study.benchmark, task_labels(study)
    known = list(dict.fromkeys([*labels, *(task.name for task in study.tasks)]))
    for name in block.tasks:
        if name not in known:
            yield f"benchmark.tasks: {name!r} is no task of this study{nearest(name, known)}; its tasks: {', '.join(known)}"
    own = [label for label, task in zip(labels, study.tasks, strict=True) if not {label, task.name} & set(block.tasks)]
    if block.random_score is not None and len(own) > 1:
        yield (
            f"benchmark.random_score and human_score are those of one task, and there are {len(own)}: {', '.join(own)}; "
            "name them under benchmark.tasks, or a table with benchmark.reference"
        )
    if block.tasks and block.random_score is None and block.reference is None and own:
        yield f"benchmark.tasks has no scores for {', '.join(own)}; give them, or a table with benchmark.reference"


def _what(cell: Cell) -> str:
    """What a cell comes to, without the name it goes by."""
    return cell.config.model_dump_json(include={"task", "trainer", "seed", "repeat"})


def _twice(one: Cell, other: Cell) -> str:
    if one.arm != other.arm:
        return f"{one.arm} and {other.arm}: the same job twice"
    what = f"seed {other.draw}" if one.task == other.task else f"task {other.task}"
    return f"{what} is named twice: the same job twice"


def _where(cell: Cell, error: SharpenError) -> str:
    """Problems of a task or a model are the same for all seeds and need not name the cell."""
    return _named(f"{cell.arm} on {cell.config.task.name}", cell.config.task.name, error)


def _named(where: str, name: str, error: SharpenError) -> str:
    return str(error) if name in str(error) else f"{where}: {error}"
