"""A training of a few items with an optimizer that says what a test wants it to say, and everything it was asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from faulty import Whole, run_whole

from sharpen.core.candidate import Candidate
from sharpen.core.chat import Request
from sharpen.core.task import Task
from sharpen.engine import checkpoints
from sharpen.engine.replay import read_events
from sharpen.models.scripted import DATA_HEADING, ScriptedModel
from sharpen.models.scripted_optimizer import STAGES
from sharpen.tasks.codebook import Codebook
from sharpen.tasks.splitting import Deal
from sharpen.testing.jobs import make_setup, running_job
from sharpen.trainers.base import Trained
from sharpen.trainers.reflact.loop import ReflACT

PLAIN: dict[str, Any] = {
    "epochs": 1,
    "batch_size": 24,
    "minibatch_size": 24,
    "proposers": (),
    "screen_items": 0,
    "gate": "strict",
    "drafts": False,
    "slow_update": False,
    "meta_skill": False,
    "confirm_share": 0.0,
}
"""One step, nobody but the optimizer, a gate that decides on any difference."""


@dataclass
class Played:
    """A training that was carried out."""

    folder: Path
    trained: Trained
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """System prompt and data of every question to the optimizer."""

    @property
    def events(self) -> list[dict[str, Any]]:
        return read_events(self.folder / "events.jsonl")

    def told(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == kind]

    def actions(self) -> list[str]:
        return [event["action"] for event in self.told("step_done")]

    def about(self, stage: str) -> list[dict[str, Any]]:
        """The data of every question of that stage."""
        return [data for _, data in self.asked if data["stage"] == stage]

    def saved(self) -> dict[str, Candidate]:
        """Every candidate that was kept, by its digest."""
        paths = [self.folder / event["path"] for event in self.told("checkpointed")]
        return {candidate.digest: candidate for candidate in map(checkpoints.load, paths)}


@pytest.fixture
def train(tmp_path: Path) -> Callable[..., Played]:
    """`train(reflect=..., gate="force")`: a function, or an answer, for each stage that is not to be answered as usual; and
    the settings that are not to be those of `PLAIN`."""
    numbers = iter(range(100))

    def play(*, task: Task | None = None, noise: float = 0.0, **given: Any) -> Played:
        own = {name: given.pop(name) for name in STAGES if name in given and name not in ("meta_skill", "slow_update")}
        own |= {name: given.pop(f"{name}_says") for name in ("meta_skill", "slow_update") if f"{name}_says" in given}
        asked: list[tuple[str, dict[str, Any]]] = []

        def optimizer(request: Request) -> str:
            said = next(m.content for m in request.messages if m.role == "user" and DATA_HEADING in m.content)
            data: dict[str, Any] = json.loads(said.partition("```json\n")[2].partition("\n```")[0])
            asked.append((request.messages[0].content, data))
            answer = own.get(data["stage"], STAGES[data["stage"]])
            reply = answer(data) if callable(answer) else answer
            return reply if isinstance(reply, str) else json.dumps(reply)

        target = ScriptedModel(f"scripted/rules?noise={noise}" if noise else "scripted/rules")
        models: Mapping[str, Any] = {"target": target, "optimizer": ScriptedModel("own/optimizer", optimizer)}
        folder = tmp_path / f"training-{next(numbers)}"
        trainer = ReflACT(ReflACT.Params.model_validate(PLAIN | given))

        async def go() -> Trained:
            setup = make_setup(task or Codebook(Deal(limit=24)), models)
            trainer.check(setup.splits, setup.initial, models)
            async with running_job(setup, folder) as job:
                return await trainer.train(job)

        return Played(folder, asyncio.run(go()), asked)

    return play


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Whole]:
    """Trainings that no fault was injected into, by name."""
    home = tmp_path_factory.mktemp("undisturbed")
    return lambda name: run_whole(name, home)
