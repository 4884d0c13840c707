"""Further defects that trainers of this kind are known for, and what is right here instead.

What concerns the slow update, and scores that another document earned, is in `tests/trainers/test_epoch_end.py`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sharpen.core.chat import Reply, Request
from sharpen.core.outcome import FailureKind
from sharpen.engine.replay import read_events
from sharpen.gates.sequential import Sequential
from sharpen.models.scripted import ScriptedModel
from sharpen.models.scripted_rules import rules
from sharpen.tasks.codebook import Codebook
from sharpen.tasks.splitting import Deal
from sharpen.testing.jobs import make_setup, running_job
from sharpen.testing.simulator import scenario, simulate_decisions
from sharpen.trainers.base import Trained
from sharpen.trainers.reflact.fit import CHARACTERS_PER_TOKEN
from sharpen.trainers.reflact.loop import ReflACT
from sharpen.trainers.reflact.prompts import load
from sharpen.trainers.reflact.schedule import edit_budget

TASK = Codebook(Deal(limit=16))


def training(
    folder: Path, optimizer: Callable[[Request], str], *, target: ScriptedModel | None = None, **params: Any
) -> tuple[Trained, list[dict[str, Any]]]:
    settings = {"epochs": 1, "batch_size": 16, "proposers": (), "screen_items": 0, "gate": "strict", **params}

    async def go() -> Trained:
        models = {"target": target or ScriptedModel("scripted/rules"), "optimizer": ScriptedModel("own/one", optimizer)}
        async with running_job(make_setup(TASK, models), folder) as job:
            return await ReflACT(ReflACT.Params.model_validate(settings)).train(job)

    return asyncio.run(go()), read_events(folder / "events.jsonl")


def proposing(*contents: str) -> Callable[[Request], str]:
    answer = json.dumps({"edits": [{"op": "append", "content": content} for content in contents]})
    return lambda request: answer


def test_a_rollout_past_its_time_is_stopped_and_is_no_score(tmp_path: Path) -> None:
    """What timed out holds no worker and writes nothing afterwards."""
    stopped = 0

    class Hanging(ScriptedModel):
        async def complete(self, request: Request) -> Reply:
            nonlocal stopped
            if TASK.splits().val[0].text in request.messages[-1].content:
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    stopped += 1
                    raise
            return await super().complete(request)

    async def go() -> None:
        setup = make_setup(TASK, {"target": Hanging("scripted/rules")})
        hasty = replace(setup, sampling=replace(setup.sampling, timeout=0.05))
        async with running_job(hasty, tmp_path, workers=2) as job:
            found = await job.evaluate(job.initial, job.splits.val, purpose="gate")
            assert found.failures[TASK.splits().val[0].id].kind is FailureKind.TIMEOUT
            assert found.hard[0] is None and len(found.scored) == 15

    asyncio.run(go())
    assert stopped == 1


def test_skipped_steps_advance_the_schedule_like_any_other(tmp_path: Path) -> None:
    """The budget of a step is a function of its number alone, so that a resume can't change it."""
    params = {"batch_size": 4, "edit_budget": 8, "min_edit_budget": 1, "schedule": "linear", "minibatch_size": 4}
    asked: list[int] = []

    def silent(request: Request) -> str:
        asked.append(json.loads(request.messages[-1].content.partition("```json\n")[2].partition("\n```")[0])["budget"])
        return json.dumps({"edits": []})

    _, events = training(tmp_path, silent, **params)
    assert [event["action"] for event in events if event["type"] == "step_done"] == ["skip_no_edits"] * 4
    assert asked == [edit_budget("linear", step, 4, most=8, least=1) for step in (1, 2, 3, 4)] == [8, 6, 3, 1]


def test_a_crash_within_a_batch_loses_no_answer_that_was_paid_for(tmp_path: Path) -> None:
    """Every answer is kept as it comes, not when the whole batch is done."""
    calls: list[str] = []

    def crashing(request: Request) -> str:
        if len(calls) == 9:
            raise KeyboardInterrupt
        calls.append(request.messages[-1].content)
        return rules(request)

    async def measure(model: ScriptedModel) -> float | None:
        async with running_job(make_setup(TASK, {"target": model}), tmp_path, workers=1) as job:
            return (await job.evaluate(job.initial, job.splits.val, purpose="gate")).mean

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(measure(ScriptedModel("scripted/rules", crashing)))
    calls.append("so that it goes on")
    assert asyncio.run(measure(ScriptedModel("scripted/rules", crashing))) == 0.0
    assert len(calls) == 16 + 1 and len(set(calls)) == 17


def test_a_reader_that_brought_nothing_is_counted_and_not_paid_again_on_resume(tmp_path: Path) -> None:
    """An answer belongs to its question, not to a number; and a lost one is visible."""
    asked = 0

    def useless(request: Request) -> str:
        nonlocal asked
        asked += 1
        return "I could not say."

    for _ in range(2):
        _, events = training(tmp_path, useless, minibatch_size=4)
        assert asked == 8, "each of four readers was asked once, and once more with what was wrong"
        (proposed,) = (event for event in events if event["type"] == "proposed")
        (reflected,) = (event for event in events if event["type"] == "reflected")
        assert proposed["lost_answers"] == 4 and all(
            "bad_reply" in reading["error"] for reading in reflected["readings"]
        )


