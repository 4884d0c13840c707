"""What a job's measurements promise: item order, each rollout once, failures kept apart, nothing lost, the same story."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import json
import time
import tracemalloc
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from measuring import A, B, Fake, K, Length, story, work

from sharpen.core.candidate import Candidate
from sharpen.core.errors import BudgetExhausted, ModelError, TooManyFailures
from sharpen.core.item import Item
from sharpen.core.objective import Objective
from sharpen.core.outcome import Outcome, scored
from sharpen.core.task import Attempt, Splits
from sharpen.engine.budget import Caps
from sharpen.engine.evaluation import Evaluation, Group
from sharpen.engine.events import BudgetEnded
from sharpen.engine.gateway import Stopped
from sharpen.engine.job import Job
from sharpen.models.scripted import ScriptedModel
from sharpen.testing.jobs import make_setup, running_job


class Weighed(Length):
    """Gives a measure, but not for every item."""

    async def rollout(self, item: Item, candidate: Candidate, attempt: Attempt) -> Outcome:
        outcome = await super().rollout(item, candidate, attempt)
        size = len(outcome.answer) + int(item.id.split("-")[1]) / 10
        return dataclasses.replace(outcome, measures={} if item.id.endswith("-3") else {"size": size})


def test_measures_come_in_item_order_and_are_told_and_found_again(tmp_path: Path) -> None:
    async def do(job: Job) -> Evaluation:
        await job.evaluate(A, job.splits.train[3:5], purpose="some")
        return await job.evaluate(A, job.splits.train[2:6], purpose="all")

    for _ in range(2):
        found = work(tmp_path / "job", Fake(), do, task=Weighed())
        assert found.measures == {"size": [14.2, None, 14.4, 14.5]}
        assert found.measured("size") == pytest.approx((14.2 + 14.4 + 14.5) / 3)
        assert found.measured("weight") is None
        assert [group["measures"] for line in story(tmp_path / "job") for group in line["groups"]] == [
            {"size": [None, 14.4]},
            {"size": [14.2, None, 14.4, 14.5]},
        ]


def test_a_task_without_measures_tells_of_none(tmp_path: Path) -> None:
    async def do(job: Job) -> Evaluation:
        return await job.evaluate(A, job.splits.val, purpose="all")

    assert work(tmp_path / "job", Fake(), do).measures == {}
    assert "measures" not in story(tmp_path / "job")[0]["groups"][0], "old stories are retold line by line"


class Aimless(Weighed):
    objectives: Mapping[str, Objective] = {"size": Objective("min")}


def test_an_aim_that_is_not_measured_is_the_failure_of_its_item(tmp_path: Path) -> None:
    async def do(job: Job) -> Evaluation:
        return await job.evaluate(A, job.splits.train[2:6], purpose="all")

    found = work(tmp_path / "job", Fake(), do, task=Aimless())
    assert found.failures["train-3"].message.startswith("task 'length' aims at 'size', but item 'train-3' came back")
    with pytest.raises(TooManyFailures, match="First on item 'train-3': task 'length' aims at 'size'"):
        work(tmp_path / "other", Fake(), do, task=Aimless(), max_failures=0.0)


class Counting(Length):
    """Calls no model, and does something else each time instead."""

    def __init__(self, each: Callable[[int], None]) -> None:
        super().__init__(0)
        self.each, self.rollouts = each, 0

    async def rollout(self, item: Item, candidate: Candidate, attempt: Attempt) -> Outcome:
        self.rollouts += 1
        self.each(self.rollouts)
        return scored(item.id, 1)


def test_a_task_that_calls_no_model_can_be_stopped_between_rollouts(tmp_path: Path) -> None:
    async def do(job: Job) -> Evaluation:
        task.each = lambda number: setattr(job.runtime.gateway, "stopping", number >= 3)
        return await job.evaluate(A, job.splits.train, purpose="all")

    task = Counting(lambda number: None)
    with pytest.raises(Stopped):
        work(tmp_path / "job", Fake(), do, task=task, workers=1)
    assert task.rollouts == 3


def test_rollouts_without_calls_are_refused_by_the_clock_alone(tmp_path: Path) -> None:
    async def do(job: Job) -> list[str]:
        job.budget.keep_time(100)
        with pytest.raises(BudgetExhausted) as refused:
            for item in job.splits.train:
                await job.evaluate(A, [item], purpose="train")
        job.emit(BudgetEnded(str(refused.value)))
        with job.budget.closing():
            await job.evaluate(A, job.splits.test, purpose="test")
        return [str(refused.value), str(task.rollouts)]

    task = Counting(lambda number: time.sleep(0.002))
    refused, rollouts = work(tmp_path / "job", Fake(), do, task=task, caps=Caps(calls=1, seconds=0.3))
    assert refused == "the cap of 0.3 seconds is reached"
    assert 10 <= int(rollouts) <= 21, "time was kept for a hundred, so only a few were done before the closing ones"


def test_results_are_in_item_order_whatever_finishes_first(tmp_path: Path) -> None:
    async def do(job: Job) -> None:
        items = job.splits.train
        evaluation = await job.evaluate(A, items, purpose="train")
        assert list(evaluation.hard) == [item.reference for item in items]
        assert [evaluation.outcome(n).answer for n in range(len(items))] == [f"{item.text} turn 0" for item in items]
        assert evaluation.outcome(3).usage["target"].calls == 1

    work(tmp_path, Fake(), do)
    (event,) = story(tmp_path)
    assert event["groups"][0]["items"] == "train", "a whole split is named, not listed"
    assert event["groups"][0]["hard"] == [n % 2 for n in range(12)]


async def several(job: Job) -> None:
    """Measurements of all kinds, some side by side."""
    train, val = job.splits.train, job.splits.val
    with job.stage(1, "rollout"):
        await job.evaluate(A, train[:5], purpose="train")
    with job.stage(1, "gate"):
        await asyncio.gather(
            job.measure([Group(A, val), Group(B, val[2:6], 1)], purpose="gate"),
            job.evaluate(B, val, purpose="gate"),
            job.evaluate(A, val[:3], purpose="gate"),
        )
    job.checkpoint(B, 1, {"score": 0.5})


@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("turns", [1, 3])
def test_the_story_does_not_depend_on_workers_or_on_who_is_fast(tmp_path: Path, noise: float, turns: int) -> None:
    """Costs are odd sums of money, so that adding them in another order would show in the last digit."""
    stories = []
    for number, (workers, salt) in enumerate([(1, 0), (64, 1), (3, 2), (64, 3)]):
        folder = tmp_path / str(number)
        work(folder, Fake(noise=noise, salt=salt), several, task=Length(turns), workers=workers)
        stories.append(story(folder))
    assert all(one == stories[0] for one in stories)
    assert len(stories[0]) == 7


def test_told_again_it_costs_nothing_and_says_the_same(tmp_path: Path) -> None:
    work(tmp_path, Fake(noise=0.3), several)
    before = (tmp_path / "events.jsonl").read_bytes()
    again = Fake(noise=0.3)
    work(tmp_path, again, several)
    assert again.calls == 0 and (tmp_path / "events.jsonl").read_bytes() == before


def test_a_rollout_is_paid_for_once_and_its_second_use_is_counted_as_reused(tmp_path: Path) -> None:
    async def do(job: Job) -> None:
        val = job.splits.val
        await job.evaluate(A, val, purpose="gate")
        await job.evaluate(A, [*val[:4], val[0], val[0]], purpose="again")
        assert job.meter.total.calls == 10

    model = Fake()
    work(tmp_path, model, do)
    first, second = story(tmp_path)
    assert model.calls == 10
    assert (first["reused"], first["usage"]["target"][0]) == (0, 10)
    assert (second["reused"], second["usage"]) == (4, {})
    assert second["groups"][0]["items"] == [f"val-{n}" for n in (0, 1, 2, 3, 0, 0)]


def test_an_item_listed_twice_is_attempted_once_and_shown_twice(tmp_path: Path) -> None:
    async def do(job: Job) -> None:
        one, other = job.splits.val[1], job.splits.val[0]
        evaluation = await job.evaluate(A, [one, other, one], purpose="gate")
        assert list(evaluation.hard) == [1, 0, 1] and evaluation.mean == pytest.approx(2 / 3)

    model = Fake()
    work(tmp_path, model, do)
    assert model.calls == 2


def test_samples_are_drawn_anew_only_where_that_tells_something(tmp_path: Path) -> None:
    async def do(job: Job) -> None:
        for sample in range(3):
            await job.evaluate(A, job.splits.val, purpose="gate", sample=sample)

    fixed, random = Fake(), Fake(noise=0.5)
    work(tmp_path / "fixed", fixed, do)
    work(tmp_path / "random", random, do)
    assert (fixed.calls, random.calls) == (10, 30)


def test_seeds_share_their_rollouts_where_nothing_is_random(tmp_path: Path) -> None:
    async def do(job: Job) -> None:
        await job.evaluate(A, job.splits.val, purpose="gate")

    for noise, calls in ((0.0, 10), (0.5, 20)):
        folder, total = tmp_path / str(noise), 0
        for seed in (0, 1):
            model = Fake(noise=noise)
            work(folder, model, do, seed=seed)
            total += model.calls
            (folder / "events.jsonl").unlink()
        assert total == calls


def test_measurements_side_by_side_share_what_both_want_and_count_it_once(tmp_path: Path) -> None:
    async def do(job: Job) -> None:
        val = job.splits.val
        both = (job.evaluate(A, val[:7], purpose="gate"), job.evaluate(A, val[4:], purpose="gate"))
        first, second = await asyncio.gather(*both)
        assert list(first.hard[4:]) == list(second.hard[:3]) == [0, 1, 0]
        assert job.meter.total.calls == 10

    model = Fake()
    work(tmp_path, model, do)
    assert model.calls == 10
    assert [(event["reused"], event["usage"]["target"][0]) for event in story(tmp_path)] == [(0, 7), (3, 3)]


def test_a_measurement_can_wait_for_several_others_that_end_at_different_times(tmp_path: Path) -> None:
    async def do(job: Job) -> None:
        val = job.splits.val
        long, short = job.evaluate(A, val[:7], purpose="gate"), job.evaluate(A, val[7:], purpose="gate")
        _, _, whole = await asyncio.gather(long, short, job.evaluate(A, val, purpose="gate"))
        assert list(whole.hard) == [item.reference for item in val]

    model = Fake()
    work(tmp_path, model, do, workers=1)
    assert model.calls == 10


class Many(Length):
    """A thousand items, scored on a scale on which no two answers are alike."""

    def splits(self) -> Splits:
        few = super().splits()
        return Splits(tuple(Item(f"i{n}", {"input": str(n)}, n / 1000) for n in range(1000)), few.val, few.test)


def instant() -> ScriptedModel:
    return ScriptedModel("scripted/instant", lambda request: request.messages[-1].content)


def test_a_rollout_that_is_done_leaves_its_scores_in_memory_and_little_else(tmp_path: Path) -> None:
    async def main() -> tuple[float, float]:
        setup = make_setup(Many(), {"target": instant()})
        async with running_job(setup, tmp_path, workers=4) as job:
            await job.evaluate(A, job.splits.train[:200], purpose="warm")
            gc.collect()
            tracemalloc.start()
            evaluation = await job.evaluate(B, job.splits.train, purpose="train")
            gc.collect()
            now, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert len(evaluation.scored) == 1000
            return now / 1000, peak / 1000

    stays, peak = asyncio.run(main())
    assert stays < 150, "bytes per rollout, a share of what stays after any measurement included"
    assert peak < 500, "bytes per rollout, most of them for writing the event"


def test_a_model_that_never_waits_does_not_keep_the_event_loop_to_itself(tmp_path: Path) -> None:
    """What waits for the loop is timers, signals and screens; what it can't clear away meanwhile would pile up."""

    async def main() -> int:
        setup = make_setup(Many(), {"target": instant()})
        async with running_job(setup, tmp_path, workers=4) as job:
            measuring = asyncio.ensure_future(job.evaluate(A, job.splits.train, purpose="train"))
            turns = 0
            while not measuring.done():
                await asyncio.sleep(0)
                turns += 1
            return turns

    assert asyncio.run(main()) >= 10


