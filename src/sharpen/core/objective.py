"""What a task aims at where it aims at several things at once: which way each is better, how much it counts, its range.

An objective is one of the `measures` of an outcome. Searches and gates go by the one score a task makes of them (`weighted`
is the usual way); the objectives themselves are reported side by side, with the candidates nobody beats in all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sharpen.core.digest import Json

Direction = Literal["max", "min"]


@dataclass(frozen=True)
class Objective:
    """`range` is from the least to the greatest value that is to be expected; without one there is no hypervolume."""

    direction: Direction = "max"
    weight: float = 1.0
    range: tuple[float, float] | None = None
    description: str = ""

    def __post_init__(self) -> None:
        if self.direction not in ("max", "min"):
            raise ValueError(f"an objective's direction is max or min, got {self.direction!r}")
        if not self.weight >= 0:
            raise ValueError(f"an objective's weight must be at least 0, got {self.weight!r}")
        if self.range is not None and not self.range[0] < self.range[1]:
            raise ValueError(f"an objective's range goes from a smaller to a larger value, got {self.range!r}")

    def row(self) -> list[Json]:
        """The form that stands in a job's story."""
        return [self.direction, self.weight, None if self.range is None else list(self.range)]

    @staticmethod
    def from_row(row: Sequence[Json]) -> Objective:
        direction, weight, span = row
        return Objective(direction, weight, None if span is None else (span[0], span[1]))

    def share(self, value: float) -> float:
        """How good a value is on the way through the range: 0 at its worse end, 1 at its better end, not cut off."""
        if self.range is None:
            raise ValueError("an objective without a range has no share")
        low, high = self.range
        share = (value - low) / (high - low)
        return share if self.direction == "max" else 1.0 - share


def weighted(objectives: Mapping[str, Objective], measures: Mapping[str, float]) -> float:
    """One score in 0..1: the weighted mean of the shares, each cut off at 0 and 1."""
    whole = sum(objective.weight for objective in objectives.values())
    shares = (o.weight * min(1.0, max(0.0, o.share(measures[name]))) for name, o in objectives.items())
    return min(1.0, sum(shares) / whole)
