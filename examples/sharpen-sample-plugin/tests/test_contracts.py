"""What the package adds holds to the contracts of sharpen."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from sharpen_sample.gate import Margin
from sharpen_sample.model import NearestModel
from sharpen_sample.task import Topics
from sharpen_sample.trainer import Climber, Params

from sharpen.core.task import Task
from sharpen.gates.base import Gate
from sharpen.models.base import Model
from sharpen.testing.gates import GateContract
from sharpen.testing.models import ModelContract, opened
from sharpen.testing.tasks import TaskContract
from sharpen.testing.trainers import TrainerContract
from sharpen.trainers.base import Trainer


class TestTopics(TaskContract):
    def make(self) -> Task:
        return Topics()


class TestNearestModel(ModelContract):
    def opened(self) -> AbstractAsyncContextManager[Model]:
        return opened(NearestModel("nearest/words"))


class TestMargin(GateContract):
    def make(self) -> Gate:
        return Margin()


class TestClimber(TrainerContract):
    def make(self) -> Trainer:
        return Climber(Params(rounds=4))
