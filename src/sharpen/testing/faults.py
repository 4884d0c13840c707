"""Orderly failures of a job: an exception at any question, rollout or write, in simulated time, and then a resume.

A kill ends a job between two instructions; an exception lets it go on to its end, with other questions under way that are
answered before or after. `Faults` carries out one session of a training in which a single `Fault` happens, and keeps a bill
of every model call that was answered over all sessions. Plugins can hold their own trainers against it:

    faults = Faults(lambda: MyTrainer(MyTrainer.Params(rounds=3)), lambda: Codebook(Deal(limit=12)))
    whole = faults.run(tmp_path / "whole")
    faults.run(tmp_path / "job", Fault("auth", at=7))
    faults.run(tmp_path / "job")
    assert left_behind(...) == left_behind(...)
"""

from __future__ import annotations

import asyncio
import dataclasses
import errno
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from sharpen.bench.config import RunConfig, TaskConfig
from sharpen.bench.layout import RunFolder
from sharpen.bench.runner import Parts, Session
from sharpen.core.candidate import Candidate
from sharpen.core.chat import Reply, Request
from sharpen.core.digest import digest
from sharpen.core.errors import ModelError, ModelErrorKind, StorageError
from sharpen.core.item import Item
from sharpen.core.outcome import Outcome
from sharpen.core.rng import Stream
from sharpen.core.task import Attempt, Task
from sharpen.engine import checkpoints, opening, replay
from sharpen.engine.budget import Caps
from sharpen.engine.job import Job
from sharpen.engine.opening import How
from sharpen.engine.retry import RetryPolicy
from sharpen.files import append_line
from sharpen.ledger.store import Ledger
from sharpen.models.base import Model
from sharpen.models.registry import open_model
from sharpen.testing.clock import run_simulated
from sharpen.testing.jobs import make_setup
from sharpen.trainers.base import Trainer

_FOR_ANY = ("auth", "not_found", "unreachable")
_FOR_ROLLOUTS = ("rate_limited", "unavailable", "timeout", "bad_request", "bad_reply")
"""Model errors after which a question outside of rollouts goes on without an answer: that is no end of a session."""
CALLS = (*_FOR_ANY, *_FOR_ROLLOUTS, "stop", "stop_while_waiting", "cancel", "keyboard", "model_bug", "os_error")
ROLLOUTS = ("task_bug", "metric_bug", "task_exit", "task_os_error")
WRITES = ("log_full", "reply_full", "rollout_full", "flush_full", "checkpoint_full")
EMITS = ("trainer_bug",)
KINDS = (*CALLS, *ROLLOUTS, *WRITES, *EMITS)
_PLACES = {
    **dict.fromkeys(CALLS, "call"), **dict.fromkeys(_FOR_ROLLOUTS, "target"), "task_bug": "rollout",
    "task_exit": "rollout", "task_os_error": "rollout", "metric_bug": "scored", "log_full": "line",
    "reply_full": "add_reply", "rollout_full": "add_rollout", "flush_full": "flush", "checkpoint_full": "checkpoint",
    "trainer_bug": "emit",
}  # fmt: skip
LOSES_REPLIES = ("cancel", "keyboard", "reply_full", "flush_full")
"""Kinds after which a call that was answered may not be in the ledger."""
_MONEY = 0.001


@dataclass(frozen=True)
class Fault:
    """`kind` goes wrong at the `at`-th place of its sort in this session, counted from 1; a call after `late` seconds."""

    kind: str
    at: int
    late: float = 0.0

    @property
    def place(self) -> str:
        return _PLACES[self.kind]


@dataclass(frozen=True)
class Ended:
    """How a session ended: its status or the exception, how many places of each sort it came to, and what it had to say."""

    status: str | None
    error: BaseException | None
    folder: Path
    counts: Counter[str]
    notices: list[str]


class Broken(RuntimeError):
    """A bug, injected."""


@dataclass
class _World:
    """One session's places, and the fault that is waiting at one of them."""

    fault: Fault | None
    salt: int
    bill: Counter[str]
    counts: Counter[str] = field(default_factory=Counter)
    failing: str | None = None
    """The request that fails from now on, however often it is sent."""
    job: Job | None = None
    main: asyncio.Task[Any] | None = None

    def meets(self, place: str) -> bool:
        self.counts[place] += 1
        return self.fault is not None and self.fault.place == place and self.counts[place] == self.fault.at

    def fail(self, place: str, error: BaseException) -> None:
        if self.meets(place):
            raise error


