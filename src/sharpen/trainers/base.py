"""The contract of a trainer.

A trainer is a deterministic program over a `Job`: it draws randomness only from `job.rng`, sees results in item order, and
reaches the outside only through the job. It holds no state between jobs and contains no code for resuming. It returns the
candidate it vouches for and the one it ended with; confirming and testing them is done for all trainers alike.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from sharpen.core.candidate import Candidate
from sharpen.core.item import Item
from sharpen.core.task import Splits, Task
from sharpen.engine.job import Job
from sharpen.engine.metric import HARD, Metric

if TYPE_CHECKING:
    from pydantic import BaseModel


@dataclass(frozen=True)
class Trained:
    """What a training came to. `raw` is the score `best` was chosen by."""

    initial: Candidate
    best: Candidate
    final: Candidate
    best_step: int
    raw: float | None
    held_back: Sequence[Item] = ()
    """Val items nothing was decided on, kept for confirming the best."""
    out_of_budget: bool = False
    metric: Metric = HARD
    """What `raw` is measured in; the confirmed score is too. The test is always on hard scores."""


@dataclass(frozen=True)
class Ground:
    """What a training works on, in numbers: train items, val items that decide, the parts of the candidate; whether another
    draw may end differently, and whether there is an optimizer to ask."""

    train: int
    deciding: int
    parts: int
    repeatable: bool
    asks: bool


@dataclass(frozen=True)
class Effort:
    """The most a training may take before the closing measurement: rollouts, and questions to the optimizer."""

    steps: int
    rollouts: int
    questions: int = 0


class Trainer:
    """Base class of all trainers. `Params` is a strict pydantic model; `version` changes when results would."""

    name: ClassVar[str] = ""
    version: ClassVar[str] = "1"
    description: ClassVar[str] = ""
    trains: ClassVar[str] = "text"
    """What it trains: `text`, or a `policy` with weights."""
    Params: ClassVar[type[BaseModel]]

    def __init__(self, params: Any) -> None:
        self.params = params

    def check(self, splits: Splits, initial: Candidate, roles: Collection[str]) -> None:
        """Raise `UsageError` where the settings do not fit the data, the initial candidate or the models there are. Called
        before anything is paid for."""

    def suits(self, task: Task) -> None:
        """Raise `UsageError` where this trainer can't work on that task at all. Called before anything else of it is."""

    async def train(self, job: Job) -> Trained:
        raise NotImplementedError

    def closing_calls(self, task: Task, splits: Splits, *, repeatable: bool) -> int:
        """Model calls the closing measurement can't do without; the budget sets them aside. A final candidate that is not
        the best one is tested where there is room."""
        needed = self.closing_rollouts(splits, repeatable=repeatable) - len(splits.test)
        return needed * task.calls_per_rollout

    def closing_rollouts(self, splits: Splits, *, repeatable: bool) -> int:
        """Rollouts the closing measurement may need: all three candidates on test, and two where the best is confirmed."""
        confirming = self.held_back(len(splits.val)) or (len(splits.val) if repeatable else 0)
        return 3 * len(splits.test) + 2 * confirming

    def effort(self, ground: Ground) -> Effort | None:
        """The most these settings may take, where that can be told; `sharpen validate` shows it."""
        return None

    def held_back(self, val: int) -> int:
        """How many of so many val items are kept for confirming the best."""
        return 0
