"""`sharpen eval`: the score of any checkpoint, run or skill file on any split, alone or against another."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sharpen.cli import options, trusting
from sharpen.cli.terminal import echo, echo_json

if TYPE_CHECKING:
    from sharpen.bench.config import RunConfig
    from sharpen.bench.evaluate import Files, Report, Wish
    from sharpen.bench.reopening import Home
    from sharpen.bench.trust import Use
    from sharpen.core.candidate import Candidate
    from sharpen.engine.opening import How, Setup

INITIAL = "initial"


@click.command(no_args_is_help=True)
@click.argument("what")
@click.option("--task", metavar="T", help="A task's name or a data file; of a run: its own.")
@click.option("--split", metavar="S", help="train, val or test (the default).")
@click.option("--episodes", type=int, metavar="N", help="Of an environment: N fresh episodes instead of a split.")
@click.option("--repeats", type=int, default=1, metavar="K", help="Attempts at each item, where they may differ.")
@click.option("--against", metavar="OTHER", help="Also score OTHER (`initial`: the start), and compare in pairs.")
@options.data_options
@options.model_options
@click.option("--seed", type=int, metavar="N", help="Of the draws, where a model may answer differently.")
@options.budget_option
@click.option("--workers", type=int, metavar="N", help="Rollouts under way at once.")
@trusting.trust_option
@options.runs_option
@options.output_options
def command(
    what: str, against: str | None, split: str | None, episodes: int | None, repeats: int, trust: bool, runs: Path,
    **given: Any,
) -> int:  # fmt: skip
    """Score WHAT: a run or a job's folder (its best), a checkpoint's folder, a skill file, or `initial` (the start).

    The task and the models are those of the run WHAT belongs to, unless others are given. Nothing that a ledger holds is
    paid for again.
    """
    from sharpen.bench import evaluate, layout
    from sharpen.bench.config import load
    from sharpen.bench.runner import build
    from sharpen.bench.trust import SENDS, model_uses, policy_uses, uses
    from sharpen.cli.running import Output, fetch_weights
    from sharpen.cli.terminal import say
    from sharpen.core.errors import UsageError
    from sharpen.engine.budget import Caps
    from sharpen.engine.opening import How

    if split is not None and episodes is not None:
        raise UsageError("--episodes plays episodes that are in no split: give --split or --episodes, not both")
    output = Output(given.pop("as_json"), given.pop("quiet"))
    caps = options.caps(given.pop("budget")) or {}
    found = [_find(name, runs) for name in (what, against) if name is not None]
    home = next((one.home for one in found if one.home is not None), None)
    own_data = None if given["task"] is not None or home is None else home.run
    policy = next((one.candidate for one in found if one.candidate is not None), None)
    own_task = given["task"] is None
    if home is not None:
        stored = load(home.config)
        listed = uses(stored, home.run) if own_task else [*model_uses(stored)]
        listed = [use for use in listed if use.action != SENDS or _is_asked(use, given)]
        trusting.allow(home.run.path, listed, trust=trust, ask=not output.as_json)
    elif own_task and policy is not None:
        trusting.allow(Path(what), policy_uses(policy), trust=trust, ask=not output.as_json)
    config = _config(home, given, policy)
    setup = build(config, own_data, to_train=False, trusted=True).setup
    if home is None:
        setup = _measured_against(setup, next((one.benchmark for one in found if one.benchmark is not None), None))
    start = setup.initial if own_data is None else _start(found, setup.initial)
    candidates = {one.label: start if one.candidate is None else one.candidate for one in found}
    _check_kind(setup, candidates)
    wish = evaluate.Wish(candidates, "test" if split is None else split, repeats, episodes)
    if evaluate.samples(setup, wish) < repeats and not output.silent:
        say("the model gives the same answer every time: repeats tell nothing new, each item is attempted once")
    ledger = home.run.ledger if home is not None else runs / evaluate.NAME / "ledger.db"
    files = evaluate.Files(layout.new_run(runs / evaluate.NAME, setup.task.name).path, ledger)
    how = How(Caps(**caps), config.workers, config.max_failures)  # type: ignore[arg-type]
    fetch_weights(setup, silent=output.silent)
    report = asyncio.run(_measure(setup, wish, files, how, output.silent))
    _show(report, files, wish, output)
    return 0


def _is_asked(use: Use, given: dict[str, Any]) -> bool:
    """Whether a measurement asks the model that a use is about, rather than one of the command line or none."""
    option = {"models.target": "model", "models.judge": "judge"}.get(use.setting)
    return option is not None and given[option] is None


@dataclass(frozen=True)
class _Found:
    """What a name on the command line stands for; `candidate` is None for `initial`."""

    label: str
    candidate: Candidate | None
    home: Home | None
    job: Path | None = None
    """The folder of the job it is from."""
    benchmark: dict[str, Any] | None = None
    """What a checkpoint says its scores are measured against."""


def _find(given: str, runs: Path) -> _Found:
    from sharpen.bench.layout import JOB_CONFIG, find_run
    from sharpen.bench.reopening import home_of, job_around
    from sharpen.cli.finding import checkpoint_of
    from sharpen.core.errors import UsageError
    from sharpen.engine import checkpoints

    if given == INITIAL:
        return _Found(given, None, None)
    path = checkpoint_of(Path(given)) if given.endswith(".pt") else Path(given)
    if path.exists() and not (path / "meta" / "config.snapshot.yaml").exists():
        around = job_around(path)
        home, job = (None, None) if around is None else (home_of(*around), around[1])
        if job is not None and path.resolve() == job:
            return _Found(path.name, _best_of(job), home, job)
        return _Found(given, checkpoints.load(path), home, job, checkpoints.about(path).get("benchmark"))
    try:
        run = find_run(given, runs)
    except UsageError as error:
        raise UsageError(f"{given!r} is no run, checkpoint or skill file: {error}") from None
    jobs = run.jobs()
    if not jobs:
        raise UsageError(f"{run.path} has no checkpoint yet; resume it first")
    if len(jobs) > 1 and (jobs[-1] / JOB_CONFIG).exists():
        raise UsageError(f"{run.path} is a study of {len(jobs)} jobs; name one of them, such as {jobs[0]}")
    return _Found(run.path.name, _best_of(jobs[-1]), home_of(run, jobs[-1]), jobs[-1])


def _start(found: list[_Found], initial: Candidate) -> Candidate:
    """What the training began with: of a policy the fresh weights, which a task alone knows nothing of."""
    from sharpen.engine import checkpoints, shelf

    job = next((one.job for one in found if one.job is not None), None)
    began = None if job is None else shelf.started(job)
    return checkpoints.load(began) if began is not None and began.is_dir() else initial


def _check_kind(setup: Setup, candidates: dict[str, Candidate]) -> None:
    from sharpen.core.errors import UsageError
    from sharpen.tasks.gym import about

    for label, candidate in candidates.items():
        if about.DESCRIPTION in candidate.parts and setup.task.trainee == "text":
            raise UsageError(
                f"{label} is a policy for {about.environment_of(candidate)}, and task {setup.task.name!r} is about a text"
            )


def _measured_against(setup: Setup, told: dict[str, Any] | None) -> Setup:
    """A checkpoint that lies outside of its run brings its benchmark along, unless another one is given."""
    if told is None or setup.spec.benchmark is not None:
        return setup
    return replace(setup, spec=replace(setup.spec, benchmark=told))


def _best_of(job: Path) -> Candidate:
    from sharpen.cli.running import best_skill, shown
    from sharpen.cli.terminal import say
    from sharpen.core.errors import UsageError

    skill = best_skill(job)
    if skill is None:
        raise UsageError(f"{shown(job)} has no checkpoint yet; resume its run first")
    if not (job / "checkpoints" / "best").exists():
        say(f"{shown(job)} is not at its end: its newest checkpoint is scored")
    return skill


def _config(home: Home | None, given: dict[str, Any], candidate: Candidate | None) -> RunConfig:
    """The job's own configuration with what is given in place of it; its budget is not ours. A policy that lies outside of
    its run says itself what it plays."""
    from sharpen.bench.config import BudgetConfig, load
    from sharpen.cli.train import train_settings
    from sharpen.core.errors import UsageError
    from sharpen.tasks.gym import about

    settings = train_settings(given.pop("task"), **given)
    if home is None:
        if "name" not in settings.get("task", {}) and candidate is not None and about.DESCRIPTION in candidate.parts:
            settings["task"] = {"name": about.environment_of(candidate), "params": about.settings_of(candidate)}
        if "task" not in settings or "name" not in settings["task"]:
            raise UsageError("which task? give --task NAME (see `sharpen list tasks`) or the path of a data file")
        return load(None, settings)
    own = load(home.config)
    if "name" in settings.get("task", {}):
        models = {**own.models.model_dump(), **settings.get("models", {})}
        return load(None, {"seed": own.seed, "workers": own.workers, **settings, "models": models})
    return load(home.config, settings).model_copy(update={"budget": BudgetConfig()})


async def _measure(setup: Setup, wish: Wish, files: Files, how: How, silent: bool) -> Report:
    from sharpen.bench.evaluate import evaluate
    from sharpen.cli import live
    from sharpen.cli.console import console
    from sharpen.cli.running import watched

    display = live.choose(console(err=True), silent=silent)
    try:
        return await watched(display, 0, lambda begin: evaluate(setup, wish, files, how, on_start=begin))
    finally:
        display.close()


def _show(report: Report, files: Files, wish: Wish, output: Any) -> None:
    from sharpen.bench.benchmark import with_normalised
    from sharpen.cli.console import console, show
    from sharpen.cli.running import shown
    from sharpen.report import scores

    if output.as_json:
        names = ("mean", "low", "high", "n", "failed")
        rows = {
            row.which: {
                "candidate": row.candidate,
                **with_normalised(dict(zip(names, row.score, strict=True)), names[:3], report.scale),
                "attempts": row.samples,
                "by_type": {kind: dict(zip(names, cells, strict=True)) for kind, cells in row.by_type.items()},
            }
            for row in report.evaluated
        }
        gain = None
        if report.gain is not None:
            gain = with_normalised(report.gain.fields(), names[:3], report.scale, differences=True)
        made = {"split": wish.where, "scores": rows, "difference": gain, "paid_calls": report.paid_calls}
        echo_json({**made, "calls": report.used.calls, "folder": str(files.folder)})
    elif output.quiet:
        echo(scores.sentence(report))
    else:
        show(console(), scores.blocks(report))
        echo(f"the story of this measurement: {shown(files.folder)}")
