"""Measurements in which something goes wrong: failed rollouts, errors that stop the job, bugs, and budgets that end."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path

import pytest
from measuring import A, B, Fake, K, Length, story, unhealing, work

from sharpen.core.candidate import Candidate
from sharpen.core.errors import BudgetExhausted, ModelError, ModelErrorKind, NotDeterministic, TooManyFailures
from sharpen.core.item import Item
from sharpen.core.outcome import Failure, FailureKind, Outcome
from sharpen.core.task import Attempt
from sharpen.engine.budget import Caps
from sharpen.engine.evaluation import Evaluation
from sharpen.engine.events import BudgetEnded
from sharpen.engine.job import Job
from sharpen.testing.jobs import make_setup, running_job


def test_failures_are_left_out_of_the_mean_and_listed(tmp_path: Path) -> None:
    async def do(job: Job) -> None:
        evaluation = await job.evaluate(A, job.splits.val, purpose="gate")
        assert evaluation.hard[3] is None and evaluation.soft[3] is None
        assert evaluation.mean == pytest.approx(4 / 9)
        assert evaluation.failures == {"val-3": Failure(FailureKind.REFUSED, "no luck")}
        assert evaluation.outcome(3).failure == Failure(FailureKind.REFUSED, "no luck")

    model = Fake(failing={"val 3": unhealing()})
    work(tmp_path, model, do)
    assert model.asked["val 3 turn 0"] == 1
    (event,) = story(tmp_path)
    assert event["groups"][0]["failed"] == {"val-3": ["refused", "no luck", {}]}
    assert event["groups"][0]["hard"][3] is None


def test_a_recorded_failure_is_history_and_is_not_tried_again(tmp_path: Path) -> None:
    async def do(job: Job) -> None:
        await job.evaluate(A, job.splits.val, purpose="gate")

    work(tmp_path, Fake(failing={"val 3 turn 1": unhealing(K.TIMEOUT)}), do, task=Length(2))
    before = (tmp_path / "events.jsonl").read_bytes()
    well = Fake()
    work(tmp_path, well, do, task=Length(2))
    assert well.calls == 0 and (tmp_path / "events.jsonl").read_bytes() == before


def test_a_failure_that_was_not_recorded_is_tried_again(tmp_path: Path) -> None:
    async def do(job: Job) -> None:
        await job.evaluate(A, job.splits.val, purpose="gate")

    ill = Fake(failing={"val 3": unhealing(), "val 4": unhealing()})
    with pytest.raises(TooManyFailures, match=r"2 of 10 rollouts .*\(refused\); at most 10% may. .* no luck"):
        work(tmp_path, ill, do)
    assert story(tmp_path) == []
    well = Fake()
    work(tmp_path, well, do)
    assert set(well.asked) == {"val 3 turn 0", "val 4 turn 0"}, "what was paid for is not paid for again"
    assert story(tmp_path)[0]["groups"][0]["failed"] == {}


def test_a_later_measurement_tries_a_failed_item_again(tmp_path: Path) -> None:
    async def do(job: Job) -> None:
        first = await job.evaluate(A, job.splits.val, purpose="gate")
        model.failing.clear()
        second = await job.evaluate(A, job.splits.val, purpose="gate")
        assert (first.hard[3], second.hard[3]) == (None, 1)
        assert first.failures and not second.failures

    model = Fake(failing={"val 3": unhealing()})
    work(tmp_path, model, do)
    before = (tmp_path / "events.jsonl").read_bytes()
    model = Fake(failing={"val": unhealing()})
    work(tmp_path, model, do)
    assert (tmp_path / "events.jsonl").read_bytes() == before and model.calls == 0


def test_a_failed_rollouts_own_calls_count_towards_the_budget_also_when_retold(tmp_path: Path) -> None:
    spent = []

    async def do(job: Job) -> None:
        await job.evaluate(A, job.splits.val, purpose="gate")
        spent.append((job.budget.spent.calls, job.meter.total.calls))

    for _ in range(2):
        work(tmp_path, Fake(failing={"val 3 turn 1": unhealing()}), do, task=Length(2))
    assert spent == [(19, 19), (19, 19)]


@pytest.mark.parametrize("kind", [K.AUTH, K.NOT_FOUND, K.UNREACHABLE])
def test_what_would_hit_every_call_stops_at_once_and_keeps_what_was_paid(tmp_path: Path, kind: ModelErrorKind) -> None:
    async def do(job: Job) -> None:
        await job.evaluate(A, job.splits.val, purpose="gate")

    model = Fake(failing={"val 1": unhealing(kind)})
    with pytest.raises(ModelError, match="no luck"):
        work(tmp_path, model, do, workers=2)
    stored = model.calls - model.asked["val 1 turn 0"]
    assert model.calls < 10 and story(tmp_path) == []
    well = Fake()
    work(tmp_path, well, do)
    assert well.calls == 10 - stored


def test_a_measurement_that_waits_for_another_one_that_failed_does_not_go_on_without_it(tmp_path: Path) -> None:
    async def do(job: Job) -> list[object]:
        both = (job.evaluate(A, job.splits.val, purpose="gate"), job.evaluate(A, job.splits.val[:6], purpose="gate"))
        return [*await asyncio.gather(*both, return_exceptions=True)]

    ends = work(tmp_path, Fake(failing={"val 5": unhealing(K.AUTH)}), do, workers=2)
    assert all(isinstance(end, ModelError) for end in ends)
    assert story(tmp_path) == []


def test_a_measurement_after_one_that_failed_is_not_in_the_log_and_costs_nothing_when_resumed(tmp_path: Path) -> None:
    async def do(job: Job) -> list[object]:
        both = (job.evaluate(A, job.splits.val, purpose="gate"), job.evaluate(A, job.splits.train, purpose="train"))
        return [*await asyncio.gather(*both, return_exceptions=True)]

    ends = work(tmp_path, Fake(failing={"val 5": unhealing(K.AUTH)}), do, workers=2)
    assert all(isinstance(end, ModelError) for end in ends), "what is not in the log is not given to the trainer"
    assert story(tmp_path) == []
    well = Fake()
    first, second = work(tmp_path, well, do)
    assert isinstance(first, Evaluation) and isinstance(second, Evaluation)
    assert [event["purpose"] for event in story(tmp_path)] == ["gate", "train"]
    assert not any(text.startswith("train") for text in well.asked)


def test_a_rollout_that_takes_too_long_is_a_failure_and_not_a_wrong_answer(tmp_path: Path) -> None:
    class Slow(Length):
        async def rollout(self, item: Item, candidate: Candidate, attempt: Attempt) -> Outcome:
            if item.id == "val-4":
                await asyncio.sleep(60)
            return await super().rollout(item, candidate, attempt)

    async def main() -> None:
        setup = make_setup(Slow(), {"target": Fake()})
        setup = dataclasses.replace(setup, sampling=dataclasses.replace(setup.sampling, timeout=0.5))
        async with running_job(setup, tmp_path) as job:
            evaluation = await job.evaluate(A, job.splits.val, purpose="gate")
            assert evaluation.failures == {"val-4": Failure(FailureKind.TIMEOUT, "no end after 0.5 s")}

    asyncio.run(main())


def test_another_program_on_the_same_story_is_found_out(tmp_path: Path) -> None:
    async def do(job: Job) -> None:
        await job.evaluate(A, job.splits.val[:3], purpose="gate")

    async def other(job: Job) -> None:
        await job.evaluate(A, job.splits.val[:4], purpose="gate")

    work(tmp_path, Fake(), do)
    with pytest.raises(NotDeterministic, match=r"not deterministic at event 0 of .*: measured differs in groups"):
        work(tmp_path, Fake(), other)


class TestBudget:
    async def stepwise(self, job: Job) -> None:
        """Goes through the splits in small pieces until the budget ends, then closes with what was set aside."""
        job.budget.set_aside(5)
        try:
            for candidate in (A, B):
                for start in range(0, 12, 4):
                    await job.evaluate(candidate, job.splits.train[start : start + 4], purpose="train")
        except BudgetExhausted as error:
            job.emit(BudgetEnded(str(error)))
        with job.budget.closing():
            try:
                await job.evaluate(A, job.splits.test[:5], purpose="test")
            except BudgetExhausted as error:
                job.emit(BudgetEnded(str(error)))

    def test_a_cap_on_calls_ends_at_the_same_place_with_any_number_of_workers(self, tmp_path: Path) -> None:
        stories = []
        for workers in (1, 64):
            model = Fake(salt=workers)
            work(tmp_path / str(workers), model, self.stepwise, workers=workers, caps=Caps(calls=18))
            assert model.calls == 17
            stories.append(story(tmp_path / str(workers)))
        assert stories[0] == stories[1]
        assert [event["type"] for event in stories[0]] == ["measured"] * 3 + ["budget_ended", "measured"]

    @pytest.mark.parametrize(
        "caps", [Caps(calls=18), Caps(tokens=8 * 17 + 4), Caps(money=30.0), Caps(seconds=0.02)], ids=repr
    )
    def test_where_a_budget_ended_is_history_when_the_story_is_retold(self, tmp_path: Path, caps: Caps) -> None:
        work(tmp_path, Fake(), self.stepwise, caps=caps)
        told = (tmp_path / "events.jsonl").read_bytes()
        assert b"budget_ended" in told
        again = Fake()
        work(tmp_path, again, self.stepwise, caps=caps)
        assert (tmp_path / "events.jsonl").read_bytes() == told and again.calls == 0

    @pytest.mark.parametrize("caps", [Caps(calls=18), Caps(seconds=0.02)], ids=repr)
    def test_killed_while_closing_it_carries_on_from_there(self, tmp_path: Path, caps: Caps) -> None:
        work(tmp_path, Fake(), self.stepwise, caps=caps)
        whole = story(tmp_path)
        path = tmp_path / "events.jsonl"
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
        work(tmp_path, Fake(), self.stepwise, caps=caps)
        again = story(tmp_path)
        assert len(again) == len(whole) and again[:-1] == whole[:-1]
        # Whether the seconds still allow for the closing measurement is the clock's to say.
        assert again == whole or caps.seconds is not None

    def test_a_cap_lowered_afterwards_cannot_undo_history(self, tmp_path: Path) -> None:
        async def do(job: Job) -> None:
            for start in range(0, 12, 4):
                await job.evaluate(A, job.splits.train[start : start + 4], purpose="train")
            with pytest.raises(BudgetExhausted):
                await job.evaluate(B, job.splits.train, purpose="train")

        work(tmp_path, Fake(), do, caps=Caps(calls=12))
        work(tmp_path, Fake(), do, caps=Caps(calls=3))
        assert len(story(tmp_path)) == 3
