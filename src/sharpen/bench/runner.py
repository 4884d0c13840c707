"""From a configuration to a finished job: build its parts, run or resume it, and derive its files.

A job that is new and a job that is resumed take the same path; what is in its folder decides how much of it is replayed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sharpen.bench import artifacts, benchmark, layout, tensorboard, trust
from sharpen.bench.config import RunConfig, TaskConfig, dump, understood, validated
from sharpen.bench.item_files import write_items
from sharpen.bench.layout import RunFolder
from sharpen.core.candidate import Candidate
from sharpen.core.digest import Json, canonical, digest
from sharpen.core.errors import (
    BudgetExhausted,
    Interrupted,
    MissingRequirement,
    NotDeterministic,
    SharpenError,
    StorageError,
    UsageError,
)
from sharpen.core.redact import holds_known, redact, redact_json, remember_environment
from sharpen.core.task import SPLITS, Splits, Task
from sharpen.engine import checkpoints
from sharpen.engine.budget import Caps
from sharpen.engine.durability import cut_damaged_end
from sharpen.engine.events import (
    SCHEMA_VERSION,
    BenchmarkStated,
    BudgetEnded,
    JobEnded,
    JobStarted,
    ObjectivesStated,
    RepeatStated,
)
from sharpen.engine.gateway import Stopped
from sharpen.engine.job import Job
from sharpen.engine.metric import HARD
from sharpen.engine.opening import EVENTS, How, Setup, open_job
from sharpen.engine.replay import reopen
from sharpen.engine.rollouts import Sampling
from sharpen.engine.spec import JobSpec, describe_splits
from sharpen.files import sweep, write_atomic
from sharpen.models.base import Model
from sharpen.models.registry import open_model
from sharpen.tasks import registry as tasks
from sharpen.tasks.datatask import DataTask
from sharpen.tasks.placeholders import check_placeholders
from sharpen.tasks.textual import TextTask
from sharpen.trainers import registry as trainers
from sharpen.trainers.base import Trainer
from sharpen.trainers.finish import finish

NO_RENDER = "none"
"""How a skill reaches a model where there is none."""


@dataclass(frozen=True)
class Parts:
    """What a configuration names, found and checked, but not yet started."""

    config: RunConfig
    trainer: Trainer
    setup: Setup
    how: How


def build(
    config: RunConfig,
    run: RunFolder | None = None,
    *,
    task: Task | None = None,
    to_train: bool = True,
    trusted: bool = False,
    jobs_at_once: int = 1,
) -> Parts:
    """Find everything a configuration names, in `run`'s own copies where it has them. Whatever is wrong is said here,
    before anything is paid for. A `task` that is given is taken as it is, to be looked at. What can't be trained may still
    be evaluated: `to_train` says which is meant. Code that the configuration of a `run` names must be known to be the user's
    (`trust.py`), unless it is `trusted` already. `jobs_at_once` share this machine's cores."""
    remember_environment()
    if run is not None and not trusted:
        trust.require(run.path, trust.uses(config, run))
    if task is None:
        task = make_task(config.task, None if run is None else run.data)
    missing = task.requirements.missing()
    if missing:
        raise MissingRequirement(f"task {task.name!r} can't run here: it needs {', '.join(missing)}")
    if to_train and task.untrainable:
        raise UsageError(f"task {task.name!r} can't be trained: {task.untrainable}")
    splits = task.splits()
    candidate = choose_start(config.task, task, None if run is None else run.skill)
    if run is None and isinstance(task, TextTask):
        check_placeholders(task, candidate)
    _check_secrets(config, splits, candidate)
    kind = trainers.get(config.trainer.name)
    params = validated(kind.Params, config.trainer.params, f"trainer {config.trainer.name}")
    trainer = kind(params)
    if to_train and kind.trains != task.trainee:
        fitting = [one.name for one in trainers.known() if one.kind is not None and one.kind.trains == task.trainee]
        raise UsageError(
            f"trainer {kind.name!r} trains a {kind.trains}, and task {task.name!r} is about a {task.trainee}; "
            f"trainers for that are: {', '.join(fitting)}"
        )
    if to_train:
        trainer.suits(task)
    models = {role: _open(name, jobs_at_once) for role, name in models_of(config, task).items()}
    trainer.check(splits, candidate, models)
    _check_money(config, models)
    render = choose_render(config, task, models["target"]) if "target" in models else NO_RENDER
    sampling = choose_sampling(config, task, models)
    identities: dict[str, Json] = {role: model.identity for role, model in models.items()}
    if config.models.temperature is not None:
        identities["temperature"] = config.models.temperature
    measured_against = benchmark.resolved(config.benchmark, task, getattr(params, "gate_metric", HARD.name))
    spec = JobSpec(
        task.name, task.version, kind.name, kind.version, params.model_dump(mode="json"), identities, render,
        describe_splits(splits), candidate.digest, config.seed,
        None if measured_against is None else measured_against.row(), config.repeat,
    )  # fmt: skip
    setup = Setup(spec, task, splits, candidate, models, sampling)
    caps = Caps(**config.budget.model_dump())
    closing = trainer.closing_calls(task, splits, repeatable=sampling.seed is not None)
    if caps.calls is not None and closing >= caps.calls:
        raise UsageError(
            f"budget.calls={caps.calls} leaves nothing for training: the closing measurement may take {closing}; "
            "raise it, or lower task.limit"
        )
    keep = benchmark.retention(config.checkpoints, task)
    how = How(caps, config.workers, config.max_failures, keep=keep, sync_seconds=config.sync_seconds)
    return Parts(config, trainer, setup, how)


