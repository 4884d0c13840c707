"""Carrying out a study: which job starts when, what becomes of it, and what the run's folder says about it at any time.

Jobs start in the order of the matrix, `parallel` at a time, each in processes of its own (`processes.py`). One that crashes,
is killed or runs out of time is a failed job with a reason; the others go on. A job that is at its end is never run again;
one that failed is, when the study is carried out again. What the whole study may spend is kept by reserving each job's cap
before it starts; what jobs have paid is taken from the ledger, which has it even of one that was killed.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sharpen.bench import artifacts, layout, reuse, story, strict_yaml, trust
from sharpen.bench.artifacts import results
from sharpen.bench.caps import are_larger, caps_of, read_spent, refuse_late_caps
from sharpen.bench.config import BudgetConfig, dump, understood
from sharpen.bench.job_process import BUDGET, DONE, STOPPED, Together
from sharpen.bench.layout import JOB_CONFIG, RunFolder
from sharpen.bench.matrix import Planned, Skipped
from sharpen.bench.processes import Ended, Order, nursery
from sharpen.bench.runner import write_material
from sharpen.bench.study import StudyConfig
from sharpen.bench.study import dump as dump_study
from sharpen.bench.tables import PROCESS, job_payments, write_tables
from sharpen.bench.withheld import Withheld
from sharpen.core.digest import Json
from sharpen.core.redact import redact
from sharpen.engine.durability import check_ledger, cut_damaged_end
from sharpen.engine.opening import EVENTS
from sharpen.engine.replay import reopen
from sharpen.files import TEMPORARY, sweep, write_atomic, write_json
from sharpen.ledger.payments import Paid, account_name, read_accounts
from sharpen.ledger.store import Ledger

FINISHED = ("done", "budget")
_DAMAGED = "damaged"
_LOG = "stdout.log"
_SHOWN = 400
_TABLES_EVERY = 2.0
_TABLES_SHARE = 0.01
"""Of the time a study takes, the most that goes into tables while it runs: they grow with the study."""


@dataclass(frozen=True)
class Told:
    """Something happened to a job, for people to see. `state` is running, or how it ended."""

    job: Planned
    state: str
    reason: str = ""
    seconds: float = 0.0


@dataclass
class Conductor:
    """One carrying out of a study. `on_news` is told when a job starts and ends; `skipped` are cells that have a row and no
    job; `taken` are the runs that jobs are taken over from, by job id."""

    study: StudyConfig
    jobs: Sequence[Planned]
    folder: RunFolder
    on_news: Callable[[Told], None] = lambda told: None
    skipped: Sequence[Skipped] = ()
    taken: Mapping[str, RunFolder] = field(default_factory=dict)
    pay_again: bool = False
    """Whether jobs may pay again for what the ledger has lost."""
    stopping: bool = False
    _reserved: dict[str, dict[str, float]] = field(default_factory=dict)
    _rows: dict[str, dict[str, Json]] = field(default_factory=dict)
    _grown: set[str] = field(default_factory=set)
    """Jobs that were ended by their budget, have a larger one now, and have not gone on yet."""
    _configs: dict[str, str] = field(default_factory=dict)
    """Each job's configuration, as it is written when the job starts."""
    _spent: dict[str, dict[str, float]] = field(default_factory=dict)
    _shared: Together | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a job has ended that the tables do not tell of yet."""

    def lay_out(self) -> None:
        """Write what must be there before the first job starts. What is there already and still holds is left alone."""
        self._refuse_late_caps()
        for folder in ("meta", "tasks"):
            sweep(self.folder.path / folder)
        sweep(self.folder.path, inside=False)
        records = {job.job_id: job.record() for job in self.jobs} | {one.row_id: one.record() for one in self.skipped}
        self.folder.write_meta(dump_study(self.study), records)
        self.folder.write_manifest(records, tags=list(self.study.tags))
        self._take_over()
        withheld = Withheld()
        allowed: list[trust.Use] = []
        for job in self.jobs:
            config, parts = job.cell.config, job.parts
            home = RunFolder(self.folder.path, job.cell.task_key)
            write_material(parts, home)
            allowed += [*trust.uses(config, home), *trust.uses(understood(config, parts.trainer.params), home)]
            path = self.folder.job(job.job_id) / JOB_CONFIG
            self._configs[job.job_id] = withheld.hide(dump(config, parts.trainer.params))
            ended_by = _budget_of(path) if path.exists() else config.budget
            state = self.state_of(job) if ended_by != config.budget else ""
            if state in FINISHED:
                # The caps it came to its end with stay on record until it goes on: whether it may is told by them.
                kept = config.model_copy(update={"budget": ended_by})
                write_atomic(path, withheld.hide(dump(kept, parts.trainer.params)))
                if state == "budget" and are_larger(config.budget, ended_by):
                    self._grown.add(job.job_id)
            else:
                write_atomic(path, self._configs[job.job_id])
        trust.remember(allowed)
        withheld.hand_over()
        self.folder.sync()

    def _refuse_late_caps(self) -> None:
        """Refuse caps that are lower than what a job that is to go on has used, before anything is changed."""
        paid = read_accounts(self.folder.ledger)
        for job in self.jobs:
            home, budget = self.folder.job(job.job_id), job.cell.config.budget
            if not (home / JOB_CONFIG).exists() or _budget_of(home / JOB_CONFIG) == budget:
                continue
            if self.state_of(job) not in (*FINISHED, _DAMAGED):
                refuse_late_caps(
                    budget, read_spent(home, paid.get(account_name(home, self.folder.ledger), Paid())), home
                )

    def _take_over(self) -> None:
        """Take jobs over that another run has finished and that have not begun here."""
        if self.taken:
            sweep(self.folder.path / "jobs")
        for job_id, source in self.taken.items():
            if not (self.folder.job(job_id) / EVENTS).exists():
                reuse.take_over(job_id, source, self.folder)

    @property
    def held_back(self) -> int:
        """How many jobs could go on with the budget they have now, and have not."""
        return len(self._grown)

    async def run(self) -> None:
        """Carry out every job that is not at its end. One whose story is damaged is told of and left as it is."""
        for job in self.jobs:
            cut_damaged_end(self.folder.job(job.job_id) / EVENTS)
        states = {job.job_id: self.state_of(job) for job in self.jobs}
        left = (*FINISHED, _DAMAGED)
        queue = [job for job in self.jobs if states[job.job_id] not in left or job.job_id in self._grown]
        self._note_spending()
        for job in self.jobs:
            if states[job.job_id] == _DAMAGED:
                self.on_news(Told(job, "failed", story.read(self.folder.job(job.job_id)).damage))
        write_tables(self.folder, self._rows)
        if not queue:
            return
        self._check_ledger(queue)
        # Whoever closes a ledger last folds its log and waits for the disk: that need not be every job.
        with (
            Ledger(self.folder.ledger) as ledger,
            self._together(min(self.study.parallel, len(queue))),
        ):
            await self._work_off(queue, ledger)

    def _check_ledger(self, queue: Sequence[Planned]) -> None:
        """Refuse to go on with a ledger that has lost what jobs were paid for, before it is opened and grows."""
        if self.pay_again:
            return
        for job in queue:
            home = self.folder.job(job.job_id)
            if not reuse.reused_from(home):  # one that is begins anew
                check_ledger(home, self.folder.ledger, story.read(home).lines)

    async def _work_off(self, queue: list[Planned], ledger: Ledger) -> None:
        async with nursery(_modules(self.jobs)) as home:
            self._stop = home.stop_gently
            running: set[asyncio.Task[None]] = set()
            tables = asyncio.create_task(self._keep_up(ledger))
            try:
                while queue or running:
                    while queue and len(running) < self.study.parallel and self._room_for(queue[0]):
                        job = queue.pop(0)
                        self._reserved[job.job_id] = caps_of(self.study.budget)  # before the next one is looked at
                        running.add(asyncio.create_task(self._carry_out(job, home.carry_out)))
                    if not running:
                        break
                    done, _ = await asyncio.wait({*running, tables}, return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        task.result()
                    running -= done
            finally:
                for task in (*running, tables):
                    task.cancel()
                await asyncio.gather(*running, tables, return_exceptions=True)  # the first has been raised
                write_tables(self.folder, self._rows)

    def stop(self) -> None:
        """Start no more jobs, and let those under way finish the calls they are paying for."""
        self.stopping = True
        stop = getattr(self, "_stop", None)
        if stop is not None:
            stop()

    def state_of(self, job: Planned) -> str:
        """How a job stands by its own story: done, budget, failed, unfinished or damaged."""
        told = story.read(self.folder.job(job.job_id))
        status: str = _DAMAGED if told.damage else results(told.lines)["status"]
        return status

    def _let_go_on(self, job_id: str) -> None:
        """Open the story of a job that its budget ended. First that, then its new caps: killed in between, it is a job that
        is not at its end."""
        folder = self.folder.job(job_id)
        if reuse.reused_from(folder):  # what it paid for is in another ledger, so it begins anew
            (folder / EVENTS).unlink()
            shutil.rmtree(folder)
        else:
            (folder / PROCESS).unlink(missing_ok=True)  # how it ended then is not how it stands now
            reopen(folder / EVENTS, more_budget=True)
        write_atomic(folder / JOB_CONFIG, self._configs[job_id])
        self._grown.discard(job_id)
        self._rows.pop(job_id, None)

    @contextmanager
    def _together(self, jobs: int) -> Iterator[None]:
        """While inside, jobs share what their endpoints allow, where several run at once."""
        if jobs == 1:
            yield
            return
        with tempfile.TemporaryDirectory(dir=self.folder.path, prefix=".limits.", suffix=TEMPORARY) as folder:
            self._shared = Together(jobs, Path(folder))
            yield

    async def _keep_up(self, ledger: Ledger) -> None:
        """Write the tables again soon after a job has ended, but not so often that it takes longer than the jobs do. The
        ledger's log, which no small job finds large, is looked after then too."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            began = time.monotonic()
            write_tables(self.folder, self._rows)
            ledger.fold()
            await asyncio.sleep(max(_TABLES_EVERY, (time.monotonic() - began) / _TABLES_SHARE))

    async def _carry_out(self, job: Planned, start: Callable[[Order], Any]) -> None:
        folder = self.folder.job(job.job_id)
        if job.job_id in self._grown:
            self._let_go_on(job.job_id)
        limits = (self.study.timeout, self.study.memory)
        order = Order(self.folder.path, job.job_id, folder / _LOG, self._shared, *limits, pay_again=self.pay_again)
        self.on_news(Told(job, "running"))
        began = time.monotonic()
        ended: Ended = await start(order)
        seconds = time.monotonic() - began
        state, reason = self._outcome(job, ended)
        about = {"state": state, "reason": reason, "code": ended.code, "signal": ended.signal}
        clock = {"seconds": round(seconds, 3), "cpu": round(ended.cpu, 3), "memory_kb": ended.memory, "at": time.time()}
        write_json(folder / PROCESS, {"schema_version": layout.SCHEMA_VERSION, **about, "clock": clock})
        # It may have had no time to say what it came to.
        if (state not in FINISHED or ended.code not in (DONE, BUDGET)) and not story.read(folder).damage:
            artifacts.write(folder)
        del self._reserved[job.job_id]
        self._note_spending(job.job_id)
        if state not in (*FINISHED, "stopped") and self.study.fail_fast:
            self.stopping = True
        self._changed.set()
        self.on_news(Told(job, state, reason, seconds))

    def _outcome(self, job: Planned, ended: Ended) -> tuple[str, str]:
        """How a job ended, and why. An exit code can be anybody's: that a job is at its end, only its story says."""
        told = self.state_of(job)
        if told in FINISHED:
            return told, "its budget was used up" if told == "budget" else ""
        # A job that has only just begun does not listen yet: asked to stop, it simply ends.
        if self.stopping and (ended.code == STOPPED or ended.signal in (signal.SIGTERM, signal.SIGUSR1)):
            return "stopped", "stopped from the keyboard"
        if ended.reason.startswith("killed: it took"):
            return "timeout", ended.reason
        home = self.folder.job(job.job_id)
        why = story.read(home).damage or ended.why or ended.reason
        if not why:
            last = _last_words(home / _LOG)
            why = f"its process ended with exit code {ended.code} before the job did"
            why += f"; the last it printed: {last}" if last else ""
        return "failed", redact(why)[:_SHOWN]

    def _note_spending(self, ended: str | None = None) -> None:
        """Take down what the job that has `ended` has spent, or what all have, those that the study no longer has too. A job
        that was killed had no time to say so; the ledger has it."""
        if not caps_of(self.study.total):
            return
        paid = job_payments(self.folder)
        for job_id in {job.job_id for job in self.jobs} | set(paid) if ended is None else {ended}:
            home = self.folder.job(job_id)
            if not reuse.reused_from(home):
                self._spent[job_id] = read_spent(home, paid.get(job_id, Paid()))

    def _room_for(self, job: Planned) -> bool:
        """Whether a job may start: nobody wants to stop, and its cap fits into what the whole study may still spend."""
        if self.stopping:
            return False
        wanted = caps_of(self.study.budget)
        for name, cap in caps_of(self.study.total).items():
            running = self._reserved
            spent = {other: used.get(name, 0.0) for other, used in self._spent.items() if other not in running}
            # A job's cap holds for all its sessions: what it has paid is part of what it may still come to.
            most = max(wanted.get(name, 0.0), spent.pop(job.job_id, 0.0))
            reserved = sum(max(caps.get(name, 0.0), self._paid_by(other, name)) for other, caps in running.items())
            if sum(spent.values()) + reserved + most > cap:
                return False
        return True

    def _paid_by(self, job_id: str, name: str) -> float:
        return self._spent.get(job_id, {}).get(name, 0.0)


def _modules(jobs: Sequence[Planned]) -> list[str]:
    """Our own modules that jobs will need. What others wrote may start threads or worse, and is left to the jobs."""
    parts = [job.parts for job in jobs]
    used = {
        type(made).__module__ for one in parts for made in (one.trainer, one.setup.task, *one.setup.models.values())
    }
    return sorted(name for name in used if name.startswith("sharpen."))


def _budget_of(path: Path) -> BudgetConfig:
    """The caps a job's configuration had; the rest of it need not be readable any more."""
    return BudgetConfig.model_validate(strict_yaml.parse(path.read_text(encoding="utf-8"), str(path))["budget"])


def _last_words(log: Path) -> str:
    """The last line a job printed that says something."""
    if not log.exists():
        return ""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return lines[-1][:_SHOWN] if lines else ""
