"""ReflACT, with and without an optimizer model, holds to the contract of trainers."""

from __future__ import annotations

from collections.abc import Mapping

from sharpen.models.base import Model
from sharpen.testing.trainers import TrainerContract
from sharpen.trainers.base import Trainer
from sharpen.trainers.reflact.loop import ReflACT
from sharpen.trainers.reflact.params import ReflACTParams


class TestReflACT(TrainerContract):
    def make(self) -> Trainer:
        return ReflACT(ReflACTParams(epochs=2, batch_size=8, minibatch_size=4, screen_items=8, edit_budget=3))


class TestReflACTWithoutAnOptimizer(TrainerContract):
    def make(self) -> Trainer:
        return ReflACT(ReflACTParams(epochs=1, batch_size=8, screen_items=8, gate="strict"))

    def models(self, noise: float) -> Mapping[str, Model]:
        return {"target": super().models(noise)["target"]}
