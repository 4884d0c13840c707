"""`sharpen explain`: every line of a trained skill with the step that brought it, the evidence, and what it does."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sharpen.cli import options, trusting
from sharpen.cli.terminal import echo, echo_json

if TYPE_CHECKING:
    from sharpen.bench.attribution import Attributed
    from sharpen.bench.config import RunConfig, TaskConfig
    from sharpen.bench.leave_one_out import Result, Subject
    from sharpen.bench.reopening import Home
    from sharpen.cli.running import Output
    from sharpen.core.candidate import Candidate
    from sharpen.core.task import Splits
    from sharpen.engine.metric import Metric
    from sharpen.engine.opening import Setup


@click.command()
@click.argument("job", default="latest")
@click.option("--fresh", is_flag=True, help="Make the rollouts that are not stored yet, however many.")
@click.option("--budget", metavar="calls=N", help="Make as many of them as N calls allow for.")
@click.option("--prune", is_flag=True, help="Look for the shorter skill, without blocks that do nothing.")
@click.option(
    "--margin", type=click.FloatRange(0, min_open=True), default=0.05, show_default=True, metavar="X",
    help="A loss of score that would not matter, for --prune.",
)  # fmt: skip
@click.option("--to", "target", type=click.Path(path_type=Path), help="Where --prune writes the shorter skill.")
@click.option("--workers", type=click.IntRange(1), metavar="N", help="Rollouts under way at once.")
@trusting.trust_option
@options.runs_option
@options.output_options
def command(
    job: str, fresh: bool, budget: str | None, prune: bool, margin: float, target: Path | None, workers: int | None,
    trust: bool, runs: Path, as_json: bool, quiet: bool,
) -> int:  # fmt: skip
    """Say of every line of JOB's best skill (a run, its job's folder, or `latest`) where it comes from and what it does.

    A line is weighed by leaving it out, on the val items that decided about steps. Without --fresh or --budget, only
    rollouts that are stored are used, and nothing is run.
    """
    from sharpen.bench import leave_one_out
    from sharpen.bench.attribution import attributed
    from sharpen.bench.config import load
    from sharpen.bench.reopening import home_of
    from sharpen.bench.trust import uses
    from sharpen.cli.finding import find, must_be_text
    from sharpen.cli.running import Output, best_skill
    from sharpen.core.errors import UsageError
    from sharpen.engine.replay import read_events
    from sharpen.ledger.reading import open_to_read

    calls = _allowance(fresh, budget)
    _check(prune, target, calls)
    output = Output(as_json, quiet)
    found = find(job, runs)
    folder = found.only()
    skill = best_skill(folder)
    if skill is None:
        raise UsageError(f"{folder} has no checkpoint yet; resume its run first")
    lines = read_events(folder / "events.jsonl")
    must_be_text(folder, lines, "explain weighs the lines of a text")
    home = home_of(found.run, folder)
    config = load(home.config)
    splits, start = _stored(config.task, home, lines[0])
    rows = attributed(lines, {**({} if start is None else {start.digest: start}), **_saved(folder)}, skill)
    items = leave_one_out.deciding(lines, splits.val)
    keys = leave_one_out.stored_keys(lines)
    subject = leave_one_out.Subject(keys, skill, [row.block for row in rows], items, _metric(lines[0]))
    if calls == 0:
        with open_to_read(home.run.ledger) as ledger:
            result = leave_one_out.known(subject, ledger)
    else:
        trusting.allow(home.run.path, uses(config, home.run), trust=trust, ask=not as_json)
        setup = _setup(config, home, lines[0])
        result = _measure(setup, subject, home, runs, calls, margin if prune else None, workers, output)
    _show(rows, result, subject, margin, output)
    if target is not None:
        _write(result, target)
    return 0


def _allowance(fresh: bool, budget: str | None) -> float:
    from sharpen.core.errors import UsageError

    caps = options.caps(budget) or {}
    if set(caps) - {"calls"}:
        raise UsageError(f"--budget: explain counts calls alone, got {budget!r}; for example calls=900")
    if fresh and caps:
        raise UsageError("--fresh makes all rollouts, --budget some of them; give one of the two")
    return math.inf if fresh else float(caps.get("calls", 0))


def _check(prune: bool, target: Path | None, calls: float) -> None:
    from sharpen.core.errors import UsageError

    if target is not None and not prune:
        raise UsageError("--to says where --prune writes the shorter skill; give --prune too")
    if target is not None and target.exists():
        raise UsageError(f"{target} is there already; name another file")
    if prune and calls == 0:
        raise UsageError("--prune has to measure the shorter skill: give --fresh, or --budget calls=N")


def _stored(task: TaskConfig, home: Home, started: Mapping[str, Any]) -> tuple[Splits, Candidate | None]:
    """The job's items, and its start where the run has it: from its files, without running code of the task's."""
    from sharpen.bench.recorded_items import recorded_splits, recorded_start
    from sharpen.core.errors import UsageError
    from sharpen.engine.spec import describe_splits

    splits = recorded_splits(task, home.run)
    if describe_splits(splits) != started["splits"]:
        raise UsageError(f"the task {started['task']} has changed since the job was run: its scores can't be compared")
    try:
        return splits, recorded_start(task, home.run)
    except UsageError:
        return splits, None


def _setup(config: RunConfig, home: Home, started: Mapping[str, Any]) -> Setup:
    from sharpen.bench.config import BudgetConfig
    from sharpen.bench.runner import build
    from sharpen.core.errors import UsageError

    setup = build(config.model_copy(update={"budget": BudgetConfig()}), home.run, to_train=False, trusted=True).setup
    if setup.spec.task_version != started["task_version"]:
        raise UsageError(f"the task {setup.task.name} has changed since the job was run: its scores can't be compared")
    return setup


def _saved(folder: Path) -> dict[str, Candidate]:
    from sharpen.engine import checkpoints

    found = [checkpoints.load(path.parent) for path in (folder / "checkpoints").glob("*/metadata.json")]
    return {candidate.digest: candidate for candidate in found}


def _metric(started: Mapping[str, Any]) -> Metric:
    """The score the job's gate went by."""
    from sharpen.engine.metric import Metric

    params = started["params"]
    return Metric(params.get("gate_metric", "hard"), params.get("gate_mixed_weight", 0.5))