def test_a_scratch_folder_is_there_for_an_attempt_and_gone_after_it(tmp_path: Path) -> None:
    folders: list[Path] = []

    class Writing(Length):
        async def rollout(self, item: Item, candidate: Candidate, attempt: Attempt) -> Outcome:
            folders.append(attempt.scratch)
            (attempt.scratch / "note").write_text("x")
            if item.id == "val-4":
                raise ModelError(K.BAD_REQUEST, "no")
            return await super().rollout(item, candidate, attempt)

    async def do(job: Job) -> None:
        await job.evaluate(A, job.splits.val, purpose="gate")

    work(tmp_path, Fake(), do, task=Writing())
    assert len(set(folders)) == 10 and not any(folder.exists() for folder in folders)


def test_stages_say_what_they_used(tmp_path: Path) -> None:
    work(tmp_path, Fake(), several)
    done = {event["stage"]: event["usage"]["target"] for event in story(tmp_path) if event["type"] == "stage_done"}
    assert done["rollout"][:3] == [5, 15, 25] and done["gate"][:3] == [20, 60, 100]
    purposes = {(e["stage"], e["purpose"]) for e in story(tmp_path) if e["type"] == "measured"}
    assert purposes == {("rollout", "train"), ("gate", "gate")}


def test_a_checkpoint_is_on_disk_with_its_parts_and_scores(tmp_path: Path) -> None:
    both = Candidate({"SKILL.md": "a\r\nb\n", "notes/dates.md": "ß"})

    async def do(job: Job) -> None:
        job.checkpoint(Candidate({"SKILL.md": "x", "old.md": "y"}), 3, {})
        job.checkpoint(both, 3, {"val": 0.5})

    work(tmp_path, Fake(), do)
    home = tmp_path / "checkpoints" / "step_0003"
    assert sorted(path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file()) == [
        "metadata.json",
        "parts/SKILL.md",
        "parts/notes/dates.md",
    ]
    about = json.loads((home / "metadata.json").read_text())
    assert (about["step"], about["candidate"], about["metrics"]) == (3, both.digest, {"val": 0.5})
