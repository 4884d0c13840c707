"""Trainings with nothing to gain: how often they end with a claim. Answers vary, and proposals are idle or harmful."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from sharpen.core.chat import Request
from sharpen.core.rng import Stream
from sharpen.engine.replay import read_events
from sharpen.models.scripted import ScriptedModel, last_said
from sharpen.testing.jobs import make_setup, running_job
from sharpen.testing.simulator import RuleTask
from sharpen.trainers.finish import finish
from sharpen.trainers.reflact.loop import ReflACT
from sharpen.trainers.search.classic import BasicSearch


def useless(request: Request) -> str:
    """An optimizer whose edits change nothing, break items, or are as likely to do one as the other."""
    data: dict[str, Any] = json.loads(last_said(request).partition("```json")[2].partition("```")[0])
    if data["stage"] != "reflect":
        edits = [edit for patch in data["patches"] for edit in patch["edits"]] if data["stage"] == "merge" else []
        return json.dumps({"edits": edits, "order": list(range(len(data.get("edits", [])))), "content": ""})
    draw = Stream(0, last_said(request))
    line = draw.choice(
        [f"break: {draw.below(40)}", f"Take care ({draw.below(1000)}).", f"Be brief ({draw.below(1000)})."]
    )
    return json.dumps({"edits": [{"op": "append", "content": line, "support": 3}]})


def end(folder: Path, seed: int, kind: type[ReflACT] | type[BasicSearch]) -> tuple[bool, bool]:
    """Whether the training claims a gain on test, and whether its best is another one than it began with."""
    task = RuleTask(items=40, coins=0.6, base=0.5, seed=seed)
    models = {"target": ScriptedModel("scripted/echo"), "optimizer": ScriptedModel("own/optimizer", useless)}
    settings: dict[str, Any] = {"batch_size": 10}
    if kind is ReflACT:
        settings |= {"epochs": 1, "proposers": [], "screen_items": 8, "minibatch_size": 5}
    else:
        settings |= {"iterations": 3}

    async def go() -> None:
        async with running_job(make_setup(task, models, seed=seed), folder) as job:
            trained = await kind(kind.Params.model_validate(settings)).train(job)
            await finish(job, trained, step=job.progress.step)

    asyncio.run(go())
    events = read_events(folder / "events.jsonl")
    (gained,) = (event for event in events if event["type"] == "gained" and event["new"] == "best")
    (confirmed,) = (event for event in events if event["type"] == "best_confirmed")
    return gained["low"] is not None and gained["low"] > 0.0, confirmed["candidate"] != task.seed().digest


def test_a_training_without_a_gain_seldom_claims_one(tmp_path: Path) -> None:
    ends = [end(tmp_path / str(seed), seed, ReflACT) for seed in range(12)]
    assert sum(claimed for claimed, _ in ends) <= 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", [ReflACT, BasicSearch])
def test_the_same_over_many_trainings(tmp_path: Path, kind: type[ReflACT] | type[BasicSearch]) -> None:
    """A search that takes the highest score ends with another candidate nearly always, and claims no more for that."""
    runs = 150
    ends = [end(tmp_path / str(seed), seed, kind) for seed in range(runs)]
    # 2.5 % and two and a half standard errors
    assert sum(claimed for claimed, _ in ends) <= runs * 0.025 + 2.5 * (runs * 0.025 * 0.975) ** 0.5
    assert any(changed for _, changed in ends)
