"""What a job's own process does: build the job from its configuration, carry it out, and say how it went.

Exit codes: 0 done, 3 ended by its budget, 1 failed with a message in its story and on standard error, 2 it can't be built,
130 stopped. Anybody's code can end a process with any of them, so the story has the last word on 0 and 3. Why it failed is
handed over by itself, in a line; a bug keeps its traceback, which goes to the job's log.
"""

from __future__ import annotations

import asyncio
import dataclasses
import signal
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from sharpen.bench.config import load
from sharpen.bench.layout import JOB_CONFIG, RunFolder
from sharpen.bench.runner import Parts, Session, build
from sharpen.bench.stop_signals import handle_stop_signals
from sharpen.bench.study import task_key
from sharpen.core.errors import SharpenError, UsageError, in_a_line
from sharpen.core.printable import printable
from sharpen.core.redact import redact
from sharpen.engine.gateway import Stopped
from sharpen.engine.job import Job
from sharpen.engine.sharing import share

DONE, FAILED, UNFIT, BUDGET, STOPPED = 0, 1, 2, 3, 130


@dataclass(frozen=True)
class Together:
    """Jobs that run at the same time: how many, and the folder in which they share the limits of their endpoints."""

    jobs: int
    limits: Path


def carry_out(
    run: Path,
    job_id: str,
    *,
    together: Together | None = None,
    tell: Callable[[str], None] = lambda why: None,
    pay_again: bool = False,
) -> int:
    """Carry out one job of a run, from its beginning or from where it stopped. `tell` is told why it did not succeed."""
    try:
        config = load(run / "jobs" / job_id / JOB_CONFIG)
        folder = RunFolder(run, task_key(config.task))
        # Who started the study was asked about its code before the first job.
        parts = build(config, folder, trusted=True, jobs_at_once=together.jobs if together else 1)
        if parts.setup.spec.job_id != job_id:
            raise UsageError(
                f"its configuration now stands for job {parts.setup.spec.job_id}: a task, a model or a trainer has changed"
            )
        if pay_again:
            parts = dataclasses.replace(parts, how=dataclasses.replace(parts.how, pay_again=True))
        status = asyncio.run(_run(parts, folder, together))
    except Stopped:
        tell("told to stop by a signal from outside")
        return STOPPED
    except SharpenError as error:
        tell(redact(str(error)))
        print(printable(redact(str(error))), file=sys.stderr)
        return UNFIT if isinstance(error, UsageError) else FAILED
    except MemoryError:
        tell("out of memory")
        print("the job ran out of memory", file=sys.stderr)
        return FAILED
    except BaseException as error:
        why = redact(in_a_line(error))
        tell(why)
        print(printable(redact(f"{traceback.format_exc()}\n{why}")), file=sys.stderr)
        return FAILED
    return BUDGET if status == "budget" else DONE


async def _run(parts: Parts, folder: RunFolder, together: Together | None) -> str:
    """Carry the job out; SIGTERM lets the calls under way finish, since they are being paid for, and stops it."""

    def listen(job: Job) -> None:
        jobs.append(job)
        job.runtime.gateway.stopping = asked_to_stop.is_set()
        if together is not None:
            for quota in share(job.runtime.gateway.limiters, together.limits):
                shared.callback(quota.close)

    def stop() -> None:
        asked_to_stop.set()
        for job in jobs:
            job.runtime.gateway.stopping = True

    jobs: list[Job] = []
    asked_to_stop = asyncio.Event()
    with ExitStack() as shared, handle_stop_signals(stop, [signal.SIGTERM]):
        try:
            return await Session(parts, folder, on_start=listen).run()
        finally:
            for notice in (notice for job in jobs for notice in job.progress.notices):
                print(notice, file=sys.stderr)
            # The loop waits for its threads when it closes. What the job itself needed of them it has by now; one that
            # somebody's code left running may never end, and ends with the process.
            asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
