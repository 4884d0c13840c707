"""Carrying out a run for somebody at a terminal: progress, Ctrl-C, the report at the end, the exit code.

The first Ctrl-C (or SIGTERM, or SIGHUP) lets the calls under way finish, since they are being paid for, and stops; the
second one does not wait for them. Either way everything that was answered is in the ledger, and the run can be resumed.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from sharpen.bench import uncounted
from sharpen.bench.layout import RunFolder, read_json
from sharpen.bench.runner import Parts, Session
from sharpen.bench.stop_signals import handle_stop_signals
from sharpen.cli import live
from sharpen.cli.console import console, show
from sharpen.cli.terminal import echo_json, say
from sharpen.core.candidate import Candidate
from sharpen.core.errors import SharpenError, StorageError, UsageError
from sharpen.core.task import SPLITS
from sharpen.engine import checkpoints
from sharpen.engine.gateway import Stopped
from sharpen.engine.job import Job
from sharpen.engine.opening import Setup
from sharpen.report import closing
from sharpen.tasks.textual import TextTask

T = TypeVar("T")

_EXIT = {"done": 0, "budget": 3}


@dataclass(frozen=True)
class Output:
    as_json: bool = False
    quiet: bool = False

    @property
    def silent(self) -> bool:
        return self.as_json or self.quiet


class RunEnded(SharpenError):
    """What stopped a run, with the command that carries it on."""

    def __init__(self, cause: SharpenError, hint: str) -> None:
        super().__init__(f"{cause}\n{hint}")
        self.exit_code = cause.exit_code


def carry_out(parts: Parts, folder: RunFolder, output: Output, *, more_budget: bool = False) -> int:
    """Run or resume a job to its end, show what it came to, and return the exit code."""
    if warned := uncounted.warning(parts.config, parts.setup.task):
        say(f"warning: {warned}")
    if not output.silent:
        say(introduction(parts, folder))
    fetch_weights(parts.setup, silent=output.silent)
    display = live.choose(console(err=True), silent=output.silent)
    resume = f"{called()} resume {shown(folder.path)}"
    try:
        status = asyncio.run(_run(parts, folder, display, more_budget))
    except Stopped:
        raise RunEnded(Stopped("stopped; everything answered so far is stored"), f"carry on with: {resume}") from None
    except UsageError:
        raise
    except StorageError as error:  # it says itself what is stored
        raise RunEnded(error, f"once that is fixed, carry on with: {resume}") from error
    except SharpenError as error:
        raise RunEnded(error, f"what was paid for is stored; once that is fixed, carry on with: {resume}") from error
    finally:
        display.close()
    report(folder, folder.job(parts.setup.spec.job_id), output)
    return _EXIT[status]


def report(folder: RunFolder, job: Path, output: Output) -> None:
    """Show what a job came to, from its files."""
    results = read_json(job / "results.json")
    if output.as_json:
        echo_json({"run": str(folder.path), "job": str(job), **results})
        return
    out = console()
    if output.quiet:
        sentence = closing.verdict(results)
        out.print(sentence if sentence is not None else f"ended: {results['status']}", soft_wrap=True)
        return
    show(out, closing.closing(results, place(folder, job), best_skill(job)))


def place(folder: RunFolder, job: Path) -> closing.Place:
    return closing.Place(folder.path, job, called())


def called() -> str:
    """How this program can be called from here: by its name where the shell finds it, else as it was called just now."""
    program = Path(sys.argv[0])
    return shown(program) if program.name == "sharpen" and shutil.which("sharpen") is None else "sharpen"


def best_skill(job: Path) -> Candidate | None:
    """The best checkpoint of a job, if it is at its end, else the newest one."""
    saved = sorted((job / "checkpoints").glob("step_*"))
    best = job / "checkpoints" / "best"
    path = best if best.exists() else saved[-1] if saved else None
    return None if path is None else checkpoints.load(path)


def introduction(parts: Parts, folder: RunFolder) -> str:
    """What is about to be done."""
    config, setup = parts.config, parts.setup
    sizes = ", ".join(f"{len(setup.splits[name])} {name}" for name in SPLITS)
    longest = f", answers up to {setup.task.max_tokens} tokens" if isinstance(setup.task, TextTask) else ""
    target = f"model {config.models.target} ({setup.spec.render}{longest})" if "target" in setup.models else "no model"
    models = [target]
    if config.models.optimizer is not None:
        models.append(f"optimizer {config.models.optimizer}")
    return (
        f"{setup.task.name} ({sizes}) · {setup.spec.trainer} · {', '.join(models)} · seed {config.seed}\n"
        f"run {shown(folder.path)}, job {setup.spec.job_id}"
    )


def fetch_weights(setup: Setup, *, silent: bool) -> None:
    """Have the embedded model's weights here before anything starts: the first time takes a while, and says so."""
    if any(model.family == "local" for model in setup.models.values()):
        from sharpen.models.weights import locate

        locate(progress=None if silent else say)


def shown(path: Path) -> str:
    """A path as short as it can be typed from here."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


async def _run(parts: Parts, folder: RunFolder, display: live.Display, more_budget: bool) -> str:
    setup = parts.setup
    # Usually the start and the best are tested and confirmed; the trainer's own bound also allows for a third candidate.
    closing_calls = (2 * len(setup.splits.test) + len(setup.splits.val)) * setup.task.calls_per_rollout
    return await watched(
        display, closing_calls, lambda begin: Session(parts, folder, on_start=begin).run(more_budget=more_budget)
    )


async def watched(
    display: live.Display, closing_calls: int, work: Callable[[Callable[[Job], None]], Awaitable[T]]
) -> T:
    """Do some work that tells when its job begins, with the job on display and the keyboard in charge of it."""
    started: list[Job] = []
    watch = live.Watch(display, closing_calls)

    def begin(job: Job) -> None:
        started.append(job)
        watch.start(job)

    with stopping_on_signals(started, display):
        try:
            return await work(begin)
        finally:
            await watch.stop()


@contextmanager
def stopping_on_signals(started: list[Job], display: live.Display) -> Iterator[None]:
    """Ctrl-C, SIGTERM and SIGHUP stop the job gently, and at once the second time or before the job has begun."""
    task = asyncio.current_task()
    assert task is not None

    def stop() -> None:
        if not started or started[0].runtime.gateway.stopping:
            task.cancel()
            return
        started[0].runtime.gateway.stopping = True
        display.line("stopping: the calls under way are finished and stored; Ctrl-C again does not wait for them")

    with handle_stop_signals(stop):
        try:
            yield
        except asyncio.CancelledError:
            raise Stopped("stopped") from None
