"""`sharpen export`: what a training came to, as a skill folder, a plain prompt, or a Python file that asks a model.

The fourth form, `compat`, is not about one candidate: it is the whole job in the files that users of SkillOpt look for.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sharpen.cli import options, trusting
from sharpen.cli.terminal import echo, echo_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sharpen.bench.config import RunConfig
    from sharpen.bench.export import Origin
    from sharpen.bench.layout import RunFolder
    from sharpen.cli.finding import Found
    from sharpen.core.errors import UsageError
    from sharpen.core.task import Task

FORMS = ("skill", "prompt", "python", "compat")


@click.command(no_args_is_help=True)
@click.argument("job")
@click.option("--as", "form", type=click.Choice(FORMS), default="skill", help="The form; `skill` is the default.")
@click.option("--which", default="best", metavar="C", help="best (the default), final, or a step such as step_0003.")
@click.option(
    "--to", type=click.Path(path_type=Path, file_okay=False), default=Path("exported"), metavar="DIR",
    help="Where it is put; `exported` is the default.",
)  # fmt: skip
@click.option("--name", metavar="N", help="What it is called: lower-case letters, digits and hyphens.")
@click.option("--description", metavar="D", help="What it does and when to use it, in a sentence.")
@click.option("--force", is_flag=True, help="Write over what is there.")
@trusting.trust_option
@options.runs_option
@options.json_option
def command(
    job: str, form: str, which: str, to: Path, force: bool, trust: bool, runs: Path, as_json: bool, **given: Any
) -> int:
    """Export what JOB (a run, or the folder of one of its jobs) has learned. Of one that still runs: the best so far."""
    from sharpen.bench.config import load
    from sharpen.bench.export import Label, choose, origin, prompt, skill_folder
    from sharpen.bench.recorded_items import recorded_description
    from sharpen.bench.reopening import home_of
    from sharpen.cli.finding import find, must_be_text
    from sharpen.core.errors import UsageError
    from sharpen.engine import checkpoints
    from sharpen.engine.replay import read_events

    found = find(job, runs)
    folder = _one_of(found)
    lines = read_events(folder / "events.jsonl")
    if not lines:
        raise UsageError(f"nothing has happened yet in {folder}")
    must_be_text(folder, lines, "export writes texts")
    if form == "compat":
        return _compat(found, to, {"which": None if which == "best" else which, **given}, force=force, as_json=as_json)
    home = home_of(found.run, folder)
    config = load(home.config)
    made = origin(lines, choose(lines, which), config.models.target)
    if which == "best" and not made.finished and made.step == 0:
        raise _nothing_learned(folder, lines, runs)
    candidate = checkpoints.load(folder / checkpoints.FOLDER / checkpoints.safe_part(made.checkpoint))
    label = Label(given["name"], given["description"])
    if form == "python":
        from sharpen.bench.snippet import asking, python_file

        task = _task(config, home.run, trust=trust, ask=not as_json)
        how = asyncio.run(asking(task, candidate, made.render))
        files = python_file(how, made, label, lines[0]["models"], task.brief.description)
    else:
        form_of = skill_folder if form == "skill" else prompt
        files = form_of(candidate, made, label, recorded_description(config.task, home.run))
    _write(to, files, force=force)
    _show(to, files, made, which, as_json)
    return 0


def _one_of(found: Found) -> Path:
    """The job that is meant; of a study with several, which there are is told in words."""
    from sharpen.core.errors import UsageError

    if len(found.jobs) < 2:
        return found.only()
    about, lines = found.run.manifest["jobs"], []
    for job in found.jobs:
        row = about.get(job.name, {})
        repeat = f", repeat {row['repeat']}" if row.get("repeat") else ""
        words = (
            f"{row['task']}, {row.get('arm', row['trainer'])}, seed {row['seed']}{repeat}" if row else "no longer in it"
        )
        lines.append(f"  {job}  {words}")
    raise UsageError("\n".join([f"{found.run.path} has {len(lines)} jobs; name one of them:", *lines]))


def _nothing_learned(folder: Path, lines: Sequence[dict[str, Any]], runs: Path) -> UsageError:
    """What to say of a job that did not come to its end and has nothing but the text it started from."""
    from sharpen.bench.artifacts import results
    from sharpen.cli.running import called, shown
    from sharpen.core.errors import UsageError
    from sharpen.engine.checkpoints import METADATA

    why = results(lines)["message"]
    finished = sorted(runs.glob(f"*/jobs/*/checkpoints/best/{METADATA}"), key=lambda path: path.stat().st_mtime)
    others = [shown(path.parents[2]) for path in reversed(finished[-3:])]
    return UsageError(
        f"{shown(folder)} has nothing to export: it is not at its end{f' ({why})' if why else ''}, and no change was "
        f"accepted so far. `{called()} resume {shown(folder.parents[1])}` carries it on; --which step_0000 exports the text "
        f"it started from. Jobs with a best: {', '.join(others) or 'none yet'}"
    )


def _compat(found: Found, to: Path, given: dict[str, str | None], *, force: bool, as_json: bool) -> int:
    """The whole job in classic files. Items and answers are in them where the task and the ledger are at hand."""
    from sharpen.bench.compat import files, open_source
    from sharpen.bench.config import load
    from sharpen.bench.recorded_items import recorded_splits
    from sharpen.bench.reopening import home_of
    from sharpen.cli.running import shown
    from sharpen.cli.terminal import say
    from sharpen.core.errors import UsageError

    unfit = [f"--{name}" for name, value in given.items() if value is not None]
    if unfit:
        raise UsageError(f"{', '.join(unfit)} can't be combined with --as compat, which writes the whole job")
    home = home_of(found.run, found.only())
    config = load(home.config)
    try:
        splits = recorded_splits(config.task, home.run)
    except UsageError as error:
        splits = None
        say(f"the items can't be had here, so items have no texts and some have no ids: {error}")
    models = {"target": config.models.target, "optimizer": config.models.optimizer, "judge": config.models.judge}
    with open_source(found.only(), found.run.ledger, splits, models) as source:
        texts = files(source)
    if splits is not None and source.splits is None:
        say("the task has changed since, so items have no texts and some have no ids")
    _write(to, texts, force=force)
    ended = source.lines[-1]["type"] == "job_ended"
    if as_json:
        echo_json({"files": [str(to / name) for name in texts], "finished": ended})
        return 0
    if not ended:
        say("the job is not at its end: this is what there is so far")
    echo(f"{shown(to)}: {len(texts)} files; begin with summary.json and history.json")
    return 0


def _task(config: RunConfig, run: RunFolder, *, trust: bool, ask: bool) -> Task:
    """The job's task, which knows how it asks: code of its own is run only where that is allowed."""
    from sharpen.bench.recorded_items import recorded_task
    from sharpen.bench.runner import make_task
    from sharpen.bench.trust import RUNS, TASK, task_uses

    if all((use.action, use.setting) != (RUNS, TASK) for use in task_uses(config.task, run)):
        return recorded_task(config.task, run)
    trusting.allow(run.path, task_uses(config.task, run), trust=trust, ask=ask)
    return make_task(config.task, run.data)


def _write(to: Path, files: dict[str, str], *, force: bool) -> None:
    from sharpen.cli.running import shown
    from sharpen.core.errors import UsageError
    from sharpen.files import write_atomic

    there = [name for name in files if (to / name).exists()]
    if there and not force:
        raise UsageError(f"{shown(to / there[0])} is there already; --force writes over it, --to or --name avoids it")
    for name, text in files.items():
        write_atomic(to / name, text)


def _show(to: Path, files: dict[str, str], made: Origin, which: str, as_json: bool) -> None:
    from sharpen.cli.running import shown
    from sharpen.cli.terminal import say

    if as_json:
        written = [str(to / name) for name in files]
        echo_json({"files": written, "origin": made.facts(), "trained": made.step > 0})
        return
    if which == "best" and not made.finished:
        say(f"the job is not at its end: this is the best so far, of step {made.step}")
    if which == "best" and made.step == 0:
        say("nothing has proven better than the start: this is the text training began with")
    for name in files:
        echo(shown(to / name))
    for topic, words in made.facts().items():
        if topic != "sharpen":
            echo(f"  {topic:<12}{words}")
