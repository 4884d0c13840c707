"""Rollouts may use several roles: the target does the task, a judge scores it, and each is counted on its own."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sharpen.core.candidate import Candidate
from sharpen.core.chat import Message, Request
from sharpen.core.errors import UsageError
from sharpen.core.item import Item
from sharpen.core.outcome import Outcome, scored
from sharpen.core.task import Attempt, Splits, Task
from sharpen.engine.replay import read_events
from sharpen.models.base import Model
from sharpen.models.scripted import ScriptedModel
from sharpen.testing.jobs import make_setup, running_job


class Judged(Task):
    name = "judged"
    calls_per_rollout = 2

    def splits(self) -> Splits:
        items = [Item(f"{n}", {"input": f"say {n}"}, str(n)) for n in range(6)]
        return Splits(tuple(items[:4]), (items[4],), (items[5],))

    def seed(self) -> Candidate:
        return Candidate("Say it.")

    async def rollout(self, item: Item, candidate: Candidate, attempt: Attempt) -> Outcome:
        asked = (Message("system", candidate.text), Message("user", item.text))
        answer = (await attempt.complete(Request(asked))).text
        verdict = await attempt.complete(Request((Message("user", f"{answer} | {item.reference}"),)), role="judge")
        return scored(item.id, verdict.text == "yes", answer=answer)


def judge(request: Request) -> str:
    answer, reference = request.messages[-1].content.split(" | ")
    return "yes" if answer.endswith(reference) and reference != "3" else "no"


def evaluate(folder: Path, models: dict[str, Model]) -> float | None:
    async def go() -> float | None:
        async with running_job(make_setup(Judged(), models), folder) as job:
            return (await job.evaluate(job.initial, job.splits.train, purpose="train")).mean

    return asyncio.run(go())


def test_the_judge_scores_and_is_counted_on_its_own(tmp_path: Path) -> None:
    models: dict[str, Model] = {"target": ScriptedModel("scripted/echo"), "judge": ScriptedModel("own/judge", judge)}
    assert evaluate(tmp_path, models) == 0.75
    (event,) = read_events(tmp_path / "events.jsonl")
    assert {role: row[0] for role, row in event["usage"].items()} == {"target": 4, "judge": 4}


def test_a_role_without_a_model_is_said_plainly(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no model is given for the role 'judge'; given: target"):
        evaluate(tmp_path, {"target": ScriptedModel("scripted/echo")})
