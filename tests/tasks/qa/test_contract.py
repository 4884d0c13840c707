"""Families of every kind of scorer hold to the contract of tasks."""

from __future__ import annotations

from pathlib import Path

from sharpen.core.task import Task
from sharpen.tasks import registry
from sharpen.testing.tasks import TaskContract

DATA = Path(__file__).parent / "data"


class TestHotpotQA(TaskContract):
    def make(self) -> Task:
        return registry.get("qa/hotpot_qa", data=str(DATA / "hotpot_qa/site"))


class TestDrop(TaskContract):
    def make(self) -> Task:
        return registry.get("qa/drop", data=str(DATA / "drop/site"))


class TestGSM8K(TaskContract):
    def make(self) -> Task:
        return registry.get("qa/gsm8k", data=str(DATA / "gsm8k"))


class TestMath(TaskContract):
    def make(self) -> Task:
        return registry.get("qa/math", data=str(DATA / "math/hub"))


class TestArc(TaskContract):
    def make(self) -> Task:
        return registry.get("qa/arc", data=str(DATA / "arc/hub"))


class TestStrategyQA(TaskContract):
    def make(self) -> Task:
        return registry.get("qa/strategy_qa", data=str(DATA / "strategy_qa"))


class TestBBEH(TaskContract):
    def make(self) -> Task:
        return registry.get("qa/bbeh", data=str(DATA / "bbeh"))
