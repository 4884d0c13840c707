"""Differences of item scores whose true mean is known, for checking what intervals and verdicts are worth.

Each shape draws a table of differences (new minus old), data sets by items. They are what scores of tasks look like:
graded answers, scores near the ceiling where most items do not move, partial credit in a few steps, right or wrong, a
mixture, a new candidate that does as well with another spread, one that only mends, and groups of items that go
together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Draw = Callable[[np.random.Generator, tuple[int, int]], Floats]


@dataclass(frozen=True)
class Shape:
    """`mean` is the true mean difference. `discrete` ones can be over-covered: an exact test of few steps must be."""

    name: str
    mean: float
    draw: Draw
    discrete: bool = False


def _graded(a: float, b: float) -> Draw:
    def draw(rng: np.random.Generator, size: tuple[int, int]) -> Floats:
        ability = rng.beta(a, b, size)
        new, old = (rng.beta(6 * ability + 0.05, 6 * (1 - ability) + 0.05) for _ in range(2))
        return np.asarray(new - old)

    return draw


def _ceiling(share: float) -> Draw:
    """Scores of 1 but for a share, more of them on hard items than on easy ones."""

    def draw(rng: np.random.Generator, size: tuple[int, int]) -> Floats:
        below = np.where(rng.random(size) < 0.5, 0.2, 1.8) * share
        new, old = (np.where(rng.random(size) < below, rng.random(size), 1.0) for _ in range(2))
        return np.asarray(new - old)

    return draw


def _partial(steps: int, ties: float) -> Draw:
    def draw(rng: np.random.Generator, size: tuple[int, int]) -> Floats:
        ability = rng.beta(2, 1, size)
        new, old = (rng.binomial(steps, ability) / steps for _ in range(2))
        return np.asarray(np.where(rng.random(size) < ties, 0.0, new - old))

    return draw


def _values(values: list[float], shares: list[float]) -> Draw:
    return lambda rng, size: rng.choice(np.array(values), p=shares, size=size)


def _mends(rng: np.random.Generator, size: tuple[int, int]) -> Floats:
    """Near the ceiling, half of what was not perfect becomes so, and nothing falls."""
    old = np.where(rng.random(size) < 0.7, 1.0, rng.beta(2, 2, size))
    return np.asarray(np.where(rng.random(size) < 0.5, 1.0 - old, 0.0))


def _gains(rng: np.random.Generator, size: tuple[int, int]) -> Floats:
    return np.asarray((1.0 - rng.beta(3, 2, size)) * rng.beta(0.5, 1.5, size))


def _spread(rng: np.random.Generator, size: tuple[int, int]) -> Floats:
    return np.asarray(rng.beta(1.6, 0.4, size) - rng.beta(16, 4, size))


def _zeros(rng: np.random.Generator, size: tuple[int, int]) -> Floats:
    return np.asarray(np.where(rng.random(size) < 0.8, 0.0, np.clip(rng.normal(0, 0.3, size), -1, 1)))


def _mixed(rng: np.random.Generator, size: tuple[int, int]) -> Floats:
    ability = rng.beta(2, 1, size)
    right = (rng.random(size) < ability).astype(float) - (rng.random(size) < ability)
    return np.asarray(np.where(rng.random(size) < 0.5, right, rng.beta(4, 2, size) - rng.beta(4, 2, size)))


SHAPES = (
    Shape("graded", 0.0, _graded(2, 2)),
    Shape("graded, high", 0.0, _graded(6, 1.5)),
    Shape("graded, a gain of 0.05", 0.05, lambda rng, size: np.clip(rng.normal(0.05, 0.2, size), -1, 1)),
    Shape("ceiling, 20 % below", 0.0, _ceiling(0.2), discrete=True),
    Shape("ceiling, 10 % below", 0.0, _ceiling(0.1), discrete=True),
    Shape("ceiling, mends only", 0.075, _mends, discrete=True),
    Shape("partial credit, quarters", 0.0, _partial(4, 0.3), discrete=True),
    Shape("partial credit, halves", 0.0, _partial(2, 0.6), discrete=True),
    Shape("0/1, 10 % change", 0.0, _values([-1, 0, 1], [0.05, 0.9, 0.05]), discrete=True),
    Shape("0/1, 30 % change", 0.0, _values([-1, 0, 1], [0.15, 0.7, 0.15]), discrete=True),
    Shape("0/1, a gain of 0.15", 0.15, _values([-1, 0, 1], [0.05, 0.75, 0.2]), discrete=True),
    Shape("0/1, mends only", 0.1, _values([0, 1], [0.9, 0.1]), discrete=True),
    Shape("skewed gains", 0.1, _gains),
    Shape("another spread", 0.0, _spread),
    Shape("mostly no change", 0.0, _zeros, discrete=True),
    Shape("mixed", 0.0, _mixed, discrete=True),
)
"""Where intervals have to hold."""

BEYOND = (
    Shape("rises of 0.1, rare falls of 0.5", 0.0, _values([0.1, 0, -0.5], [0.5, 0.4, 0.1])),
    Shape("rises of 0.2, rare falls of 1", 0.0, _values([0.2, 0, -1], [0.2, 0.76, 0.04])),
)
"""Where no test that finds ordinary gains can hold: with few items the falls are often not seen at all."""


def clustered(
    rng: np.random.Generator, groups: int, size: int, share: float, mean: float = 0.0
) -> tuple[Floats, list[int]]:
    """Differences of `groups` groups of about `size` items, and the group of each; `share` of their variance is that of the
    group."""
    sizes = rng.integers(max(1, size // 2), 2 * size - max(1, size // 2) + 1, groups)
    which = np.repeat(np.arange(groups), sizes)
    values = np.sqrt(share) * rng.normal(size=groups)[which] + np.sqrt(1 - share) * rng.normal(size=len(which))
    return np.clip(mean + 0.2 * values, -1, 1), which.tolist()