class _Model:
    """Passes on to a scripted model, in an order of its own, at a price."""

    def __init__(self, model: Model, role: str, world: _World) -> None:
        self._model, self._role, self._world = model, role, world

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def bound(self, request: Request) -> tuple[int, float | None]:
        tokens, _ = self._model.bound(request)
        return tokens, tokens * _MONEY

    async def complete(self, request: Request) -> Reply:
        world = self._world
        key = digest([self._role, request.key_fields(), request.seed])
        faulty = world.meets("call")
        faulty |= self._role == "target" and world.meets("target")
        late = world.fault.late if world.fault is not None and faulty else 0.0
        await asyncio.sleep(late or Stream(world.salt, key).random())
        if faulty or key == world.failing:
            await self._fail(key)
        reply = await self._model.complete(request)
        world.bill[key] += 1
        usage = dataclasses.replace(reply.usage, money=reply.usage.tokens * _MONEY)
        return dataclasses.replace(reply, usage=usage)

    async def _fail(self, key: str) -> None:
        world = self._world
        assert world.fault is not None and world.job is not None and world.main is not None
        kind = world.fault.kind
        if kind in (*_FOR_ANY, *_FOR_ROLLOUTS):
            world.failing = key
            raise ModelError(ModelErrorKind(kind), "injected")
        if kind == "stop_while_waiting":
            asyncio.get_running_loop().call_later(9.0, setattr, world.job.runtime.gateway, "stopping", True)
            raise ModelError(ModelErrorKind.RATE_LIMITED, "injected", retry_after=20.0)
        if kind == "stop":
            world.job.runtime.gateway.stopping = True
        if kind == "cancel":
            world.job.runtime.gateway.stopping = True
            world.main.cancel()
        if kind == "keyboard":
            raise KeyboardInterrupt
        if kind == "model_bug":
            raise Broken("injected")
        if kind == "os_error":
            raise OSError(errno.EIO, "injected")


class Faults:
    """Trainings of one task by one trainer. `noise` makes answers vary from draw to draw."""

    def __init__(
        self, trainer: Callable[[], Trainer], task: Callable[[], Task], *, noise: float = 0.0, workers: int = 4
    ) -> None:
        self._trainer, self._task, self._noise, self._workers = trainer, task, noise, workers

    def models(self, world: _World) -> dict[str, Model]:
        target = f"scripted/rules?noise={self._noise}" if self._noise else "scripted/rules"
        names = {"target": target, "optimizer": "scripted/rules"}
        return {role: _Model(open_model(name), role, world) for role, name in names.items()}

    def run(
        self,
        home: Path,
        fault: Fault | None = None,
        *,
        caps: Caps | None = None,
        more_budget: bool = False,
        salt: int = 0,
        bill: Counter[str] | None = None,
    ) -> Ended:
        """One session of the training in `home`: a new one, or that which is there carried on."""
        world = _World(fault, salt, Counter() if bill is None else bill)
        task, trainer = _faulty(self._task(), world), self._trainer()
        setup = make_setup(task, self.models(world), params=trainer.params.model_dump(mode="json"))
        spec = dataclasses.replace(setup.spec, trainer=trainer.name, trainer_version=trainer.version)
        retry = RetryPolicy(attempts=3, first_pause=0.1)
        how = How(caps or Caps(), self._workers, 0.0, retry)
        parts = Parts(RunConfig(task=TaskConfig(name=task.name)), trainer, dataclasses.replace(setup, spec=spec), how)
        session = Session(parts, RunFolder(home), on_start=lambda job: setattr(world, "job", job))

        async def main() -> str:
            world.main = asyncio.current_task()
            return await session.run(more_budget=more_budget)

        status = error = None
        try:
            with _watched(world):
                status = run_simulated(main())
        except BaseException as raised:
            if fault is None and caps is None:
                raise
            error = raised
        notices = [] if world.job is None else world.job.progress.notices
        return Ended(status, error, session.job_folder, world.counts, notices)


def _faulty(task: Task, world: _World) -> Task:
    """The same task, whose rollouts meet the faults of this session."""
    roll_out = task.rollout

    async def rollout(item: Item, candidate: Candidate, attempt: Attempt) -> Outcome:
        exits = world.fault is not None and world.fault.kind == "task_exit"
        of_disk = world.fault is not None and world.fault.kind == "task_os_error"
        bug: BaseException = OSError(errno.ENOSPC, "injected") if of_disk else Broken("injected")
        world.fail("rollout", SystemExit(1) if exits else bug)
        outcome = await roll_out(item, candidate, attempt)
        world.fail("scored", Broken("injected"))
        return outcome

    task.rollout = rollout  # type: ignore[method-assign]
    return task


@contextmanager
def _watched(world: _World) -> Iterator[None]:
    """While inside, every write of the engine meets the faults of this session, and its clock is the event loop's."""

    def before(place: str, work: Callable[..., Any], error: Callable[[], BaseException]) -> Callable[..., Any]:
        def watched(*args: Any, **options: Any) -> Any:
            world.fail(place, error())
            return work(*args, **options)

        return watched

    def full() -> StorageError:
        return StorageError("injected: the disk is full")

    clock = SimpleNamespace(monotonic=lambda: asyncio.get_running_loop().time(), time=time.time)
    with (
        patch.object(replay, "append_line", before("line", append_line, full)),
        patch.object(Ledger, "add_reply", before("add_reply", Ledger.add_reply, full)),
        patch.object(Ledger, "add_rollout", before("add_rollout", Ledger.add_rollout, full)),
        patch.object(Ledger, "flush", before("flush", Ledger.flush, full)),
        patch.object(checkpoints, "save", before("checkpoint", checkpoints.save, full)),
        patch.object(Job, "emit", before("emit", Job.emit, lambda: Broken("injected"))),
        patch.object(opening, "time", clock),
        patch("os.fsync", lambda descriptor: None),
    ):
        yield
