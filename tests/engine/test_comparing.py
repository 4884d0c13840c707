"""Between a gate and the job: what is known is shown, what is asked for is fetched once, failures are shown as None."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from sharpen.core.candidate import Candidate
from sharpen.core.chat import Request
from sharpen.core.errors import ModelError, ModelErrorKind
from sharpen.engine.evaluation import Group
from sharpen.engine.job import Job
from sharpen.engine.replay import read_events
from sharpen.gates.base import Draw, Evidence, Need, Verdict
from sharpen.models.scripted import ScriptedModel
from sharpen.models.scripted_rules import rules
from sharpen.tasks.codebook import Codebook, code_words
from sharpen.testing.jobs import make_setup, running_job

T = TypeVar("T")
NEW = Candidate("\n".join(f"- {kind}: {word}" for kind, word in code_words().items()))


class Scripted:
    """A gate that asks for the listed draws in turn, then accepts; keeps what it was shown."""

    name = "scripted"

    def __init__(self, *needs: list[Draw]) -> None:
        self.needs = [Need(tuple(draws)) for draws in needs]
        self.seen: list[Evidence] = []

    def decide(self, evidence: Evidence) -> Verdict | Need:
        self.seen.append(evidence)
        return self.needs.pop(0) if self.needs else Verdict(True, "enough", 0.5)


def with_job(folder: Path, do: Callable[[Job], Awaitable[T]], *, noise: float = 0.0, failing: str = "\0") -> T:
    def answer(request: Request) -> str:
        if failing in request.messages[-1].content:
            raise ModelError(ModelErrorKind.BAD_REQUEST, "no")
        return rules(request)

    async def main() -> T:
        model = ScriptedModel("scripted/own", answer, noise=noise)
        async with running_job(make_setup(Codebook(), {"target": model}), folder, max_failures=0.5) as job:
            return await do(job)

    return asyncio.run(main())


def test_the_incumbents_outcomes_are_shown_from_the_start_and_not_paid_for_again(tmp_path: Path) -> None:
    async def do(job: Job) -> None:
        items = job.splits.val[:4]
        await job.evaluate(job.initial, items[:2], purpose="gate")
        gate = Scripted([Draw(n, "new", 0) for n in range(4)], [Draw(3, "old", 0)])
        found = await job.compare(NEW, job.initial, items, gate, step=1, planned=9)
        assert [pair.old for pair in gate.seen[0].pairs] == [(0.0,), (0.0,), (), ()]
        assert [pair.new for pair in gate.seen[0].pairs] == [()] * 4
        assert [pair.new for pair in gate.seen[1].pairs] == [(1.0,)] * 4
        assert [len(pair.old) for pair in gate.seen[2].pairs] == [1, 1, 0, 1]
        assert (found.rollouts, found.new_score, found.old_score) == (5, 1.0, 0.0)
        assert job.meter.total.calls == 2 + 5
        assert {(e.decision, e.planned, e.repeatable) for e in gate.seen} == {(0, 9, False)}

    with_job(tmp_path, do)
    decided = read_events(tmp_path / "events.jsonl")[-1]
    assert (decided["type"], decided["accepted"], decided["rollouts"], decided["items"]) == ("decided", True, 5, 4)


def test_further_samples_are_drawn_anew_where_answers_may_differ(tmp_path: Path) -> None:
    async def do(job: Job) -> None:
        items = job.splits.val
        first = [Draw(n, arm, 0) for n in range(len(items)) for arm in ("new", "old")]
        second = [Draw(n, arm, 1) for n in range(len(items)) for arm in ("new", "old")]
        gate = Scripted(first, second)
        found = await job.compare(NEW, job.initial, items, gate, step=2)
        pairs = gate.seen[-1].pairs
        assert found.rollouts == 4 * len(items) and gate.seen[0].repeatable
        assert any(pair.new[0] != pair.new[1] for pair in pairs), "two draws of a noisy model differ somewhere"

    with_job(tmp_path, do, noise=0.4)


def test_a_draw_that_failed_is_shown_as_none(tmp_path: Path) -> None:
    failing = Codebook().splits().val[1].text

    async def do(job: Job) -> None:
        gate = Scripted([Draw(n, "new", 0) for n in range(3)])
        found = await job.compare(NEW, job.initial, job.splits.val[:3], gate, step=1)
        assert [pair.new for pair in gate.seen[1].pairs] == [(1.0,), (None,), (1.0,)]
        assert found.new_score == 1.0 and found.old_score is None

    with_job(tmp_path, do, failing=failing)


def test_a_gate_that_asks_for_what_it_has_is_told_so(tmp_path: Path) -> None:
    async def do(job: Job) -> None:
        draws = [Draw(0, "new", 0)]
        with pytest.raises(ValueError, match="which it has been given"):
            await job.compare(NEW, job.initial, job.splits.val[:2], Scripted(draws, draws), step=1)

    with_job(tmp_path, do)


def test_items_are_measured_in_the_order_the_gate_asked_for(tmp_path: Path) -> None:
    async def do(job: Job) -> None:
        gate = Scripted([Draw(2, "new", 0), Draw(0, "new", 0)])
        await job.compare(NEW, job.initial, job.splits.val[:3], gate, step=1)
        assert [pair.new for pair in gate.seen[1].pairs] == [(1.0,), (), (1.0,)]

    with_job(tmp_path, do)


def test_the_gate_is_told_what_was_stored_and_which_items_belong_together(tmp_path: Path) -> None:
    async def do(job: Job) -> None:
        one, two, three = job.splits.val[:3]
        items = [replace(one, group="a"), replace(two, group="a"), three]
        await job.evaluate(job.initial, items[:2], purpose="gate")
        gate = Scripted([Draw(n, "new", 0) for n in range(3)], [Draw(0, "old", 1)])
        await job.compare(NEW, job.initial, items, gate, step=1)
        assert [(pair.stored_new, pair.stored_old) for pair in gate.seen[-1].pairs] == [(0, 1)] * 3
        assert gate.seen[-1].groups is not None
        assert [name == gate.seen[-1].groups[0] for name in gate.seen[-1].groups] == [True, True, False]

    with_job(tmp_path, do, noise=0.5)


def test_arms_are_measured_side_by_side_where_answers_vary(tmp_path: Path) -> None:
    """A hundred rollouts of one arm before the first of the other would let a drifting endpoint decide."""
    asked: list[bool] = []

    def answer(request: Request) -> str:
        asked.append(NEW.text in request.messages[0].content)
        return rules(request)

    async def main() -> None:
        model = ScriptedModel("scripted/own", answer, noise=0.1)
        async with running_job(make_setup(Codebook(), {"target": model}), tmp_path, workers=1) as job:
            await job.measure([Group(NEW, job.splits.val), Group(job.initial, job.splits.val)], purpose="test")

    asyncio.run(main())
    assert all(asked[place] != asked[place + 1] for place in range(0, len(asked), 2))
    assert {asked[place] for place in range(0, len(asked), 2)} == {True, False}
