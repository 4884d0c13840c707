"""A crash in the code of a task or metric is the failure of the item it happened on; too many end the job."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from measuring import A, Fake, K, Length, story, unhealing, work

from sharpen.core import redact
from sharpen.core.candidate import Candidate
from sharpen.core.chat import Request
from sharpen.core.errors import (
    BudgetExhausted,
    MissingRequirement,
    ModelError,
    StorageError,
    TooManyFailures,
    UsageError,
)
from sharpen.core.item import Item
from sharpen.core.outcome import FailureKind, Outcome
from sharpen.core.task import Attempt
from sharpen.engine.budget import Caps
from sharpen.engine.evaluation import Evaluation
from sharpen.engine.gateway import Stopped
from sharpen.engine.job import Job
from sharpen.ledger.store import Ledger


class Buggy(Length):
    """Does something else on some items, before or after the model has answered."""

    def __init__(self, act: Callable[[], object], *items: str, after: bool = False) -> None:
        super().__init__()
        self.act, self.items, self.after = act, items, after
        self.acted = 0

    async def rollout(self, item: Item, candidate: Candidate, attempt: Attempt) -> Outcome:
        if item.id in self.items and not self.after:
            self._act()
        outcome = await super().rollout(item, candidate, attempt)
        if item.id in self.items:
            self._act()
        return outcome

    def _act(self) -> None:
        self.acted += 1
        self.act()


def throw(error: BaseException) -> Callable[[], object]:
    def act() -> object:
        raise error

    return act


async def on_val(job: Job) -> Evaluation:
    return await job.evaluate(A, job.splits.val, purpose="gate")


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


class Odd(BaseException):
    pass


@pytest.mark.parametrize("after", [False, True], ids=["before the call", "after it"])
@pytest.mark.parametrize(
    "error",
    [
        ZeroDivisionError("division by zero"), SystemExit(3), SystemExit(), OSError(28, "No space left"),
        RecursionError("deep"), KeyError("x"), TimeoutError("theirs"), Unspeakable(), Odd("odd"), AssertionError(),
        asyncio.CancelledError(), UsageError("not a score"), MissingRequirement("no such package"), StopIteration(),
        ExceptionGroup("several", [ValueError("a"), TypeError("b")]),
    ],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
def test_whatever_a_task_raises_is_the_failure_of_that_item(tmp_path: Path, error: BaseException, after: bool) -> None:
    found = work(tmp_path, Fake(), on_val, task=Buggy(throw(error), "val-4", after=after))
    assert list(found.failures) == ["val-4"] and found.failures["val-4"].kind is FailureKind.CRASHED
    assert found.hard[4] is None and len(found.scored) == 9, "in no mean"
    (event,) = story(tmp_path)
    assert event["groups"][0]["failed"]["val-4"][0] == "crashed"
    before, again = (tmp_path / "events.jsonl").read_bytes(), Buggy(throw(error), "val-4", after=after)
    assert work(tmp_path, Fake(), on_val, task=again).failures == found.failures
    assert (tmp_path / "events.jsonl").read_bytes() == before and again.acted == 0, "taken from the log"


def test_it_says_what_happened_where_and_on_the_way_from_where(tmp_path: Path) -> None:
    failure = work(tmp_path, Fake(), on_val, task=Buggy(throw(ZeroDivisionError("oops")), "val-4")).failures["val-4"]
    assert failure.message.startswith("ZeroDivisionError: oops (test_crashes.py, line ")
    assert failure.message.endswith(", in act: raise error)")
    assert [step.split(" in ")[1] for step in failure.trace.split(" > ")] == ["rollout", "_act", "act"]
    assert story(tmp_path)[0]["groups"][0]["failed"]["val-4"][3] == failure.trace


def test_the_line_is_that_of_the_authors_code_and_not_of_a_library(tmp_path: Path) -> None:
    import json

    failure = work(tmp_path, Fake(), on_val, task=Buggy(lambda: json.loads("{"), "val-4")).failures["val-4"]
    assert "(test_crashes.py, line " in failure.message and 'json.loads("{")' in failure.message
    assert "decoder.py" in failure.trace


def test_secrets_and_addresses_are_left_out(tmp_path: Path) -> None:
    redact.remember("Kilo-4711-Kilo")
    try:
        said = f"Kilo-4711-Kilo at {object()!r}"
        failure = work(tmp_path, Fake(), on_val, task=Buggy(throw(ValueError(said)), "val-4")).failures["val-4"]
    finally:
        redact._known.clear()
    assert "Kilo" not in failure.message and "<object object at 0x...>" in failure.message
    assert b"Kilo" not in (tmp_path / "events.jsonl").read_bytes()


def test_what_is_not_an_outcome_is_a_crash_too(tmp_path: Path) -> None:
    class Returning(Length):
        async def rollout(self, item: Item, candidate: Candidate, attempt: Attempt) -> Outcome:
            return None if item.id == "val-4" else await super().rollout(item, candidate, attempt)  # type: ignore

    failure = work(tmp_path, Fake(), on_val, task=Returning()).failures["val-4"]
    assert failure.message == "the rollout of task 'length' returned NoneType, expected an Outcome"


def test_a_metric_that_always_raises_ends_the_job_at_once_and_says_where(tmp_path: Path) -> None:
    task = Buggy(throw(ZeroDivisionError("oops")), *(f"val-{n}" for n in range(10)), after=True)
    model = Fake()
    with pytest.raises(TooManyFailures) as caught:
        work(tmp_path, model, on_val, task=task, workers=1)
    message = str(caught.value)
    assert message.startswith("2 rollouts failed because of an error in the task's own code or metric; at most 1 of 10")
    assert "First on item 'val-0': ZeroDivisionError: oops (test_crashes.py, line " in message
    assert model.calls == 2 and story(tmp_path) == []
    mended = Fake()
    work(tmp_path, mended, on_val)
    assert mended.calls == 8, "what was paid for is not paid for again"


@pytest.mark.parametrize(
    "share,crashes,ends", [(0.1, 1, False), (0.1, 2, True), (0.5, 5, False), (0.5, 6, True), (0.0, 1, True)]
)
def test_the_limit_is_that_of_all_failures(tmp_path: Path, share: float, crashes: int, ends: bool) -> None:
    task = Buggy(throw(ValueError("no")), *(f"val-{n}" for n in range(crashes)))
    if ends:
        with pytest.raises(TooManyFailures):
            work(tmp_path, Fake(), on_val, task=task, max_failures=share)
    else:
        assert len(work(tmp_path, Fake(), on_val, task=task, max_failures=share).failures) == crashes


class Swallowing(Length):
    """Catches whatever a call raises, and answers something, or raises something else."""

    def __init__(self, then: Callable[[], object]) -> None:
        super().__init__()
        self.then = then

    async def rollout(self, item: Item, candidate: Candidate, attempt: Attempt) -> Outcome:
        try:
            return await super().rollout(item, candidate, attempt)
        except BaseException:
            self.then()
            return Outcome(item.id, 0.0, 0.0)


@pytest.mark.parametrize("then", [lambda: None, throw(RuntimeError("wrapped")), throw(SystemExit(1))])
@pytest.mark.parametrize("ending", ["auth", "budget", "stop", "disk"])
def test_what_ends_the_job_ends_it_also_where_the_task_catches_it(
    tmp_path: Path, then: Callable[[], object], ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def do(job: Job) -> Evaluation:
        if ending == "stop":
            asyncio.get_running_loop().call_soon(setattr, job.runtime.gateway, "stopping", True)
        return await on_val(job)

    def full(*given: object) -> None:
        raise StorageError("the disk is full")

    if ending == "disk":
        monkeypatch.setattr(Ledger, "add_reply", full)
    model = Fake(failing={"val 5": unhealing(K.AUTH)} if ending == "auth" else {})
    caps = Caps(tokens=40) if ending == "budget" else Caps()
    raised = {"auth": ModelError, "budget": BudgetExhausted, "stop": Stopped, "disk": StorageError}[ending]
    with pytest.raises(raised):
        work(tmp_path, model, do, task=Swallowing(then), caps=caps, workers=2)
    assert story(tmp_path) == []


def test_a_failed_call_that_a_task_deals_with_is_its_own_business(tmp_path: Path) -> None:
    found = work(tmp_path, Fake(failing={"val 5": unhealing(K.TIMEOUT)}), on_val, task=Swallowing(lambda: None))
    assert found.hard[5] == 0.0 and not found.failures


def test_a_real_cancellation_is_no_crash(tmp_path: Path) -> None:
    async def do(job: Job) -> None:
        measuring = asyncio.ensure_future(on_val(job))
        await asyncio.sleep(0.002)
        measuring.cancel()
        with pytest.raises(asyncio.CancelledError):
            await measuring

    work(tmp_path, Fake(), do)
    assert story(tmp_path) == []


def test_a_role_that_is_not_there_ends_the_job(tmp_path: Path) -> None:
    class Asking(Length):
        async def rollout(self, item: Item, candidate: Candidate, attempt: Attempt) -> Outcome:
            await attempt.complete(Request(prompt="?"), role="judge")
            raise AssertionError

    with pytest.raises(UsageError, match="no model is given for the role 'judge'"):
        work(tmp_path, Fake(), on_val, task=Asking())
