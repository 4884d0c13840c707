"""What the algorithms log while they learn, gathered over a stretch: means of losses, the last value of what is set.

Nothing here depends on the clock, so a stretch that is trained again gives the same numbers. What is no finite number is
None.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from stable_baselines3.common.logger import Logger

from sharpen.core.digest import Json
from sharpen.trainers.rl.environments import Episode

_LATEST = {"learning_rate", "exploration_rate", "clip_range", "clip_range_vf", "ent_coef", "std", "n_updates"}


class Notes(Logger):  # type: ignore[misc]
    """A log of stable-baselines3 that is written nowhere."""

    def __init__(self) -> None:
        super().__init__(folder=None, output_formats=[])
        self._values: dict[str, list[float]] = {}

    def record(self, key: str, value: Any, exclude: str | tuple[str, ...] | None = None) -> None:
        name = key.rpartition("/")[2]
        if name in _LATEST:
            self._values[name] = [float(value)]
        else:
            self._values.setdefault(name, []).append(float(value))

    def dump(self, step: int = 0) -> None:
        """Nothing: `take` is asked once per stretch."""

    def take(self, ended: Sequence[Episode]) -> dict[str, Json]:
        """What came together since this was last asked, with the episodes that ended meanwhile."""
        found = {name: finite_mean(values) for name, values in sorted(self._values.items())}
        self._values.clear()
        return {
            "episodes": len(ended),
            "train_return_mean": finite_mean(episode.total for episode in ended),
            "train_length_mean": finite_mean(episode.length for episode in ended),
            **found,
        }


def finite_mean(values: Iterable[float]) -> float | None:
    """The mean; None where there is nothing, or it is no finite number."""
    numbers = list(values)
    mean = math.fsum(numbers) / len(numbers) if numbers and all(map(math.isfinite, numbers)) else math.nan
    return mean if math.isfinite(mean) else None
