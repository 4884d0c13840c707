"""Several tests at once: p-values adjusted for a family that was declared before looking.

`holm` bounds the chance of any false finding in the family, whatever the tests have to do with each other;
`benjamini_hochberg` bounds the share of false ones among the findings, for tests that are independent or go the same way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from sharpen.stats.errors import BadData


def holm(p_values: Sequence[float]) -> list[float]:
    return _adjusted(p_values, _holm)


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    return _adjusted(p_values, _benjamini_hochberg)


METHODS: dict[str, Callable[[Sequence[float]], list[float]]] = {"holm": holm, "bh": benjamini_hochberg}


def _adjusted(p_values: Sequence[float], rule: Callable[[list[float]], list[float]]) -> list[float]:
    for p in p_values:
        if not (math.isfinite(p) and 0.0 <= p <= 1.0):
            raise BadData(f"a p-value must lie in 0..1, got {p}")
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    ruled = rule([p_values[place] for place in order])
    result = [0.0] * len(p_values)
    for place, p in zip(order, ruled, strict=True):
        result[place] = p
    return result


def _holm(rising: list[float]) -> list[float]:
    highest, result = 0.0, []
    for place, p in enumerate(rising):
        highest = max(highest, min(1.0, (len(rising) - place) * p))
        result.append(highest)
    return result


def _benjamini_hochberg(rising: list[float]) -> list[float]:
    lowest, result = 1.0, []
    for place in range(len(rising), 0, -1):
        lowest = min(lowest, rising[place - 1] * len(rising) / place)
        result.append(lowest)
    return result[::-1]