def models_of(config: RunConfig, task: Task) -> dict[str, str]:
    """The name of each role's model. A task that calls none has no use for a target and a judge, whatever is configured."""
    names = {"target": config.models.target, "optimizer": config.models.optimizer, "judge": config.models.judge}
    rolling = task.calls_per_rollout > 0
    return {role: name for role, name in names.items() if name is not None and (rolling or role == "optimizer")}


def _open(name: str, jobs_at_once: int) -> Model:
    """The model of that name; of the embedded one, whose workers take a core each, a share of them."""
    if jobs_at_once > 1 and name.rpartition(":")[2].startswith("local/"):
        return open_model(name, workers=max(1, layout.cores() // jobs_at_once))
    return open_model(name)


def make_task(config: TaskConfig, data: Path | None = None) -> Task:
    """The task a configuration names; from the run's own copy of the data where there is one."""
    settings = {**config.params, **config.model_dump(exclude={"name", "skill", "params"}, exclude_none=True)}
    if data is not None and data.exists():
        for chosen_already in ("ratio", "split_seed", "limit", "fields", "drop_duplicates"):
            settings.pop(chosen_already, None)
        task = tasks.get(str(data), **settings)
        task.name = Path(config.name).stem if Path(config.name).suffix else Path(config.name).name
        return task
    task = tasks.get(config.name, **settings)
    if config.params:  # the same class with other settings is another task; with another key it is not
        task.version = f"{task.version}-{digest(redact_json(config.params))[:8]}"
    return task


def choose_start(config: TaskConfig, task: Task, kept: Path | None = None) -> Candidate:
    """What training starts from: the texts a configuration names (from the run's own copy), or the task's own."""
    if config.skill is None:
        return task.seed()
    return checkpoints.load(kept if kept is not None and kept.exists() else Path(config.skill))


def choose_render(config: RunConfig, task: Task, target: Model) -> str:
    if config.models.render != "auto":
        return config.models.render
    return task.renders.get(target.family, target.render)


def choose_sampling(config: RunConfig, task: Task, models: dict[str, Model]) -> Sampling:
    """A seed for rollouts only where something about them is random; else all seeds share them."""
    rolling = [model for role, model in models.items() if role != "optimizer"]
    warm = bool(config.models.temperature)
    random = task.stochastic or warm or not all(model.deterministic for model in rolling)
    return Sampling(config.seed if random else None, config.models.temperature, config.rollout_timeout)


def prepare(config: RunConfig, root: Path) -> tuple[RunFolder, Parts]:
    """Check a configuration and lay out the folder of a new run for it."""
    parts = build(config)
    task, spec = parts.setup.task, parts.setup.spec
    folder = layout.new_run(root, f"{task.name}-{spec.trainer}")
    write_material(parts, folder)
    about: dict[str, Json] = {"task": spec.task, "trainer": spec.trainer, "seed": config.seed}
    if config.repeat:
        about["repeat"] = config.repeat
    folder.write_meta(dump(config, parts.trainer.params), {spec.job_id: about})
    folder.sync()
    trust.remember(trust.uses(understood(config, parts.trainer.params), folder))
    return folder, parts


def write_material(parts: Parts, folder: RunFolder) -> None:
    """Write what the job works on into its run, as far as it is not there: data, items that code has made, the start."""
    task, config = parts.setup.task, parts.config.task
    if isinstance(task, DataTask):
        if not folder.data.exists():
            task.write(folder.data)
    elif any(use.action == trust.RUNS for use in trust.task_uses(config)) and not folder.items.exists():
        write_items(folder.items, task, parts.setup.splits, parts.setup.initial)
    if config.skill is not None and not folder.skill.exists():
        for part, text in parts.setup.initial.parts.items():
            write_atomic(folder.skill / checkpoints.safe_part(part), text)


@dataclass
class Session:
    """One run of a job's process, from opening its files to closing them."""

    parts: Parts
    folder: RunFolder
    on_start: Callable[[Job], None] | None = None

    @property
    def job_folder(self) -> Path:
        return self.folder.job(self.parts.setup.spec.job_id)

    async def run(self, *, more_budget: bool = False) -> str:
        """Carry the job out, or on, to its end. Returns its status: done or budget."""
        with layout.locked(self.job_folder):
            sweep(self.job_folder)
            sweep(self.folder.path / "meta")
            cut_damaged_end(self.job_folder / EVENTS)
            reopen(self.job_folder / EVENTS, more_budget=more_budget)
            artifacts.write_job_meta(self.job_folder, self.parts.setup.spec)
            async with open_job(self.parts.setup, self.job_folder, self.folder.ledger, self.parts.how) as job:
                if self.on_start is not None:
                    self.on_start(job)
                try:
                    async with tensorboard.following(self.job_folder):
                        status = await _carry_out(job, self.parts)
                except BaseException as error:
                    if isinstance(error, SharpenError) and not isinstance(
                        error, Stopped | Interrupted | NotDeterministic
                    ):
                        _tell_failure(job, error)
                    with suppress(StorageError):  # what went wrong first is what is to be reported
                        artifacts.write(self.job_folder)
                    raise
                artifacts.write(self.job_folder)
            return status


def _tell_failure(job: Job, error: SharpenError) -> None:
    """Let the story end with what went wrong, unless it is being retold or the disk won't take it."""
    if not job.runtime.story.replaying:
        with suppress(StorageError):
            job.emit(JobEnded("failed", redact(str(error)), job.meter.table()))


def tell_start(job: Job) -> None:
    """The first events of every job: what it is, and what its scores are measured against."""
    spec = job.spec
    job.emit(
        JobStarted(
            SCHEMA_VERSION, spec.job_id, spec.task, spec.task_version, spec.trainer, spec.trainer_version, spec.params,
            spec.models, spec.render, spec.seed, job.repeatable, spec.splits, spec.candidate,
        )
    )  # fmt: skip
    if spec.benchmark is not None:
        job.emit(BenchmarkStated(**spec.benchmark, task_protocol=job.task.protocol))
    if spec.repeat:
        job.emit(RepeatStated(spec.repeat))
    if job.task.objectives:
        rows = {name: objective.row() for name, objective in job.task.objectives.items()}
        job.emit(ObjectivesStated(rows, [item.id for item in job.splits.val]))


async def _carry_out(job: Job, parts: Parts) -> str:
    tell_start(job)
    if job.budget.caps != Caps():
        job.budget.set_aside(parts.trainer.closing_calls(job.task, job.splits, repeatable=job.repeatable))
        if not job.task.calls_per_rollout:
            job.budget.keep_time(parts.trainer.closing_rollouts(job.splits, repeatable=job.repeatable))
    trained = await parts.trainer.train(job)
    ended = job.runtime.story.budget_barrier
    if ended is not None:  # a trainer that came to its end without saying so
        job.emit(BudgetEnded(ended))
    status = "budget" if trained.out_of_budget or ended is not None else "done"
    with job.budget.closing():
        try:
            if not await finish(job, trained, step=job.progress.step):
                status = "budget"
        except BudgetExhausted as error:
            status = "budget"
            job.emit(BudgetEnded(str(error)))
            job.checkpoint(trained.best, trained.best_step, {"raw": trained.raw, "confirmed": None}, name="best")
    job.emit(JobEnded(status, "", job.meter.table()))
    return status


def _check_secrets(config: RunConfig, splits: Splits, start: Candidate) -> None:
    """Data, skills and names are written down as they are, so none of them may hold the value of a key."""
    advice = "a run's files would hold it: take it out, or unset the variable or the setting it comes from"
    for setting, name in (("task.name", config.task.name), ("trainer.name", config.trainer.name)):
        if holds_known(name):
            raise UsageError(f"{setting} holds the value of a key or a password; {advice}")
    for part, text in start.parts.items():
        if holds_known(text):
            raise UsageError(f"the skill to start from, {part}, holds the value of a key or a password; {advice}")
    for split in SPLITS:
        lines = [canonical([item.id, dict(item.inputs), item.reference]) for item in splits[split]]
        if holds_known("\n".join(lines)):
            item = next(item for item, line in zip(splits[split], lines, strict=True) if holds_known(line))
            raise UsageError(f"item {item.id!r} of {split} holds the value of a key or a password; {advice}")


def _check_money(config: RunConfig, models: dict[str, Model]) -> None:
    """A cap on money can only be kept where every price is known."""
    from sharpen.core.chat import Request

    if config.budget.money is None:
        return
    for model in models.values():
        if model.bound(Request(prompt=""))[1] is None:
            raise UsageError(
                f"budget.money can't be kept: no price is known for {model.name}; add one in a file named by SHARPEN_PRICES"
            )
