"""Trainings with optimizers of other packages: models that read what those ask, tasks that try them, a look at results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import question_readers

from sharpen.core.candidate import Candidate
from sharpen.core.chat import Request
from sharpen.core.task import Task
from sharpen.models.base import Model
from sharpen.models.scripted import ScriptedModel
from sharpen.tasks.codebook import Codebook
from sharpen.tasks.splitting import Deal
from sharpen.testing.trainers import Ran, TrainerContract
from sharpen.trainers.base import Trainer
from sharpen.trainers.search.course import CourseParams

Reader = Callable[[Request], str]


class Contract(TrainerContract):
    """The contract for a kind of trainer with some settings; `reader` plays its optimizer model."""

    kind: ClassVar[type[Trainer]]
    params: ClassVar[Mapping[str, Any]]
    reader: ClassVar[Reader]

    def make(self) -> Trainer:
        return self.kind(self.kind.Params(**self.params))

    def models(self, noise: float) -> Mapping[str, Model]:
        name = f"own/target?noise={noise}" if noise else "own/target"
        target = ScriptedModel(name, question_readers.by_rules_and_examples)
        return {"target": target, "optimizer": ScriptedModel("own/optimizer", type(self).reader)}


def training(kind: type[Trainer], reader: Reader, task: type[Codebook] = Codebook, **params: Any) -> Contract:
    """One training with a trainer, an optimizer model, a task and settings of a test's own."""
    given = {"kind": kind, "reader": staticmethod(reader), "params": params, "task": lambda self: task(Deal(limit=24))}
    made: Contract = type("Training", (Contract,), given)()
    return made


class Guarded(Codebook):
    """A task whose skill has a region that nobody may touch."""

    region = "<!-- HOUSE_START -->\nNever say why.\n<!-- HOUSE_END -->"
    skill = f"{Codebook.skill}\n\n{region}"


class Parts(Codebook):
    """A task whose skill has two parts, the second one laid out in a way that must survive."""

    def seed(self) -> Candidate:
        return super().seed().with_part("notes.md", "  Notes,\n    indented.\n\n")


def few() -> Task:
    return Codebook(Deal(limit=24))


def watched(reader: Reader) -> tuple[list[str], Reader]:
    """A reader that keeps every question it is asked."""
    asked: list[str] = []

    def read(request: Request) -> str:
        asked.append("\n".join(message.content for message in request.messages))
        return reader(request)

    return asked, read


def told(ran: Ran, kind: str) -> list[dict[str, Any]]:
    return [event for event in ran.events if event["type"] == kind]


def check_that_it_learnt(ran: Ran, gain: float) -> None:
    """It gained so much on test; the best it found is the best it reports; whatever led was saved."""
    groups = [group for event in told(ran, "measured") for group in event["groups"] if group["items"] == "val"]
    means = {group["candidate"]: sum(group["hard"]) / len(group["hard"]) for group in groups}
    (confirmed,) = told(ran, "best_confirmed")
    assert confirmed["raw"] == max(means.values()) == means[confirmed["candidate"]]
    initial, best, _ = told(ran, "tested")
    assert best["score"][0] >= initial["score"][0] + gain
    leaders = {event["new"] for event in told(ran, "decided") if event["accepted"]}
    assert leaders and leaders <= {event["candidate"] for event in told(ran, "checkpointed")}


def undocumented(kind: type[Trainer]) -> list[str]:
    """Settings that the page on trainers does not name with their default."""
    page = (Path(__file__).parents[3] / "docs" / "trainers.md").read_text(encoding="utf-8")
    own = {
        name: field.default for name, field in kind.Params.model_fields.items() if name not in CourseParams.model_fields
    }
    return [name for name, default in own.items() if f"`{name}` ({_written(default)})" not in page]


def _written(default: Any) -> str:
    if default is None:
        return "none"
    return f"`{default}`" if isinstance(default, str) else json.dumps(default)


_SCRIPT = """
import hashlib, importlib, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from sharpen.testing.trainers import left_behind
contract = getattr(importlib.import_module(sys.argv[2]), sys.argv[3])()
files = left_behind(contract.train(Path(sys.argv[4])).folder)
print(hashlib.sha256(files["events.jsonl"]).hexdigest())
"""


def stories(contract: type[Contract], home: Path) -> list[str]:
    """A digest of the story of a training as two processes tell it, which order sets of strings in different ways."""
    found = []
    for seed in ("1", "2"):
        names = [contract.__module__, contract.__name__]
        given = [sys.executable, "-c", _SCRIPT, str(Path(__file__).parent), *names, str(home / seed)]
        env = {**os.environ, "PYTHONHASHSEED": seed}
        found.append(subprocess.run(given, env=env, capture_output=True, text=True, check=True).stdout)
    return found
