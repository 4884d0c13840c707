"""ReflACT on a task whose truth is known: what it accepts, what it vouches for, and what it says about it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from sharpen.core.candidate import Candidate
from sharpen.core.chat import Request
from sharpen.core.rng import Stream
from sharpen.engine import checkpoints
from sharpen.engine.replay import read_events
from sharpen.models.scripted import ScriptedModel, last_said
from sharpen.testing.jobs import make_setup, running_job
from sharpen.testing.simulator import RuleTask
from sharpen.trainers.finish import finish
from sharpen.trainers.reflact.loop import ReflACT


def optimizer(request: Request) -> str:
    """Proposes what its prompt alone decides: a repair of failing items, a line that breaks some, or an idle one."""
    data: dict[str, Any] = json.loads(last_said(request).partition("```json")[2].partition("```")[0])
    if data["stage"] != "reflect":
        edits = [edit for patch in data["patches"] for edit in patch["edits"]] if data["stage"] == "merge" else []
        return json.dumps({"edits": edits, "order": list(range(len(data.get("edits", [])))), "content": ""})
    numbers = sorted(int(attempt["item"].partition("-")[2]) for attempt in data["attempts"])
    draw = Stream(0, last_said(request))
    line = draw.choice(
        [f"fix: {' '.join(map(str, numbers))}", f"break: {draw.below(100)} {draw.below(100)}", "Take care."]
    )
    return json.dumps({"edits": [{"op": "append", "content": line, "support": len(numbers)}]})


def train(folder: Path, seed: int, **params: Any) -> tuple[RuleTask, list[dict[str, Any]]]:
    task = RuleTask(items=100, coins=0.2, base=0.4, seed=seed)
    models = {"target": ScriptedModel("scripted/echo"), "optimizer": ScriptedModel("own/optimizer", optimizer)}
    settings = {"epochs": 2, "batch_size": 20, "proposers": [], "screen_items": 0, "minibatch_size": 5, **params}

    async def go() -> None:
        async with running_job(make_setup(task, models, seed=seed), folder) as job:
            assert job.repeatable
            trained = await ReflACT(ReflACT.Params.model_validate(settings)).train(job)
            await finish(job, trained, step=job.progress.step)

    asyncio.run(go())
    return task, read_events(folder / "events.jsonl")


def candidates(folder: Path, events: list[dict[str, Any]]) -> dict[str, Candidate]:
    saved = [checkpoints.load(folder / event["path"]) for event in events if event["type"] == "checkpointed"]
    return {candidate.digest: candidate for candidate in saved}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_is_accepted_is_truly_better_and_the_honest_score_is_near_the_truth(tmp_path: Path, seed: int) -> None:
    task, events = train(tmp_path, seed)
    known = candidates(tmp_path, events)
    accepted = [event for event in events if event["type"] == "decided" and event["accepted"] and event["new"] in known]
    assert accepted
    for decision in accepted:
        assert task.true_score(known[decision["new"]]) > task.true_score(known[decision["old"]])
    (confirmed,) = (event for event in events if event["type"] == "best_confirmed")
    truth = task.true_score(known[confirmed["candidate"]])
    assert truth >= task.true_score(task.seed()) + 0.1
    assert confirmed["how"] == "val items held back" and abs(confirmed["value"] - truth) < 0.2


def test_the_gate_draws_again_where_answers_vary(tmp_path: Path) -> None:
    _, events = train(tmp_path, 1)
    samples = {
        group["sample"] for e in events if e["type"] == "measured" and e["purpose"] == "gate" for group in e["groups"]
    }
    assert {0, 1} <= samples
