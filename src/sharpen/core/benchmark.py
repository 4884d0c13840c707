"""What a score is measured against: the scores of a random player and of a person, and which metric the best is chosen by.

A benchmark is saved with a run and with each of its checkpoints, so that a checkpoint can be scored on the same scale later.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

from sharpen.core.digest import Json
from sharpen.core.errors import UsageError

POLICY_METRIC = "eval_return_mean"
POLICY_SCORES = (POLICY_METRIC, "eval_return_median", "eval_return_min", "eval_return_max")
"""What an evaluation of a policy measures that is a score, and so has a place on the scale; a length has none."""


@dataclass(frozen=True)
class Benchmark:
    """Scores are normalised where both references are there: 0 is the random one, `scale` the human one."""

    random_score: float | None = None
    human_score: float | None = None
    reference: str = ""
    """The table the two were looked up in; empty where they were given."""
    protocol: str = ""
    scale: float = 1.0
    best_metric: str = POLICY_METRIC
    best_metric_mode: str = "max"

    def __post_init__(self) -> None:
        if (self.random_score is None) != (self.human_score is None):
            raise UsageError("a benchmark needs both random_score and human_score, or neither")
        given = [score for score in (self.random_score, self.human_score, self.scale) if score is not None]
        if not all(isfinite(score) for score in given) or self.scale == 0:
            raise UsageError("the scores of a benchmark are finite numbers, and its scale is not 0")
        if self.random_score is not None and self.random_score == self.human_score:
            raise UsageError(
                f"random_score and human_score are both {self.random_score:g}: a score can't be placed between them"
            )
        if self.best_metric_mode not in ("max", "min"):
            raise UsageError(f"best_metric_mode is max or min, not {self.best_metric_mode!r}")

    @classmethod
    def from_row(cls, row: dict[str, Any] | None) -> Benchmark | None:
        return None if row is None else cls(**row)

    def row(self) -> dict[str, Json]:
        return asdict(self)

    def normalised(self, score: float | None) -> float | None:
        """The score on the scale from random to human; None where there is no such scale, or no score."""
        if score is None or self.random_score is None or self.human_score is None:
            return None
        return (score - self.random_score) / (self.human_score - self.random_score) * self.scale

    def normalised_difference(self, difference: float | None) -> float | None:
        """A difference of scores on that scale."""
        if difference is None or self.random_score is None:
            return None
        return self.normalised(self.random_score + difference)
