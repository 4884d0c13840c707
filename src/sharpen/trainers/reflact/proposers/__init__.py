"""Proposers that need no optimizer model, by name: `examples`, `instructions`, `prune`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharpen.core.errors import UsageError, nearest

if TYPE_CHECKING:
    from sharpen.trainers.reflact.proposers.base import Proposer

NAMES = ("examples", "instructions", "prune")


def get(name: str) -> Proposer:
    """The proposer called `name`, with its usual settings."""
    if name == "examples":
        from sharpen.trainers.reflact.proposers.examples import ExamplesProposer

        return ExamplesProposer()
    if name == "instructions":
        from sharpen.trainers.reflact.proposers.instructions import InstructionsProposer

        return InstructionsProposer()
    if name == "prune":
        from sharpen.trainers.reflact.proposers.prune import PruneProposer

        return PruneProposer()
    raise UsageError(f"unknown proposer {name!r}; the proposers are {', '.join(NAMES)}{nearest(name, NAMES)}")
