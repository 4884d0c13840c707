"""Carrying out rollouts: what a task's `rollout` is given, and how its end becomes an outcome or a failure.

A rollout may fail in two ways. What heals or concerns this attempt only (a timeout, a rate limit that outlasted all
retries, a refused request, an exception in the code of the task or metric) becomes a `Failure`. What would hit every further
call in the same way (a wrong key, an unknown model, a budget that is used up) is raised and stops the job, also where the
task's code catches it.
"""

from __future__ import annotations

import asyncio
import dataclasses
import tempfile
from pathlib import Path

from sharpen.core.candidate import Candidate
from sharpen.core.chat import Reply, Request
from sharpen.core.errors import (
    FATAL,
    BudgetExhausted,
    ModelError,
    ModelErrorKind,
    NoScore,
    SandboxFailed,
    ScoringTimeout,
    SharpenError,
    StorageError,
)
from sharpen.core.item import Item
from sharpen.core.outcome import Failure, FailureKind, Outcome
from sharpen.core.redact import redact, redact_known
from sharpen.core.rng import Stream
from sharpen.core.task import Task
from sharpen.core.usage import NOTHING, Usage
from sharpen.engine.failures import describe_crash
from sharpen.engine.gateway import Gateway, Stopped

_KINDS = {
    ModelErrorKind.RATE_LIMITED: FailureKind.RATE_LIMITED,
    ModelErrorKind.UNAVAILABLE: FailureKind.UNAVAILABLE,
    ModelErrorKind.TIMEOUT: FailureKind.TIMEOUT,
    ModelErrorKind.BAD_REQUEST: FailureKind.REFUSED,
    ModelErrorKind.BAD_REPLY: FailureKind.BAD_REPLY,
}

_ENDINGS = (ModelError, BudgetExhausted, StorageError, Stopped)
"""What ends the job wherever it comes from."""


@dataclasses.dataclass(frozen=True)
class Sampling:
    """How rollouts are drawn. `seed` is None where nothing about a rollout is random."""

    seed: int | None
    temperature: float | None = None
    """Overrides the task's own temperature for the target."""
    timeout: float = 600.0
    """Seconds one rollout may take, retries included."""


class LiveAttempt:
    """The engine's side of `core.task.Attempt`: counts what the rollout uses, by role."""

    def __init__(self, gateway: Gateway, sampling: Sampling, render: str, scope: tuple[str, str, int]) -> None:
        self._gateway = gateway
        self.sampling = sampling
        self._render = render
        self._scope = scope
        self._calls = 0
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        self.usage: dict[str, Usage] = {}
        self.ending: SharpenError | None = None
        """What ends the job, met by a call of this rollout. No code of a task can deal with it."""

    @property
    def render(self) -> str:
        return self._render

    @property
    def rng(self) -> Stream:
        """This attempt's own randomness; asking twice gives the same numbers again."""
        return Stream(self.sampling.seed or 0, "rollout", *self._scope)

    @property
    def scratch(self) -> Path:
        """A folder of this attempt's own, gone when it ends."""
        if self._scratch is None:
            self._scratch = tempfile.TemporaryDirectory(prefix="sharpen-")
        return Path(self._scratch.name)

    async def complete(self, request: Request, *, role: str = "target") -> Reply:
        if role == "target" and self.sampling.temperature is not None:
            request = dataclasses.replace(request, temperature=self.sampling.temperature)
        if self.ending is not None:
            raise self.ending
        draw = [self.sampling.seed, self._scope[2], self._calls]
        self._calls += 1
        try:
            reply = await self._gateway.complete(role, request, draw)
        except ModelError as error:
            if error.usage != NOTHING:
                self.usage[role] = self.usage.get(role, NOTHING) + error.usage
            if error.kind in FATAL:
                self.ending = error
            raise
        except SharpenError as error:
            self.ending = error
            raise
        self.usage[role] = self.usage.get(role, NOTHING) + reply.usage
        return reply

    def close(self) -> None:
        if self._scratch is not None:
            self._scratch.cleanup()


async def attempt_item(task: Task, item: Item, candidate: Candidate, attempt: LiveAttempt) -> Outcome:
    """Run one rollout to its end: scored, or failed for a reason that is not the agent's."""
    limit = attempt.sampling.timeout
    try:
        async with asyncio.timeout(limit) as clock:
            outcome = await task.rollout(item, candidate, attempt)
    except BaseException as error:
        if attempt.ending is not None:
            raise attempt.ending from None if error is attempt.ending else error
        late = Failure(FailureKind.TIMEOUT, f"no end after {limit:g} s")
        return _failed(item, late if clock.expired() else _failure(error), attempt)
    finally:
        attempt.close()
    if attempt.ending is not None:  # the task's code has caught it
        raise attempt.ending
    problem = _problem(outcome, item, task)
    if problem:
        return _failed(item, Failure(FailureKind.CRASHED, redact(problem)), attempt)
    return _without_secrets(outcome.charged(item.id, attempt.usage))


def _problem(outcome: object, item: Item, task: Task) -> str:
    """What is wrong with what a rollout returned; nothing where it is as it should be."""
    if not isinstance(outcome, Outcome):
        return f"the rollout of task {task.name!r} returned {type(outcome).__name__}, expected an Outcome"
    lacking = [name for name in task.objectives if outcome.scored and name not in outcome.measures]
    if lacking:
        return f"task {task.name!r} aims at {lacking[0]!r}, but item {item.id!r} came back without that measure"
    return ""


def _failure(error: BaseException) -> Failure:
    """What an exception makes of a rollout. Raises it where it ends the job."""
    if isinstance(error, ModelError) and error.kind not in FATAL:
        return Failure(_KINDS[error.kind], redact(str(error)))
    if isinstance(error, ScoringTimeout):
        return Failure(FailureKind.TIMEOUT, redact(str(error)))
    if isinstance(error, NoScore):
        return Failure(FailureKind.NOT_A_NUMBER, redact(str(error)))
    if isinstance(error, SandboxFailed):
        return Failure(FailureKind.SANDBOX, redact(str(error)))
    task = asyncio.current_task()
    cancelled = isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0
    if cancelled or isinstance(error, (*_ENDINGS, MemoryError, KeyboardInterrupt, GeneratorExit)):
        raise error
    return describe_crash(error)


def _without_secrets(outcome: Outcome) -> Outcome:
    """What a rollout brought, as it may be kept. Cleaned here rather than where it is stored, so that a story that is told
    again from the ledger has the same texts to go on."""
    texts = (outcome.answer, outcome.feedback, *(message.content for message in outcome.trajectory))
    if all(redact_known(text) == text for text in texts):
        return outcome
    said = tuple(dataclasses.replace(m, content=redact_known(m.content)) for m in outcome.trajectory)
    return dataclasses.replace(
        outcome, answer=redact_known(outcome.answer), feedback=redact_known(outcome.feedback), trajectory=said
    )


def _failed(item: Item, failure: Failure, attempt: LiveAttempt) -> Outcome:
    return Outcome(item.id, None, None, usage=attempt.usage, failure=failure)
