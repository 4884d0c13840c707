"""How many runs it takes to see an effect, and which effect so many runs can see.

The power of the tests that give a verdict (`verdict_power` takes from that of a t test what few values lose), paired
(the spread is that of the differences) or of two independent groups (that of each group), inverted for the number of
runs or for the effect. A spread estimated from a few pilot runs is itself uncertain; `upper_spread` gives a limit
above it that planning should use. By simulation: the pilot's own values are drawn again, shifted by the effect, and
tested as a comparison tests them, which shows whether the formula can be trusted for data of this shape.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sharpen.stats import arms, chi, exact, student, verdict_power
from sharpen.stats import paired as pairs
from sharpen.stats.errors import BadData
from sharpen.stats.resampling import numbers

if TYPE_CHECKING:
    from sharpen.stats.resampling import Floats

POWER = 0.8
ALPHA = 0.05
MOST_RUNS = 1_000_000
_HALVINGS = 50
_SIMULATED_RESAMPLES = 499


def power(effect: float, spread: float, n: int, *, paired: bool, alpha: float = ALPHA) -> float:
    """The chance to find `effect` with `n` pairs, or `n` runs in each arm."""
    _check(effect, spread)
    if n < 2:
        return 0.0
    if spread == 0.0:
        return 1.0
    alone = power_of_t(effect, spread, n, paired, alpha)
    return min(1.0, max(0.0, alone + verdict_power.excess(abs(effect) / spread, n, alpha, paired=paired)))


def power_of_t(effect: float, spread: float, n: int, paired: bool, alpha: float) -> float:
    """The power of t alone, by formula."""
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
    while power_of_t(effect, spread, high, paired, alpha) < target:
        low, high = high, 2 * high
        if high > MOST_RUNS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        if power_of_t(effect, spread, middle, paired, alpha) < target:
            low = middle
        else:
            high = middle
    # The verdict finds a little less than t alone: go on from what t needs.
    fewest = exact.pairs_needed(alpha) if paired else exact.runs_needed(alpha)
    high = max(high, fewest)
    while (
        high <= verdict_power.MOST_SIMULATED[paired]
        and power(effect, spread, high, paired=paired, alpha=alpha) < target
    ):
        high += 1
    return high


def smallest_effect(
    n: int, spread: float, *, paired: bool, target: float = POWER, alpha: float = ALPHA
) -> float | None:
    """The smallest effect that `n` pairs (or runs in each arm) find with power `target`; None where so few find nothing,
    whatever they show."""
    _check(0.0, spread)
    if n < (exact.pairs_needed(alpha) if paired else exact.runs_needed(alpha)):
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
    trials: int = 600,
    seed: int = 0,
) -> float:
    """The share of simulated studies of size `n` that find `effect`. `pilot` is a row of paired differences, or the
    values of two arms; it is centred, drawn from with replacement and shifted."""
    generator = np.random.Generator(np.random.PCG64(seed))
    found = 0
    if isinstance(pilot, tuple):
        one, other = (_centred(arm) for arm in pilot)
        for _ in range(trials):
            new, old = (arm[generator.integers(0, len(arm), n)] for arm in (one, other))
            found += arms.unpaired_p((new + effect).tolist(), old.tolist(), resamples=_SIMULATED_RESAMPLES) <= alpha
    else:
        row = _centred(pilot)
        for _ in range(trials):
            drawn = row[generator.integers(0, len(row), n)] + effect
            found += pairs.mean_difference(drawn, 1 - alpha, span=math.inf).p <= alpha
    return found / trials


def _centred(values: Sequence[float]) -> Floats:
    data = numbers(values, 2, "pilot runs")
    # Drawing from n values shows too little of the spread by the factor of the degrees of freedom.
    result: Floats = (data - data.mean()) * math.sqrt(len(data) / (len(data) - 1))
    return result


def _check(effect: float, spread: float) -> None:
    if not (math.isfinite(effect) and math.isfinite(spread) and spread >= 0):
        raise BadData(f"an effect must be finite and a spread 0 or more, got {effect} and {spread}")
