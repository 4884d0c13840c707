"""The contract of a task: data in three splits, how one item is attempted, how the attempt is scored.

A task is written by subclassing `Task` and giving `splits`, `seed` and `rollout`; everything else has a default. A
rollout reaches the outside only through its `Attempt`: that is what lets the engine pay for each answer once, keep within
the budget, and replay. It must not catch `ModelError`: an infrastructure failure belongs to the engine, not to the score.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from sharpen.core.candidate import Candidate
from sharpen.core.chat import Reply, Request
from sharpen.core.errors import UsageError
from sharpen.core.item import Item
from sharpen.core.objective import Objective
from sharpen.core.outcome import Outcome
from sharpen.core.rng import Stream

SPLITS = ("train", "val", "test")


@dataclass(frozen=True)
class Splits:
    """Items for training, for deciding, and for the final word. Ids are unique and the three are disjoint (checked)."""

    train: tuple[Item, ...]
    val: tuple[Item, ...]
    test: tuple[Item, ...]

    def __post_init__(self) -> None:
        home: dict[str, str] = {}
        content: dict[str, str] = {}
        for name in SPLITS:
            for item in self[name]:
                if item.id in home:
                    where = f"twice in {name}" if home[item.id] == name else f"in {home[item.id]} and in {name}"
                    raise UsageError(f"item id {item.id!r} occurs {where}; ids must be unique over all splits")
                home[item.id] = name
                if content.setdefault(item.content, name) != name:
                    raise UsageError(
                        f"item {item.id!r} of {name} has the same content as one in {content[item.content]}; "
                        "splits must be disjoint"
                    )

    def __getitem__(self, name: str) -> tuple[Item, ...]:
        if name not in SPLITS:
            raise UsageError(f"unknown split {name!r}; the splits are {', '.join(SPLITS)}")
        items: tuple[Item, ...] = getattr(self, name)
        return items


@dataclass(frozen=True)
class Requirements:
    """What must be there for a task to run: Python packages by import name, programs on the path, a network.

    `checks` are for what is not found out by a name alone (that sandboxes work here); each gives what is missing, or None.
    """

    packages: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    network: bool = False
    checks: tuple[Callable[[], str | None], ...] = ()

    def missing(self) -> list[str]:
        """What is not there, in words; empty when the task can run."""
        return [
            *(f"Python package {name}" for name in self.packages if importlib.util.find_spec(name) is None),
            *(f"program {name}" for name in self.programs if shutil.which(name) is None),
            *(lacking for check in self.checks if (lacking := check()) is not None),
        ]


class Attempt(Protocol):
    """What a rollout may use. `render` names how the candidate is to reach the model; `rng` is this attempt's own."""

    @property
    def render(self) -> str: ...
    @property
    def rng(self) -> Stream: ...
    @property
    def scratch(self) -> Path: ...
    async def complete(self, request: Request, *, role: str = "target") -> Reply: ...


@dataclass(frozen=True)
class Brief:
    """What a task tells people and proposers about itself."""

    description: str = ""
    instructions: Sequence[str] = field(default_factory=tuple)
    answer_format: str = ""


class Task:
    """Base class of all tasks. `version` is part of every ledger key: bump it when the scoring changes."""

    name: str = ""
    version: str = "1"
    brief: Brief = Brief()
    requirements: Requirements = Requirements()
    renders: Mapping[str, str] = {}
    """Preferred rendering by model family (`"local"`, `"openai"`, ...); a model's own preference where absent."""
    stochastic: bool = False
    """Whether a rollout draws from `attempt.rng`, so that attempting an item again may end differently."""
    prompts: Mapping[str, str] = {}
    """Texts a trainer's prompts are to be replaced with for this task, by the prompt's name."""
    calls_per_rollout: int = 1
    """The most model calls one rollout makes; the budget reserves this many before it starts one. A task that says 0 needs
    no model, and none is opened for it."""
    objectives: Mapping[str, Objective] = {}
    """What the task aims at, where it is several things. Each is a measure that every scored outcome gives."""
    trainee: str = "text"
    """What is trained on it: `text`, or a `policy` with weights. A trainer trains one of them."""
    score_range: tuple[float, float] = (0.0, 1.0)
    """Between what scores lie. Those of text always lie in 0..1; the returns of an environment lie anywhere."""
    protocol: str = ""
    """How scores are measured, in words, where a score means little without it."""
    untrainable: str = ""
    """Why nothing of the task can be trained, where that is so. It can then be evaluated, and training refuses at once."""

    def splits(self) -> Splits:
        raise NotImplementedError

    def seed(self) -> Candidate:
        raise NotImplementedError

    def episodes(self, count: int, seed: int = 0) -> tuple[Item, ...]:
        """So many fresh items that are in no split, where a task can make them without end."""
        raise UsageError(f"task {self.name!r} has the items of its splits and no more; --episodes is for environments")

    async def rollout(self, item: Item, candidate: Candidate, attempt: Attempt) -> Outcome:
        raise NotImplementedError

    def answers(self, item: Item) -> tuple[str, ...]:
        """Texts that would give the item away if they stood in the skill. Used by the leak check."""
        return (item.reference,) if isinstance(item.reference, str) else ()

    def example(self, item: Item) -> tuple[str, str] | None:
        """The item as a worked example (input, output), where that makes sense."""
        return (item.text, item.reference) if isinstance(item.reference, str) else None
