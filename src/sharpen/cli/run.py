"""`sharpen run`: carry out a study, or carry it on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sharpen.cli import options
from sharpen.cli.terminal import echo, echo_json, say

RESERVED = ("latest", "eval", "doctor", "explain")
"""The newest run, and folders among the runs in which other commands keep what is theirs."""
SKIPPED = 4
"""The exit code where everything is good but for jobs that need what is not here."""

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sharpen.bench.conductor import Conductor, Told
    from sharpen.bench.layout import RunFolder
    from sharpen.bench.matrix import Planned
    from sharpen.bench.study import StudyConfig
    from sharpen.cli.running import Output


@click.command(no_args_is_help=True)
@click.argument("study")
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--name", metavar="NAME", help="The run's name; one that is there already is carried on.")
@options.reuse_option
@options.pay_again_option
@options.runs_option
@options.output_options
def command(
    study: str,
    overrides: tuple[str, ...],
    name: str | None,
    reuse: tuple[str, ...],
    pay_again: bool,
    runs: Path,
    as_json: bool,
    quiet: bool,
) -> int:
    """Carry out STUDY (a .yaml with tasks, trainers, seeds): every combination as a job of its own.

    The same command again goes on where it stopped: jobs at their end are kept, failed ones are tried again, and new ones
    are added where the study has grown. Any setting can be given as KEY=VALUE, such as parallel=4 or seeds=10. A job that
    needs a package or a program that is not here is skipped, and the exit code is then 4; strict=true makes it an error.
    """
    from sharpen.bench.reuse import sources
    from sharpen.bench.study import load
    from sharpen.cli.running import Output

    sources(reuse, runs)
    config = load(Path(study), overrides)
    config = config.model_copy(update={"reuse": list(dict.fromkeys([*config.reuse, *reuse]))})
    return carry_out(config, folder_for(name or Path(study).stem, runs), Output(as_json, quiet), pay_again=pay_again)


def folder_for(name: str, runs: Path) -> RunFolder:
    """The folder of a study: its name says which, so that the same study finds its jobs again."""
    from sharpen.bench.layout import RunFolder
    from sharpen.bench.study import is_study
    from sharpen.core.errors import UsageError

    if not name or name.startswith(".") or "/" in name:
        raise UsageError(f"a run can't be called {name!r}; a plain name such as ablation-1 can")
    if name in RESERVED:
        raise UsageError(
            f"a run can't be called {name!r}: that means something else here; give another name with --name"
        )
    folder = RunFolder(runs / name)
    try:
        there = folder.config.exists() and not is_study(folder.config)
    except UsageError:  # damaged: it is written anew
        there = False
    if there:
        raise UsageError(
            f"{folder.path} is the run of one training, not of a study: `sharpen resume` carries it on; give this study "
            "another name with --name"
        )
    return folder


def carry_out(study: StudyConfig, folder: RunFolder, output: Output, *, pay_again: bool = False) -> int:
    """Run or resume a study to its end. The exit code is 0 where all is good, 1 where a job failed, 3 where the total budget
    left some undone, 4 where some were skipped."""
    import asyncio

    from sharpen.bench import reuse
    from sharpen.bench.conductor import Conductor
    from sharpen.bench.job_mounts import are_mounts_allowed
    from sharpen.bench.layout import locked, read_json
    from sharpen.bench.matrix import lay_out
    from sharpen.cli.console import console, show
    from sharpen.cli.running import fetch_weights, shown
    from sharpen.cli.terminal import say
    from sharpen.report.study import shown_skipped
    from sharpen.report.text import plural

    matrix = lay_out(study)
    jobs = matrix.checked()
    found = reuse.find(jobs, reuse.sources(study.reuse, folder.path.parent, folder))
    begun = {home.name for home in folder.jobs()}
    taken = {job_id: one.run for job_id, one in found.items() if one.run is not None and job_id not in begun}
    for job in [job for job in jobs if job.job_id not in taken][:1]:
        fetch_weights(job.parts.setup, silent=output.silent)
    for warned in warnings_of(jobs):
        say(f"warning: {warned}")
    conductor = Conductor(study, jobs, folder, _teller(len(jobs), output), matrix.skipped, taken, pay_again=pay_again)
    folder.path.mkdir(parents=True, exist_ok=True)
    with locked(folder.path):
        conductor.lay_out()
        if not output.silent:
            more = f"; {len(taken)} taken over from {', '.join(_names(taken))}" if taken else ""
            say(f"{shown(folder.path)}: {plural(len(jobs), 'job')}, {study.parallel} at a time{more}")
            for one in shown_skipped(matrix.skipped):
                say(one)
            if len(jobs) > 1 and not are_mounts_allowed(folder.path):
                say("this system allows no mounts of one's own: a job could write into another's folder")
            if gone := begun - {job.job_id for job in jobs}:
                say(f"{plural(len(gone), 'job')} that the study no longer has: kept in jobs/, left out of the tables")
        asyncio.run(_run(conductor))
    if conductor.held_back and not output.silent:
        say(f"{plural(conductor.held_back, 'job')} that the budget ended could go on with the new one, and did not yet")
    summary = read_json(folder.path / "summary.json")
    if output.as_json:
        echo_json({"run": str(folder.path), **summary})
    elif output.quiet:
        echo(", ".join(f"{count} {state}" for state, count in summary["counts"].items()))
    else:
        from sharpen.report.study import closing

        show(console(), closing(folder.path))
    return _exit_code(summary["counts"], conductor)


def warnings_of(jobs: Sequence[Planned]) -> list[str]:
    """What a study's jobs warn of, each warning once."""
    from sharpen.bench import uncounted

    said = (uncounted.warning(job.cell.config, job.parts.setup.task) for job in jobs)
    return [warned for warned in dict.fromkeys(said) if warned]


def _names(taken: dict[str, RunFolder]) -> list[str]:
    return list(dict.fromkeys(run.path.name for run in taken.values()))


def _teller(total: int, output: Output) -> Any:
    from sharpen.cli.terminal import say
    from sharpen.report import text

    count = 0

    def tell(told: Told) -> None:
        nonlocal count
        if output.silent or told.state == "running":
            return
        count += 1
        cell, why = told.job.cell, f": {text.short(told.reason, 100)}" if told.reason else ""
        words = f"{cell.task} · {cell.arm} · seed {cell.draw}: {told.state}{why}"
        say(f"[{count}/{total}] {words} ({told.seconds:.1f} s)")

    return tell


async def _run(conductor: Conductor) -> None:
    """Carry the study out; the first Ctrl-C, SIGTERM or SIGHUP lets calls under way finish, the second does not wait."""
    import asyncio

    from sharpen.bench.stop_signals import handle_stop_signals
    from sharpen.engine.gateway import Stopped

    task = asyncio.current_task()
    assert task is not None

    def stop() -> None:
        if conductor.stopping:
            task.cancel()
        else:
            say("stopping: calls under way are finished and stored; Ctrl-C again does not wait for them")
            conductor.stop()

    try:
        with handle_stop_signals(stop):
            await conductor.run()
    except asyncio.CancelledError:
        raise Stopped("stopped; the same command goes on where this stopped") from None


def _exit_code(counts: dict[str, int], conductor: Conductor) -> int:
    if counts.get("failed"):
        return 1
    if conductor.stopping:
        return 130
    if counts.get("not_run") or counts.get("stopped") or conductor.held_back:
        return 3
    return SKIPPED if counts.get("skipped") else 0
