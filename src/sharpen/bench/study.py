"""A study as people write it down: tasks x trainers x parameters x seeds, and the cells that come of it.

A trainer may have `variants` (a list of settings) or a `grid` (every combination of listed values) on top of its `params`.
Each combination is an *arm*, known by its label; an arm on a task with a seed is a cell, and a cell is exactly the
configuration that `sharpen train` would carry out. Pure: nothing is built or looked for here.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError, field_validator, model_validator

from sharpen.bench.config import (
    BenchmarkConfig,
    BudgetConfig,
    CheckpointsConfig,
    ModelsConfig,
    RunConfig,
    Strict,
    TaskConfig,
    TrainerConfig,
    faults,
    read,
    validated,
)
from sharpen.core.digest import Json, digest
from sharpen.core.redact import redact, redact_json
from sharpen.tasks import registry as tasks


class TrainerEntry(Strict):
    """A trainer of a study, in one or several variants."""

    name: str = Field(description="See `sharpen list trainers`.")
    label: str | None = Field(None, description="What its arms are called; its name where none is given.")
    params: dict[str, Any] = Field({}, description="Settings of every variant.")
    variants: list[dict[str, Any]] = Field([], description="Further settings, one arm for each.")
    grid: dict[str, list[Any]] = Field({}, description="Values of settings, one arm for each combination.")

    @model_validator(mode="after")
    def _one_of_them(self) -> TrainerEntry:
        if self.variants and self.grid:
            raise ValueError("give variants or a grid, not both")
        return self

    @field_validator("grid")
    @classmethod
    def _values(cls, grid: dict[str, list[Any]]) -> dict[str, list[Any]]:
        for name, values in grid.items():
            if not values:
                raise ValueError(f"the grid has no value for {name}")
        return grid

    def settings(self) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """(what tells this arm from the entry's others, all its settings) for each arm."""
        if self.variants:
            own: Iterator[dict[str, Any]] = iter(self.variants)
        else:
            own = (dict(zip(self.grid, values, strict=True)) for values in itertools.product(*self.grid.values()))
        for settings in own:
            yield settings, {**self.params, **settings}


class TaskScores(Strict):
    """What scores on one task are measured against."""

    random_score: float = Field(allow_inf_nan=False)
    human_score: float = Field(allow_inf_nan=False)

    @model_validator(mode="after")
    def _apart(self) -> TaskScores:
        if self.random_score == self.human_score:
            raise ValueError(
                f"random_score and human_score are both {self.random_score:g}: a score can't be placed between them"
            )
        return self


class StudyBenchmark(BenchmarkConfig):
    """As in a training; and scores of single tasks, which come before a table's."""

    tasks: dict[str, TaskScores] = Field({}, description="random_score and human_score by the task's name.")

    def of(self, label: str, name: str) -> BenchmarkConfig:
        """The block of one task, which has a label in the study and a name of its own."""
        own = self.tasks.get(label) or self.tasks.get(name)
        block = self.model_dump(exclude={"tasks"})
        return BenchmarkConfig(**(block if own is None else {**block, "reference": None, **own.model_dump()}))


class Repeats(Strict):
    """One seed, several times over: what differs then is not the seed's doing."""

    repeat: int = Field(ge=1, description="How many times.")
    seed: int = Field(0, description="Which seed.")


class StudyConfig(Strict):
    """A whole study. What decides results is in tasks, trainers, seeds and models; the rest is how it is carried out."""

    tasks: list[TaskConfig] = Field(min_length=1, description="Names, or mappings as under `task` of a training.")
    trainers: list[TrainerEntry] = Field(
        min_length=1, description="Names, or mappings with name, params, variants, grid."
    )
    seeds: int | list[int] | Repeats = Field(
        1, description="How many (0, 1, ...), or which; or `{repeat: N, seed: S}`, the same seed N times."
    )
    models: ModelsConfig = ModelsConfig()
    benchmark: StudyBenchmark = StudyBenchmark()
    checkpoints: CheckpointsConfig = CheckpointsConfig()
    budget: BudgetConfig = BudgetConfig()
    total: BudgetConfig = Field(
        BudgetConfig(), description="Caps on all jobs together; each needs its cap per job too."
    )
    parallel: int = Field(
        1, ge=1, le=256, description="Jobs at once; they share the machine and the endpoints' limits."
    )
    timeout: float | None = Field(None, gt=0, description="Seconds a job may take before it is killed.")
    memory: int | None = Field(None, ge=64, description="Megabytes of address space a process of a job may have.")
    fail_fast: bool = Field(False, description="Start no more jobs once one has failed.")
    strict: bool = Field(False, description="A package or program that is missing is a problem of the whole study.")
    reuse: list[str] = Field([], description="Runs whose finished jobs are taken over where they are the same.")
    tags: list[str] = Field([], description="Words of yours, kept with the run.")
    workers: int = Field(64, ge=1, le=10_000, description="Rollouts under way at once, all jobs together.")
    max_failures: float = Field(0.1, ge=0, le=1, description="Share of a measurement that may fail.")
    rollout_timeout: float = Field(600.0, gt=0, description="Seconds one rollout may take.")
    sync_seconds: float = Field(
        1.0, ge=0, allow_inf_nan=False, description="Seconds of work that a power failure may take, at most."
    )

    @field_validator("seeds", mode="before")
    @classmethod
    def _one_of_three(cls, seeds: Any) -> Any:
        """One message for what is neither, instead of one for each thing it might have been meant to be."""
        if isinstance(seeds, Repeats) or all(
            type(seed) is int for seed in (seeds if isinstance(seeds, list) else [seeds])
        ):
            return seeds
        try:
            return Repeats.model_validate(seeds)
        except ValidationError as error:
            wrong = error.errors()[0]
            why = f" ({'.'.join(map(str, wrong['loc']))}: {wrong['msg']})" if wrong["loc"] else ""
            raise ValueError(
                f"write how many (5), which ([0, 3]), or one seed several times ({{repeat: 5, seed: 0}}){why}"
            ) from None

    @field_validator("seeds")
    @classmethod
    def _some(cls, seeds: int | list[int] | Repeats) -> int | list[int] | Repeats:
        if not isinstance(seeds, Repeats) and (seeds if isinstance(seeds, int) else len(seeds)) < 1:
            raise ValueError("a study needs at least one seed")
        return seeds

    @model_validator(mode="after")
    def _caps(self) -> StudyConfig:
        for name, cap in self.total.model_dump().items():
            if cap is not None and getattr(self.budget, name) is None:
                raise ValueError(f"total.{name} can only be kept where budget.{name} caps each job")
        return self

    @property
    def draws(self) -> list[tuple[int, int]]:
        """(seed, repeat) of each job of an arm on a task."""
        if isinstance(self.seeds, Repeats):
            return [(self.seeds.seed, repeat) for repeat in range(self.seeds.repeat)]
        return [(seed, 0) for seed in (range(self.seeds) if isinstance(self.seeds, int) else self.seeds)]


@dataclass(frozen=True)
class Cell:
    """One job to be: an arm on a task with a seed."""

    arm: str
    task: str
    """The task's name, with what tells it from others of that name in the study."""
    task_key: str
    """Names the run's own copy of the task's data."""
    config: RunConfig

    @property
    def draw(self) -> str:
        """Which seed, and which repetition of it, for people."""
        return f"{self.config.seed}, repeat {self.config.repeat}" if self.config.repeat else str(self.config.seed)


def load(path: Path, overrides: Sequence[str] = ()) -> StudyConfig:
    """A study from a file; a configuration of a single training is a study of one cell."""
    study = validated(StudyConfig, _read(path, overrides), str(path))
    assert isinstance(study, StudyConfig)
    return study


def look_at(path: Path, overrides: Sequence[str] = ()) -> tuple[StudyConfig | None, list[str]]:
    """A study from a file as far as it can be understood, and everything in it that can't. What does not fit is left out, so
    that the rest can be looked at too; None where too little is left."""
    found = _read(path, overrides)
    said: list[str] = []
    while wrong := faults(StudyConfig, found, str(path)):
        # A value that fits none of several types has a fault for each of them; one is enough to say.
        places = {_reached(found, fault.place): fault.message for fault in reversed(wrong)}
        said += reversed(places.values())
        if () in places and "total" not in found:
            return None, said
        for place in places:
            _mark(found, place)
        found = _without_marked(found)
        if not (found.get("tasks") and found.get("trainers")):
            return None, said
    return StudyConfig.model_validate(found), said


def _read(path: Path, overrides: Sequence[str]) -> dict[str, Any]:
    found = read(path, None, overrides)
    for one, several in (("task", "tasks"), ("trainer", "trainers"), ("seed", "seeds")):
        if one in found and several not in found:
            found[several] = [found.pop(one)]
    found.setdefault("trainers", [{"name": "reflact"}])
    return found


_MARK = object()


def _reached(found: Any, place: Sequence[str | int]) -> tuple[str | int, ...]:
    """As far as a place leads into nested mappings and lists."""
    for depth, key in enumerate(place):
        there = key in found if isinstance(found, dict) else isinstance(found, list) and isinstance(key, int)
        if not there:
            return tuple(place[:depth])
        found = found[key]
    return tuple(place)


def _mark(found: Any, place: Sequence[str | int]) -> None:
    """Mark what stands at a place. What is wrong with a study as a whole are its totals."""
    *way, last = place or ("total",)
    for key in way:
        if found[key] is _MARK:
            return
        found = found[key]
    found[last] = _MARK


def _without_marked(found: Any) -> Any:
    if isinstance(found, dict):
        return {key: _without_marked(value) for key, value in found.items() if value is not _MARK}
    return [_without_marked(value) for value in found if value is not _MARK] if isinstance(found, list) else found


def is_study(snapshot: Path) -> bool:
    """Whether a run's configuration is that of a study, rather than of one training."""
    return "tasks" in read(snapshot)


def dump(study: StudyConfig) -> str:
    return yaml.safe_dump(study.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def cells(study: StudyConfig) -> list[Cell]:
    """Every cell, task by task, arm by arm, seed by seed."""
    return [
        Cell(arm, label, task_key(task), _config(study, label, task, trainer, draw))
        for label, task in zip(task_labels(study), study.tasks, strict=True)
        for arm, trainer in arms(study)
        for draw in study.draws
    ]


def task_labels(study: StudyConfig) -> list[str]:
    """A label for each task: its name, and the settings it has where another has the same name. All are different."""
    names = [_plain_name(task.name) for task in study.tasks]
    made = []
    for name, task in zip(names, study.tasks, strict=True):
        own = task_settings(task)
        params = own.pop("params", {})
        own = redact_json({**own, **params})
        words = ", ".join(f"{key}={_short(value)}" for key, value in own.items())
        made.append(f"{name}[{words}]" if words and names.count(name) > 1 else name)
    return list(_all_different(made))


def task_settings(task: TaskConfig) -> dict[str, Json]:
    """What a task's entry says besides its name. A snapshot writes every setting down, so what is as if it had not been said
    does not count: a study that is carried on from its snapshot must call its tasks what it called them before."""
    return task.model_dump(mode="json", exclude_defaults=True, exclude={"name"})


def arms(study: StudyConfig) -> list[tuple[str, TrainerConfig]]:
    """The arms by their labels, which are all different: what tells them apart stands in brackets where needed."""
    found = []
    for entry in study.trainers:
        for own, settings in entry.settings():
            label = entry.label or _plain_name(entry.name)
            words = ", ".join(f"{key}={_short(value)}" for key, value in own.items())
            found.append((f"{label}[{words}]" if words else label, TrainerConfig(name=entry.name, params=settings)))
    return list(zip(_all_different([label for label, _ in found]), [trainer for _, trainer in found], strict=True))


def _all_different(labels: Sequence[str]) -> Iterator[str]:
    """The labels, those that were there before with a number."""
    times: dict[str, int] = {}
    for label in labels:
        times[label] = times.get(label, 0) + 1
        yield label if times[label] == 1 else f"{label}#{times[label]}"


def _plain_name(given: str) -> str:
    """A task's or trainer's name, the name of its class, or that of a data file without the suffix."""
    if given.startswith(tuple(tasks.families())) or tasks.is_environment(given):
        return given
    name = given.rpartition(":")[2]
    return Path(name).stem if Path(name).suffix else Path(name).name


def task_key(task: TaskConfig) -> str:
    """A folder name for a task as it is configured here."""
    name = Path(task.name.partition(":")[0]).stem
    return f"{name}-{digest(task.model_dump(mode='json'))[:6]}"


def _config(
    study: StudyConfig, label: str, task: TaskConfig, trainer: TrainerConfig, draw: tuple[int, int]
) -> RunConfig:
    seed, repeat = draw
    return RunConfig(
        task=task,
        trainer=trainer,
        models=study.models,
        seed=seed,
        repeat=repeat,
        benchmark=study.benchmark.of(label, task.name),
        checkpoints=study.checkpoints,
        budget=study.budget,
        workers=max(1, study.workers // study.parallel),
        max_failures=study.max_failures,
        rollout_timeout=study.rollout_timeout,
        sync_seconds=study.sync_seconds,
    )


def _short(value: Json) -> str:
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    if isinstance(value, Mapping):
        text = "{...}"
    text = redact(text)
    return text if len(text) <= 24 else f"{text[:23]}…"
