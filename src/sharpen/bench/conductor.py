"""Carrying out a study: which job starts when, what becomes of it, and what the run's folder says about it at any time.

Jobs start in the order of the matrix, `parallel` at a time, each in processes of its own (`processes.py`). One that crashes,
is killed or runs out of time is a failed job with a reason; the others go on. A job that is at its end is never run again;
one that failed is, when the study is carried out again. What the whole study may spend is kept by reserving each job's cap
before it starts.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sharpen.bench import layout
from sharpen.bench.artifacts import results
from sharpen.bench.config import BudgetConfig, dump, load
from sharpen.bench.job_process import BUDGET, DONE, STOPPED
from sharpen.bench.layout import JOB_CONFIG, RunFolder
from sharpen.bench.matrix import Planned
from sharpen.bench.processes import Ended, Order, nursery
from sharpen.bench.study import StudyConfig
from sharpen.bench.study import dump as dump_study
from sharpen.bench.tables import PROCESS, write_tables
from sharpen.core.digest import Json
from sharpen.core.redact import redact
from sharpen.engine import checkpoints
from sharpen.engine.replay import read_events
from sharpen.files import write_atomic, write_json
from sharpen.tasks.datatask import DataTask

FINISHED = ("done", "budget")
_LOG = "stdout.log"
_SHOWN = 400


@dataclass(frozen=True)
class Told:
    """Something happened to a job, for people to see. `state` is running, or how it ended."""

    job: Planned
    state: str
    reason: str = ""
    seconds: float = 0.0


@dataclass
class Conductor:
    """One carrying out of a study. `on_news` is told when a job starts and ends."""

    study: StudyConfig
    jobs: Sequence[Planned]
    folder: RunFolder
    on_news: Callable[[Told], None] = lambda told: None
    stopping: bool = False
    _reserved: dict[str, dict[str, float]] = field(default_factory=dict)
    _rows: dict[str, dict[str, Json]] = field(default_factory=dict)
    _grown: set[str] = field(default_factory=set)
    """Jobs that were ended by their budget and have a larger one now."""

    def lay_out(self) -> None:
        """Write what must be there before the first job starts. What is there already and still holds is left alone."""
        records = {job.job_id: job.record() for job in self.jobs}
        self.folder.write_meta(dump_study(self.study), records)
        self.folder.write_manifest(records, tags=list(self.study.tags))
        for job in self.jobs:
            config, parts = job.cell.config, job.parts
            home = RunFolder(self.folder.path, job.cell.task_key)
            task = parts.setup.task
            if isinstance(task, DataTask) and not home.data.exists():
                task.write(home.data)
            if config.task.skill is not None and not home.skill.exists():
                for part, text in parts.setup.initial.parts.items():
                    write_atomic(home.skill / checkpoints.safe_part(part), text)
            path = self.folder.job(job.job_id) / JOB_CONFIG
            if path.exists() and _larger(config.budget, load(path).budget) and self.state_of(job) == "budget":
                self._grown.add(job.job_id)
            write_atomic(path, redact(dump(config, parts.trainer.params)))

    async def run(self) -> None:
        """Carry out every job that is not at its end."""
        states = {job.job_id: self.state_of(job) for job in self.jobs}
        queue = [job for job in self.jobs if states[job.job_id] not in FINISHED or job.job_id in self._grown]
        write_tables(self.folder, self._rows)
        if not queue:
            return
        async with nursery() as home:
            self._stop = home.stop_gently
            running: set[asyncio.Task[None]] = set()
            try:
                while queue or running:
                    while queue and len(running) < self.study.parallel and self._room_for(queue[0]):
                        running.add(asyncio.create_task(self._carry_out(queue.pop(0), home.carry_out)))
                    if not running:
                        break
                    done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        task.result()
            finally:
                for task in running:
                    task.cancel()
                if running:
                    await asyncio.wait(running)
                write_tables(self.folder, self._rows)

    def stop(self) -> None:
        """Start no more jobs, and let those under way finish the calls they are paying for."""
        self.stopping = True
        stop = getattr(self, "_stop", None)
        if stop is not None:
            stop()

    def state_of(self, job: Planned) -> str:
        """How a job stands by its own story: done, budget, failed or unfinished."""
        lines = read_events(self.folder.job(job.job_id) / "events.jsonl")
        status: str = results(lines)["status"]
        return status

    async def _carry_out(self, job: Planned, start: Callable[[Order], Any]) -> None:
        folder = self.folder.job(job.job_id)
        order = Order(
            self.folder.path,
            job.job_id,
            folder / _LOG,
            self.study.timeout,
            self.study.memory,
            job.job_id in self._grown,
        )
        self._reserved[job.job_id] = _caps(self.study.budget)
        self.on_news(Told(job, "running"))
        began = time.monotonic()
        ended: Ended = await start(order)
        seconds = time.monotonic() - began
        state, reason = self._outcome(job, ended)
        about = {"state": state, "reason": reason, "code": ended.code, "signal": ended.signal}
        clock = {"seconds": round(seconds, 3), "cpu": round(ended.cpu, 3), "memory_kb": ended.memory, "at": time.time()}
        write_json(folder / PROCESS, {"schema_version": layout.SCHEMA_VERSION, **about, "clock": clock})
        del self._reserved[job.job_id]
        if state not in (*FINISHED, "stopped") and self.study.fail_fast:
            self.stopping = True
        write_tables(self.folder, self._rows)
        self.on_news(Told(job, state, reason, seconds))

    def _outcome(self, job: Planned, ended: Ended) -> tuple[str, str]:
        if ended.code in (DONE, BUDGET):
            return ("done", "") if ended.code == DONE else ("budget", "its budget was used up")
        # A job that has only just begun does not listen yet: asked to stop, it simply ends.
        if ended.code == STOPPED or (self.stopping and ended.signal in (signal.SIGTERM, signal.SIGUSR1)):
            return "stopped", "stopped from the keyboard"
        if ended.reason.startswith("killed: it took"):
            return "timeout", ended.reason
        last = _last_words(self.folder.job(job.job_id) / _LOG)
        if "MemoryError" in last or "out of memory" in last:
            return "failed", "out of memory"
        return "failed", ended.reason or last or f"ended with exit code {ended.code}"

    def _room_for(self, job: Planned) -> bool:
        """Whether a job may start: nobody wants to stop, and its cap fits into what the whole study may still spend."""
        if self.stopping:
            return False
        wanted = _caps(self.study.budget)
        for name, cap in _caps(self.study.total).items():
            spent = sum(_spent(self.folder.job(other.job_id)).get(name, 0.0) for other in self.jobs if other is not job)
            reserved = sum(caps.get(name, 0.0) for caps in self._reserved.values())
            if spent + reserved + wanted.get(name, 0.0) > cap:
                return False
        return True


def _caps(budget: BudgetConfig) -> dict[str, float]:
    return {name: cap for name, cap in budget.model_dump().items() if cap is not None}


def _larger(new: BudgetConfig, old: BudgetConfig) -> bool:
    """Whether a cap was raised or taken away."""
    now = new.model_dump()
    return any(now[name] is None or now[name] > cap for name, cap in _caps(old).items())


def _spent(folder: Path) -> dict[str, float]:
    path = folder / "results.json"
    if not path.exists():
        return {}
    found: Mapping[str, Any] = layout.read_json(path)
    total = found["usage"]["total"]
    tokens = total["prompt_tokens"] + total["completion_tokens"]
    return {
        "calls": total["calls"],
        "tokens": tokens,
        "money": total["money"] or 0.0,
        "seconds": found["clock"]["seconds"] or 0.0,
    }


def _last_words(log: Path) -> str:
    """The last line a job printed that says something."""
    if not log.exists():
        return ""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return lines[-1][:_SHOWN] if lines else ""
