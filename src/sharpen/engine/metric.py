"""Which number decides: `hard`, `soft`, or a mix of both. Gate, screening and the score of the best use the same one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sharpen.engine.evaluation import Evaluation

Name = Literal["hard", "soft", "mixed"]


@dataclass(frozen=True)
class Metric:
    """`mixed` is `(1 - weight) * hard + weight * soft`."""

    name: Name = "hard"
    weight: float = 0.5

    def of(self, hard: float, soft: float) -> float:
        if self.name == "hard":
            return hard
        return soft if self.name == "soft" else (1.0 - self.weight) * hard + self.weight * soft

    def values(self, evaluation: Evaluation) -> list[float | None]:
        """The score of each item in order, None where a rollout failed for a reason that is not the agent's."""
        pairs = zip(evaluation.hard, evaluation.soft, strict=True)
        return [None if hard is None or soft is None else self.of(hard, soft) for hard, soft in pairs]

    def mean(self, evaluation: Evaluation) -> float | None:
        return mean_of(self.values(evaluation))


HARD = Metric()


def mean_of(values: Sequence[float | None]) -> float | None:
    """The mean of the values there are; None where there are none."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
