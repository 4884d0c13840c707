"""What chance does to scores, and the smallest effect that can be told from it.

`noise` reads repeated attempts at the same items. `smallest_effect` turns noise and a number of items into the true gain in
mean score that a paired test finds with the wanted power. It takes a change to be all or nothing on each item it touches
and to break nothing: that is the widest spread of effects for its size, and the clearest sign. A change that also breaks
items must gain more. Two bounds apply and the larger one counts: the normal approximation over all the noise there is, and
the exact number of gains that a sign test asks for where there is none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, variance

POWER = 0.8
_MOST_ITEMS = 10_000_000
_HALVINGS = 60


@dataclass(frozen=True, slots=True)
class Noise:
    """Repeated attempts at `items` items: the variance within an item, and the share whose attempts differ."""

    within: float
    flipping: float
    items: int

    def standard_error(self, items: int) -> float:
        """What chance alone does to the mean over so many items, attempted once each."""
        return math.sqrt(self.within / items) if items else math.inf


def noise(attempts: Sequence[Sequence[float]]) -> Noise | None:
    """The noise in the scores of some items, each attempted several times; None where none was attempted twice."""
    repeated = [scores for scores in attempts if len(scores) > 1]
    if not repeated:
        return None
    flipping = sum(min(scores) != max(scores) for scores in repeated) / len(repeated)
    return Noise(fmean(variance(scores) for scores in repeated), flipping, len(repeated))


def smallest_effect(items: int, within: float, level: float, power: float = POWER) -> float | None:
    """The smallest true gain that is found with probability `power` by a one-sided test of `level` over `items` pairs whose
    arms both have the variance `within`. None where no gain is large enough."""
    if items < gains_needed(level):
        return None
    deviates = (NormalDist().inv_cdf(1.0 - level) + NormalDist().inv_cdf(power)) ** 2
    # items * d^2 = deviates * (2 * within + d - d^2), solved for d
    root = math.sqrt(deviates**2 + 8.0 * (items + deviates) * within * deviates)
    spread = (deviates + root) / (2.0 * (items + deviates))
    effect = max(spread, _by_signs(items, gains_needed(level), power))
    return effect if effect <= 1.0 else None


def items_needed(effect: float, within: float, level: float, power: float = POWER) -> int | None:
    """How many items it takes to find a gain of `effect`; None where more than anybody has."""
    low, high = 0, gains_needed(level)
    while not _finds(high, effect, within, level, power):
        low, high = high, high * 2
        if high > _MOST_ITEMS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        if _finds(middle, effect, within, level, power):
            high = middle
        else:
            low = middle
    return high


def gains_needed(level: float) -> int:
    """How many gains without a loss a sign test of `level` asks for: 5 for 0.05."""
    return math.ceil(-math.log2(level) - 1e-9)


def _finds(items: int, effect: float, within: float, level: float, power: float) -> bool:
    found = smallest_effect(items, within, level, power)
    return found is not None and found <= effect


def _by_signs(items: int, gains: int, power: float) -> float:
    """The share of items a change must mend for `items` drawn at random to hold at least `gains` of them."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        share = (low + high) / 2
        missed = sum(math.comb(items, k) * share**k * (1.0 - share) ** (items - k) for k in range(gains))
        if 1.0 - missed < power:
            low = share
        else:
            high = share
    return high
