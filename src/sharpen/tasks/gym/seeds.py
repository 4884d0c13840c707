"""Which seed an environment is reset with: four streams that never meet.

A seed is `4 k + r`, where `r` says what the episode is for. So no episode a policy was trained on can be one it is chosen
by, and none of those one it is reported on, whatever `k` is drawn. Seeds for deciding and for reporting depend on the task
and its split seed alone: all arms and all training seeds play the same episodes.
"""

from __future__ import annotations

from sharpen.core.rng import Stream

STREAMS = {"train": 0, "val": 1, "test": 2, "play": 3}
_DRAWS = 1 << 29


def training(seed: int, environment: int, episode: int) -> int:
    """The seed of an episode that is trained on: the `episode`-th of the `environment`-th environment of a job."""
    return _of("train", Stream(seed, "episodes", "train", environment, episode))


def evaluation(stream: str, task: str, seed: int, count: int) -> list[int]:
    """The seeds of `count` episodes of a stream, all different. A higher count only adds to them."""
    drawn: dict[int, None] = {}
    numbers = Stream(seed, "episodes", stream, task)
    while len(drawn) < count:
        drawn[_of(stream, numbers)] = None
    return list(drawn)


def _of(stream: str, numbers: Stream) -> int:
    return len(STREAMS) * numbers.below(_DRAWS) + STREAMS[stream]
