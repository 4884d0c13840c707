"""Opening a job: its ledger, its story, its models and its budget, brought up together and let go of together."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sharpen.core.candidate import Candidate
from sharpen.core.digest import Json
from sharpen.core.redact import redact
from sharpen.core.task import Splits, Task
from sharpen.engine.budget import Budget, Caps
from sharpen.engine.durability import Syncing, open_record
from sharpen.engine.gateway import Gateway
from sharpen.engine.job import Job, Progress, Runtime
from sharpen.engine.replay import Story
from sharpen.engine.retry import Retry, RetryPolicy
from sharpen.engine.rollouts import Sampling
from sharpen.engine.shelf import Retention
from sharpen.engine.spec import JobSpec
from sharpen.ledger.payments import account_name
from sharpen.ledger.store import Ledger
from sharpen.models.base import Model


@dataclass(frozen=True)
class Setup:
    """What a job works on. `spec` says what decides its result; `how` says how it is run."""

    spec: JobSpec
    task: Task
    splits: Splits
    initial: Candidate
    models: Mapping[str, Model]
    sampling: Sampling


@dataclass(frozen=True)
class How:
    """How a job is run; none of it may change a result, except that a cap ends it."""

    caps: Caps = field(default_factory=Caps)
    workers: int = 64
    max_failures: float = 0.1
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    keep: Retention | None = None
    sync_seconds: float = 1.0
    """After so many seconds at the latest, what was paid for is on the disk."""
    pay_again: bool = False
    """Whether what the ledger has lost may be paid for again."""


EVENTS = "events.jsonl"


@asynccontextmanager
async def open_job(setup: Setup, folder: Path, ledger_path: Path, how: How) -> AsyncIterator[Job]:
    """A job that is ready to run, in `folder`. Its models are open while the context lasts."""
    began = time.monotonic()
    before = 0.0

    def elapsed() -> float:
        return before + time.monotonic() - began

    def clock() -> dict[str, Json]:
        return {"at": round(time.time(), 3), "elapsed": round(elapsed(), 3)}

    progress = Progress()

    def note_retry(retry: Retry) -> None:
        progress.retries += 1
        progress.last_retry = redact(str(retry.error))

    story = Story(folder / EVENTS, clock, progress.notices.append)
    before = max((line["clock"].get("elapsed", 0.0) for line in story.told), default=0.0)
    opened: list[Model] = []
    try:
        open_record(folder, story, ledger_path, pay_again=how.pay_again)
        with Ledger(ledger_path) as ledger:
            account = account_name(folder, ledger_path)
            budget = Budget(how.caps, lambda: 0.0 if story.replaying else elapsed(), paid=ledger.paid(account))
            gateway = Gateway(
                setup.models, ledger, budget,
                policy=how.retry, on_retry=note_retry, repeat=setup.spec.repeat, account=account,
            )  # fmt: skip
            runtime = Runtime(gateway, ledger, story, budget, how.workers, how.max_failures, how.keep)
            job = Job(setup.spec, setup.task, setup.splits, setup.initial, folder, setup.sampling, runtime, progress)
            syncing = Syncing(folder, story, ledger, lambda: budget.spent, seconds=how.sync_seconds)
            try:
                for model in setup.models.values():
                    await model.open()
                    opened.append(model)
                yield job
            finally:
                try:
                    for model in opened:
                        await model.close()
                finally:
                    await syncing.finish()
    finally:
        story.close()
