"""The event only policy trainers tell, and the error it comes of."""

from __future__ import annotations

from dataclasses import dataclass

from sharpen.core.errors import SharpenError
from sharpen.engine.events import Event


class Diverged(SharpenError):
    """The weights are no numbers any more: there is nothing left to learn with."""


@dataclass(frozen=True)
class TrainingDiverged(Event):
    """Training ended after `step`, because the weights stopped being numbers."""

    step: int
    message: str
