"""How many runs it takes to see an effect, and which effect so many runs can see.

By formula: the power of a two-sided t test, paired (the spread is that of the differences) or of two independent groups
(that of each group), inverted for the number of runs or for the effect. A spread estimated from a few pilot runs is
itself uncertain; `upper_spread` gives a limit above it that planning should use. By simulation: the pilot's own values
are drawn again, shifted by the effect, and tested, which shows whether the formula can be trusted for data of this
shape.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sharpen.stats import chi, student
from sharpen.stats.errors import BadData
from sharpen.stats.resampling import numbers

if TYPE_CHECKING:
    from sharpen.stats.resampling import Floats

POWER = 0.8
ALPHA = 0.05
MOST_RUNS = 1_000_000
_HALVINGS = 50


def power(effect: float, spread: float, n: int, *, paired: bool, alpha: float = ALPHA) -> float:
    """The chance to find `effect` with `n` pairs, or `n` runs in each arm."""
    _check(effect, spread)
    if n < 2:
        return 0.0
    if spread == 0.0:
        return 1.0
    error = spread * math.sqrt((1 if paired else 2) / n)
    return student.power(abs(effect) / error, (n - 1) if paired else 2 * n - 2, alpha)


def runs_needed(
    effect: float, spread: float, *, paired: bool, target: float = POWER, alpha: float = ALPHA
) -> int | None:
    """The fewest pairs (or runs in each arm) with power `target`; None where a million are not enough."""
    _check(effect, spread)
    if effect == 0.0:
        return None
    low, high = 1, 2
    while power(effect, spread, high, paired=paired, alpha=alpha) < target:
        low, high = high, 2 * high
        if high > MOST_RUNS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        if power(effect, spread, middle, paired=paired, alpha=alpha) < target:
            low = middle
        else:
            high = middle
    return high


def smallest_effect(
    n: int, spread: float, *, paired: bool, target: float = POWER, alpha: float = ALPHA
) -> float | None:
    """The smallest effect that `n` pairs (or runs in each arm) find with power `target`; None below two."""
    _check(0.0, spread)
    if n < 2:
        return None
    low, high = 0.0, spread
    while spread and power(high, spread, n, paired=paired, alpha=alpha) < target:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if power(middle, spread, n, paired=paired, alpha=alpha) < target:
            low = middle
        else:
            high = middle
    return high


def upper_spread(values: Sequence[float], confidence: float = 0.8) -> float:
    """A limit that the true spread is below with this confidence, from the spread of a pilot."""
    data = numbers(values, 2, "pilot runs")
    n = len(data)
    return float(data.std(ddof=1)) * math.sqrt((n - 1) / chi.quantile(1 - confidence, n - 1))


def simulated(
    pilot: Sequence[float] | tuple[Sequence[float], Sequence[float]],
    effect: float,
    n: int,
    *,
    alpha: float = ALPHA,
    trials: int = 4_000,
    seed: int = 0,
) -> float:
    """The share of simulated studies of size `n` that find `effect`. `pilot` is a row of paired differences, or the
    values of two arms; it is centred, drawn from with replacement and shifted."""
    generator = np.random.Generator(np.random.PCG64(seed))
    if isinstance(pilot, tuple):
        one, other = (_centred(arm) for arm in pilot)
        new = one[generator.integers(0, len(one), size=(trials, n))] + effect
        old = other[generator.integers(0, len(other), size=(trials, n))]
        parts = np.stack([new.var(axis=1, ddof=1), old.var(axis=1, ddof=1)]) / n
        difference, error = new.mean(axis=1) - old.mean(axis=1), np.sqrt(parts.sum(axis=0))
        with np.errstate(invalid="ignore", divide="ignore"):
            freedom = np.nan_to_num((n - 1) * parts.sum(axis=0) ** 2 / (parts**2).sum(axis=0), nan=2.0 * n - 2)
    else:
        row = _centred(pilot)
        drawn = row[generator.integers(0, len(row), size=(trials, n))] + effect
        difference, error = drawn.mean(axis=1), drawn.std(axis=1, ddof=1) / math.sqrt(n)
        freedom = np.full(trials, n - 1.0)
    bounds = np.array([student.critical(1 - alpha, round(float(f), 1)) for f in freedom])
    return float((np.abs(difference) > bounds * error).mean())


def _centred(values: Sequence[float]) -> Floats:
    data = numbers(values, 2, "pilot runs")
    # Drawing from n values shows too little of the spread by the factor of the degrees of freedom.
    result: Floats = (data - data.mean()) * math.sqrt(len(data) / (len(data) - 1))
    return result


def _check(effect: float, spread: float) -> None:
    if not (math.isfinite(effect) and math.isfinite(spread) and spread >= 0):
        raise BadData(f"an effect must be finite and a spread 0 or more, got {effect} and {spread}")