def _measure(
    setup: Setup, subject: Subject, home: Home, runs: Path, calls: float, margin: float | None, workers: int | None,
    output: Output,
) -> Result:  # fmt: skip
    from sharpen.bench import layout, leave_one_out
    from sharpen.bench.config import load
    from sharpen.bench.evaluate import Files
    from sharpen.cli import live
    from sharpen.cli.console import console
    from sharpen.cli.running import fetch_weights, watched
    from sharpen.engine.opening import How

    config = load(home.config)
    files = Files(layout.new_run(runs / leave_one_out.NAME, setup.task.name).path, home.run.ledger)
    how = How(workers=workers or config.workers, max_failures=config.max_failures)
    fetch_weights(setup, silent=output.silent)
    display = live.choose(console(err=True), silent=output.silent)

    async def work() -> Result:
        return await watched(
            display,
            0,
            lambda begin: leave_one_out.measure(setup, subject, files, how, calls=calls, margin=margin, on_start=begin),
        )

    try:
        return asyncio.run(work())
    finally:
        display.close()


def _show(rows: list[Attributed], result: Result, subject: Subject, margin: float, output: Output) -> None:
    from sharpen.cli.console import console, show
    from sharpen.report import explaining

    items = len(subject.items)
    if output.as_json:
        echo_json(explaining.as_json(rows, result, items))
        return
    if not output.quiet:
        show(console(), explaining.blocks(rows, result, items))
        if result.pruned is not None:
            show(console(), explaining.pruned(result.pruned, subject.skill, margin))
    elif result.pruned is not None:
        echo(explaining.sentence(result.pruned, subject.skill, margin))
    else:
        echo(explaining.weighed(result, items))


def _write(result: Result, target: Path) -> None:
    """One part is a file, several are a folder."""
    from sharpen.cli.running import shown
    from sharpen.cli.terminal import say
    from sharpen.engine.checkpoints import safe_part
    from sharpen.files import write_atomic

    skill = None if result.pruned is None else result.pruned.skill
    if skill is None:
        say(f"{shown(target)} was not written")
    elif len(skill.parts) == 1:
        write_atomic(target, skill.text)
    else:
        for part, text in skill.parts.items():
            write_atomic(target / safe_part(part), text)