def test_every_protected_region_is_announced_to_whoever_writes_changes() -> None:
    edits = load("answer_edits")
    assert "<!-- NAME_START -->" in edits and "<!-- PROTECTED:name START -->" in edits
    assert "[[PROTECTED 1]]" in load("answer_rewrite") and "[[PROTECTED 1]]" in load("answer_suggestions")


def test_skipped_steps_have_their_cost_and_every_step_has_its_line(tmp_path: Path) -> None:
    def optimizer(request: Request) -> str:
        suggestion = {"title": "x", "instruction": "do x"}
        return (
            "nothing"
            if '"stage": "rewrite"' in request.messages[-1].content
            else json.dumps({"suggestions": [suggestion]})
        )

    params = {"batch_size": 8, "minibatch_size": 8, "update_mode": "rewrite_from_suggestions"}
    _, events = training(tmp_path, optimizer, **params)
    assert [e["action"] for e in events if e["type"] == "step_done"] == ["skip_no_rewrite"] * 2
    paid = [event["usage"].get("optimizer", [0])[0] for event in events if event["type"] == "stage_done"]
    stages = [(event["step"], event["stage"]) for event in events if event["type"] == "stage_done"]
    spent = dict(zip(stages, paid, strict=True))
    assert spent[(1, "reflect")] >= 1 and spent[(1, "select")] >= 2 and spent[(2, "select")] >= 2


def test_a_question_is_cut_to_the_optimizers_context_and_says_so(tmp_path: Path) -> None:
    """Long attempts are shortened, none is dropped, and the reader is told how much is missing."""
    sizes: list[int] = []

    def reading(request: Request) -> str:
        said = request.messages[-1].content
        sizes.append(len(said))
        assert len(json.loads(said.partition("```json\n")[2].partition("\n```")[0])["attempts"]) == 16
        assert "characters left out" in said
        return json.dumps({"edits": []})

    wordy = ScriptedModel("own/wordy", lambda request: "word " * 900)

    class Wordy(Codebook):
        max_tokens = 1000

    async def go() -> None:
        params = {"epochs": 1, "batch_size": 16, "minibatch_size": 16, "proposers": (), "context_tokens": 6000}
        models = {"target": wordy, "optimizer": ScriptedModel("own/reading", reading)}
        async with running_job(make_setup(Wordy(Deal(limit=16)), models), tmp_path) as job:
            await ReflACT(ReflACT.Params.model_validate({**params, "answer_tokens": 500})).train(job)

    asyncio.run(go())
    assert sizes and max(sizes) <= (6000 - 500) * CHARACTERS_PER_TOKEN
    (shortened,) = (e for e in read_events(tmp_path / "events.jsonl") if e["type"] == "shortened")
    assert shortened["characters"] > 40_000 and shortened["fits"]


def test_a_context_too_small_for_any_question_is_told(tmp_path: Path) -> None:
    _, events = training(tmp_path, proposing("x"), context_tokens=512, answer_tokens=500, minibatch_size=16)
    assert [event["fits"] for event in events if event["type"] == "shortened"] == [False]


def test_train_and_val_are_attempted_in_the_same_way(tmp_path: Path) -> None:
    """A rollout does not know what it is for: the same item and candidate are one rollout, whatever the purpose."""

    async def go() -> None:
        async with running_job(make_setup(TASK, {"target": ScriptedModel("scripted/rules")}), tmp_path) as job:
            items = job.splits.train
            first = await job.evaluate(job.initial, items, purpose="train")
            again = await job.evaluate(job.initial, items, purpose="gate")
            assert list(first.hard) == list(again.hard) and job.meter.total.calls == len(items)

    asyncio.run(go())


def test_a_useless_candidate_is_turned_down_before_the_whole_split_was_tried() -> None:
    """Comparison is paired, starts from what is known of the incumbent, and stops when more would not help."""
    useless = simulate_decisions(Sequential(), scenario(100, losses=20, coins=0.0, base=0.5), runs=40)
    assert useless.accepted == 0 and useless.passes < 0.5


def test_an_answer_copied_from_val_is_found_by_the_program_and_not_only_forbidden_in_a_prompt(tmp_path: Path) -> None:
    item = TASK.splits().val[0]
    trained, events = training(tmp_path, proposing(f"- {item.text}: {item.reference}"), minibatch_size=16)
    (done,) = (event for event in events if event["type"] == "step_done")
    assert done["action"] == "skip_leak" and trained.final == trained.initial
    (revised,) = (event for event in events if event["type"] == "revised")
    assert revised["leaks"][0][:2] == [item.id, "val"]
    assert not [event for event in events if event["type"] == "measured" and event["purpose"] == "gate"]


def test_a_change_that_changes_nothing_is_not_measured(tmp_path: Path) -> None:
    _, events = training(tmp_path, proposing(TASK.skill), minibatch_size=16)
    assert [event["action"] for event in events if event["type"] == "step_done"] == ["skip_no_change"]
    assert not [event for event in events if event["type"] == "decided"]
