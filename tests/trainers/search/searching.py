"""Trainings of tasks whose truth is known, by any trainer, with an optimizer that is sometimes wrong."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sharpen.core.candidate import Candidate
from sharpen.core.chat import Request
from sharpen.core.rng import Stream
from sharpen.core.task import Task
from sharpen.engine import checkpoints
from sharpen.engine.replay import read_events
from sharpen.models.base import Model
from sharpen.models.scripted import ScriptedModel, last_said
from sharpen.skill import examples
from sharpen.testing.jobs import make_setup, running_job
from sharpen.trainers import registry
from sharpen.trainers.base import Trained
from sharpen.trainers.finish import finish


@dataclass(frozen=True)
class Ran:
    folder: Path
    trained: Trained

    @property
    def events(self) -> list[dict[str, Any]]:
        return read_events(self.folder / "events.jsonl")

    def told(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == kind]

    def saved(self, name: str) -> Candidate:
        return checkpoints.load(self.folder / "checkpoints" / name)


def carry_out(name: str, task: Task, models: Mapping[str, Model], folder: Path, *, seed: int = 0, **params: Any) -> Ran:
    """Train by the trainer of that name, with its closing measurement."""
    kind = registry.get(name)
    trainer = kind(kind.Params.model_validate(params))

    async def go() -> Trained:
        setup = make_setup(task, models, seed=seed)
        trainer.check(setup.splits, setup.initial, models)
        async with running_job(setup, folder) as job:
            trained = await trainer.train(job)
            await finish(job, trained, step=job.progress.step)
            return trained

    return Ran(folder, asyncio.run(go()))


def repairing(request: Request) -> str:
    """An optimizer of `RuleTask`. Of three readings two repair failing items and one breaks some, as what it is shown
    decides; of a document it keeps what is there."""
    data: dict[str, Any] = json.loads(last_said(request).partition("```json")[2].rpartition("```")[0])
    if data["stage"] != "reflect":
        edits = [edit for patch in data.get("patches", []) for edit in patch["edits"]]
        return json.dumps({"edits": edits, "order": list(range(len(data.get("edits", []))))})
    numbers = sorted(int(attempt["item"].partition("-")[2]) for attempt in data["attempts"])
    draw = Stream(0, last_said(request))
    line = f"break: {draw.below(40)} {draw.below(40)}" if draw.below(3) == 0 else f"fix: {' '.join(map(str, numbers))}"
    if data["mode"] == "full_rewrite_minibatch":
        return json.dumps({"documents": [{"text": f"{data['skill'].rstrip()}\n{line}\n"}] if numbers else []})
    part = draw.choice([None, *data["other_parts"]])
    return json.dumps({"edits": [{"op": "append", "content": line, "part": part, "support": len(numbers)}]})


def rule_models() -> dict[str, Model]:
    return {"target": ScriptedModel("scripted/echo"), "optimizer": ScriptedModel("own/repairing", repairing)}


def by_example(request: Request) -> str:
    """A target of `codebook` that knows a kind's code word only from a worked example of that kind."""
    skill = "\n".join(message.content for message in request.messages if message.role == "system")
    shown = {example.input.partition(":")[0]: example.output for example in examples.parse(skill).examples}
    return shown.get(last_said(request).partition(":")[0], "unknown")


def example_models() -> dict[str, Model]:
    return {"target": ScriptedModel("own/by-example", by_example)}
