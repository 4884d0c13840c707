"""The contract suite, for every gate that comes with sharpen."""

from __future__ import annotations

from sharpen.gates import registry
from sharpen.gates.base import Gate
from sharpen.testing.gates import GateContract


class TestSequential(GateContract):
    def make(self) -> Gate:
        return registry.get("sequential")


class TestSequentialOverARun(GateContract):
    def make(self) -> Gate:
        return registry.get("sequential", {"alpha_spending": "run", "block": 3})


class TestPaired(GateContract):
    def make(self) -> Gate:
        return registry.get("paired")


class TestStrict(GateContract):
    def make(self) -> Gate:
        return registry.get("strict")


class TestForce(GateContract):
    tests = False

    def make(self) -> Gate:
        return registry.get("force")
