"""`sharpen status`: all runs in a table, or one in detail. Reads events only, so it works beside a running job too."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sharpen.cli import options
from sharpen.cli.terminal import echo, echo_json, say

if TYPE_CHECKING:
    from sharpen.bench.layout import RunFolder
    from sharpen.report.standing import Standing

_STYLES = {"running": "cyan", "finished": "green", "stopped": "yellow", "failed": "red", "budget": "yellow"}


@click.command()
@click.argument("run", required=False)
@options.runs_option
@options.json_option
def command(run: str | None, runs: Path, as_json: bool) -> int:
    """Show all runs, or RUN (a path, a name, or `latest`) in detail."""
    from sharpen.bench.layout import find_run

    return _all_runs(runs, as_json) if run is None else _one_run(find_run(run, runs), as_json)


def _all_runs(root: Path, as_json: bool) -> int:
    from sharpen.bench.layout import open_run
    from sharpen.cli.console import console, show
    from sharpen.core.errors import SharpenError

    found: list[Standing] = []
    for path in (path.parent.parent for path in root.glob("*/meta/config.snapshot.yaml")):
        try:
            found += _standings(open_run(path), lambda row: say(f"{row.run} is left out: {row.message}"))
        except SharpenError as error:  # one bad run must not hide the others
            say(f"{path.name} is left out: {error}")
    found.sort(key=lambda row: row.last or 0.0)
    if as_json:
        echo_json([dataclasses.asdict(row) for row in found])
    elif not found:
        echo(f"no runs in {root}; start one with `sharpen demo` or `sharpen train`")
    else:
        show(console(), [_table(found)])
    return 0


def _one_run(folder: RunFolder, as_json: bool) -> int:
    from sharpen.bench import story
    from sharpen.bench.artifacts import results
    from sharpen.bench.layout import is_running
    from sharpen.cli.console import console, show
    from sharpen.cli.running import best_skill, place
    from sharpen.core.errors import StorageError
    from sharpen.report import closing
    from sharpen.report.closing import evaluations
    from sharpen.report.policies import is_policy
    from sharpen.report.standing import state_of

    rows, jobs = _standings(folder), folder.jobs()
    planned = folder.manifest["jobs"]
    if max(len(jobs), len(planned)) > 1 and not as_json:
        return _study(folder, rows if jobs else [])
    if not jobs:
        if as_json:
            echo_json(dataclasses.asdict(rows[0]))
        else:
            echo(f"{rows[0].run}: nothing has happened yet")
        return 0
    for job, row in zip(jobs, rows, strict=True):
        told = story.read(job)
        found = results(told.lines)
        if told.damage and not as_json:
            raise StorageError(f"{job}: {told.damage}")
        if as_json:
            state = row.state if told.damage else state_of(found, running=is_running(job))
            found["message"] = told.damage or found["message"]
            echo_json({"run": str(folder.path), "job": str(job), "state": state, **found})
            continue
        out = console()
        show(out, [_table([row])])
        if found["steps"]:
            show(out, [evaluations(found) if is_policy(found) else _steps(found["steps"])])
        show(out, closing.closing(found, place(folder, job), best_skill(job)))
    return 0


def _study(folder: RunFolder, rows: list[Standing]) -> int:
    """A row per job that has begun, and what the study came to so far."""
    from sharpen.bench.tables import write_tables
    from sharpen.cli.console import console, show
    from sharpen.report.study import closing

    write_tables(folder)
    out = console()
    if rows:
        planned = folder.manifest["jobs"]
        show(out, [_table([dataclasses.replace(row, run=_job_name(row, planned)) for row in rows])])
    show(out, closing(folder.path))
    return 0


def _job_name(row: Standing, planned: Mapping[str, Mapping[str, Any]]) -> str:
    """A job's id, and what it is in the study; of one that the study has no more, its trainer."""
    about = planned.get(row.job_id, {})
    tasks = {one["task"] for one in planned.values()}
    where = f" {about['task']}," if "task" in about and len(tasks) > 1 else ""
    arm, seed = about.get("arm", row.trainer), about.get("seed", row.seed)
    return f"{row.job_id}{where} {arm}, seed {seed}{f', repeat {row.repeat}' if row.repeat else ''}"


def _standings(folder: RunFolder, leave_out: Callable[[Standing], None] | None = None) -> list[Standing]:
    """One row per job of a run; one without content for a run that has not begun. Where `leave_out` is given, it gets those
    whose story is damaged."""
    from sharpen.bench import story
    from sharpen.bench.artifacts import results
    from sharpen.bench.layout import is_running
    from sharpen.report.standing import State, standing

    rows, jobs = [], folder.jobs()
    for job in jobs:
        told = story.read(job)
        row = standing(folder.path.name, told.lines, results(told.lines), running=is_running(job))
        if told.damage:
            row = dataclasses.replace(row, job_id=job.name, state=State.FAILED, message=told.damage)
            if leave_out is not None:
                leave_out(row)
                continue
        rows.append(_as_its_process_ended(row, job))
    return rows if jobs else [standing(folder.path.name, [], results([]), running=False)]


def _as_its_process_ended(row: Standing, job: Path) -> Standing:
    """A job of a study that was killed or crashed could not say so itself; its process's record does."""
    from sharpen.bench.layout import read_json
    from sharpen.bench.tables import PROCESS
    from sharpen.report.standing import State

    if row.state != State.STOPPED or not (job / PROCESS).exists():
        return row
    ended = read_json(job / PROCESS)
    if ended["state"] == "stopped":
        return row
    return dataclasses.replace(row, state=State.FAILED, message=ended["reason"])


def _table(rows: list[Standing]) -> Any:
    from rich.text import Text

    from sharpen.report import closing, text

    # A run's name is there to be copied: other columns give way first.
    scaled = any(row.best_normalised is not None for row in rows)
    head = (
        "run",
        "state",
        "step",
        "best on val",
        "test",
        *(["normalised"] * scaled),
        "calls",
        "tokens",
        "time",
        "last",
    )
    made = closing.table(*head, left=2)
    made.columns[0].no_wrap = True
    for row in rows:
        step = f"{row.step}/{row.steps}" if row.steps else str(row.step)
        test = text.NOTHING if row.before is None else f"{text.score(row.before)} → {text.score(row.after)}"
        since = None if row.last is None else time.time() - row.last
        normalised = row.best_normalised if row.after_normalised is None else row.after_normalised
        made.add_row(
            row.run, Text(row.state, style=_STYLES[row.state]), step, text.score(row.best), test,
            *([text.score(normalised)] * scaled), text.count(row.calls), text.count(row.tokens), text.clock(row.seconds),
            text.age(since),
        )  # fmt: skip
    return made


def _steps(rows: list[dict[str, Any]]) -> Any:
    from sharpen.report import closing, steps, text

    made = closing.table("\nstep", "\nended", "\nedits", "train\nbatch", "\neffect on val", "gate\nrollouts", left=3)
    for row in rows:
        decision = row["decision"]
        made.add_row(
            str(row["step"]), steps.ended(row), steps.edits(row["edits"], 40), text.score(row["batch_score"]),
            steps.effect(decision), text.NOTHING if decision is None else text.count(decision["rollouts"]),
        )  # fmt: skip
    return made
