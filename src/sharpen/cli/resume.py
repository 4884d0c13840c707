"""`sharpen resume`: carry on a run where it stopped, give it more budget, or verify that its story can be told again."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sharpen.cli import options, trusting
from sharpen.cli.terminal import echo, echo_json

if TYPE_CHECKING:
    from sharpen.bench.layout import RunFolder
    from sharpen.bench.runner import Parts
    from sharpen.cli.running import Output
    from sharpen.engine.job import Job
    from sharpen.engine.spec import JobSpec


_WORDS = {
    "task_version": "the task's code or metric",
    "splits": "the task's data",
    "candidate": "the skill it starts from",
    "trainer_version": "the trainer's version",
    "params": "the trainer's settings",
    "models": "a model",
    "render": "how the skill is shown to the model",
    "benchmark": "what scores are measured against",
    "seed": "the seed",
}
"""The fields of a job that may change under it, and what they are to a user."""


@click.command()
@click.argument("run", default="latest")
@options.budget_option
@options.pay_again_option
@click.option("--verify", is_flag=True, help="Tell the story of a finished job again, paying for nothing, and compare.")
@trusting.trust_option
@options.runs_option
@options.output_options
def command(
    run: str, budget: str | None, pay_again: bool, verify: bool, trust: bool, runs: Path, as_json: bool, quiet: bool
) -> int:
    """Carry on RUN (a path, a name, or `latest`) where it stopped.

    What is in the ledger is not paid for again; where the ledger has lost something, the run is refused, unless --pay-again
    is given. With --budget, a run that was ended by its budget goes on with the new caps. Checkpoints of a finished run that
    were deleted are made again.
    """
    from sharpen.bench.layout import find_run
    from sharpen.bench.study import is_study
    from sharpen.cli.running import Output, carry_out

    folder = find_run(run, runs)
    caps = options.caps(budget)
    output = Output(as_json, quiet)
    if is_study(folder.config):
        return _resume_study(folder, caps, verify, output, pay_again=pay_again, trust=trust)
    parts = rebuild(folder, caps, trust=trust, ask=not as_json)
    status = _status(folder, parts)
    if verify:
        return _verify(folder, parts, status, output)
    ended = status == "done" or (status == "budget" and caps is None)
    if ended and (folder.job(parts.setup.spec.job_id) / "checkpoints" / "best").exists():
        return _at_its_end(folder, parts, status, output)
    if caps is not None:
        _check_caps(folder, parts, status)
        _keep_config(folder, parts)
    if pay_again:
        parts = dataclasses.replace(parts, how=dataclasses.replace(parts.how, pay_again=True))
    return carry_out(parts, folder, output, more_budget=caps is not None)


def _resume_study(
    folder: RunFolder,
    caps: dict[str, int | float] | None,
    verify: bool,
    output: Output,
    *,
    pay_again: bool,
    trust: bool,
) -> int:
    """Carry on a study from its own snapshot; new caps hold for each of its jobs."""
    from sharpen.bench import study
    from sharpen.bench.layout import RunFolder
    from sharpen.bench.trust import uses
    from sharpen.cli.run import carry_out
    from sharpen.core.errors import UsageError

    if verify:
        raise UsageError(f"{folder.path} is a study; --verify is for the run of one training")
    overrides = [f"budget.{name}={cap}" for name, cap in (caps or {}).items()]
    config = study.load(folder.config, overrides)
    homes = ((cell.config, RunFolder(folder.path, cell.task_key)) for cell in study.cells(config))
    listed = [use for cell, home in homes for use in uses(cell, home)]
    trusting.allow(folder.path, listed, trust=trust, ask=not output.as_json)
    return carry_out(config, folder, output, pay_again=pay_again)


def rebuild(
    folder: RunFolder, caps: dict[str, int | float] | None = None, *, trust: bool = False, ask: bool = True
) -> Parts:
    """The parts of a run from its own snapshot, which must still stand for the job that is there."""
    from sharpen.bench.config import load
    from sharpen.bench.runner import build
    from sharpen.bench.trust import uses
    from sharpen.core.errors import UsageError

    config = load(folder.config, options.settings(budget=caps))
    trusting.allow(folder.path, uses(config, folder), trust=trust, ask=ask)
    parts = build(config, folder, trusted=True)
    jobs = folder.manifest["jobs"]
    if parts.setup.spec.job_id not in jobs:
        changed = _changed(folder, parts.setup.spec) or "a task, a model or a trainer"
        raise UsageError(
            f"{folder.path}: {changed} is not what it was when the run began, so it would be another job; put back what it "
            f"was (the run began with sharpen {folder.manifest.get('sharpen')}), or begin a new run"
        )
    return parts


def _changed(folder: RunFolder, spec: JobSpec) -> str:
    """What a job is now that it was not when it began, in words; empty where that is not known."""
    from sharpen.bench.layout import read_json

    found = []
    now = {name: json.loads(json.dumps(getattr(spec, name))) for name in _WORDS}
    for path in folder.path.glob("jobs/*/job_meta.json"):
        before = read_json(path)
        found += [words for name, words in _WORDS.items() if name in before and before[name] != now[name]]
    return " and ".join(dict.fromkeys(found))


def _status(folder: RunFolder, parts: Parts) -> str:
    """How the job ended; `unfinished` where it did not."""
    from sharpen.bench.artifacts import results
    from sharpen.engine.replay import read_events

    lines = read_events(folder.job(parts.setup.spec.job_id) / "events.jsonl")
    status: str = results(lines)["status"]
    return status


def _check_caps(folder: RunFolder, parts: Parts, status: str) -> None:
    """Refuse caps that would change the record instead of letting the run go on."""
    from sharpen.bench.caps import are_larger, caps_of, read_spent, refuse_late_caps
    from sharpen.bench.config import load
    from sharpen.core.errors import UsageError
    from sharpen.ledger.payments import Paid, account_name, read_accounts

    before, now, job = load(folder.config).budget, parts.config.budget, folder.job(parts.setup.spec.job_id)
    if status == "budget" and not are_larger(now, before):
        had = ", ".join(f"{name}={cap:g}" for name, cap in caps_of(before).items())
        raise UsageError(f"{folder.path} was ended by its budget of {had}; to go on it takes more than that")
    paid = read_accounts(folder.ledger).get(account_name(job, folder.ledger), Paid())
    refuse_late_caps(now, read_spent(job, paid), job)


def _keep_config(folder: RunFolder, parts: Parts) -> None:
    """The new caps hold from now on: a resumed job that is killed must be resumed with the same ones."""
    from sharpen.bench.config import dump
    from sharpen.core.redact import redact
    from sharpen.files import write_atomic

    write_atomic(folder.config, redact(dump(parts.config, parts.trainer.params)))


def _at_its_end(folder: RunFolder, parts: Parts, status: str, output: Output) -> int:
    from sharpen.bench import artifacts
    from sharpen.cli.running import report, shown
    from sharpen.cli.terminal import say

    job = folder.job(parts.setup.spec.job_id)
    artifacts.write(job)
    if not output.silent:
        more = "" if status == "done" else "; give it more with --budget, such as --budget calls=2000"
        words = "is finished: there is nothing to carry on" if status == "done" else "was ended by its budget"
        say(f"{shown(folder.path)} {words}{more}")
    report(folder, job, output)
    return 0 if status == "done" else 3


def _verify(folder: RunFolder, parts: Parts, status: str, output: Output) -> int:
    import asyncio

    from sharpen.bench.read_only import writable
    from sharpen.bench.runner import Session
    from sharpen.cli.running import shown
    from sharpen.core.errors import NotDeterministic, UsageError
    from sharpen.engine.gateway import Stopped

    if status != "done":
        raise UsageError(f"{shown(folder.path)} is not finished ({status}); resume it first, then verify it")
    seen: list[Job] = []
    try:
        with writable(folder) as home:  # a copy, where the run can't be written to
            asyncio.run(Session(parts, home, on_start=lambda job: seen.append(_forbid_calls(job))).run())
    except Stopped:
        raise NotDeterministic(
            f"{shown(folder.path)}: telling the story again would need a model call that is not in the ledger"
        ) from None
    events, paid = len(seen[0].runtime.story.told), seen[0].runtime.gateway.paid_calls
    if output.as_json:
        echo_json({"run": str(folder.path), "events": events, "identical": True, "paid_calls": paid})
    else:
        echo(f"verified: {events} events told again, all identical; {paid} calls paid")
    return 0


def _forbid_calls(job: Job) -> Job:
    job.runtime.gateway.stopping = True
    return job
