"""Several tests at once: p-values adjusted for a family that was declared before looking.

`holm` bounds the chance of any false finding in the family, whatever the tests have to do with each other;
`benjamini_hochberg` bounds the share of false ones among the findings, for tests that are independent or go the same
way. `max_t` (Westfall and Young's step-down) bounds the same as Holm, and takes into account that arms compared with
one baseline on the same seeds go together: signs are turned seed by seed, for all arms at once, and the largest t is
what is held against.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sharpen.stats.errors import BadData


def holm(p_values: Sequence[float]) -> list[float]:
    return _adjusted(p_values, _holm)


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    return _adjusted(p_values, _benjamini_hochberg)


@dataclass(frozen=True, slots=True)
class MaxT:
    """Adjusted p-values, and intervals that hold together with the stated probability."""

    p: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


def max_t(rows: Sequence[Sequence[float]], level: float = 0.95, *, resamples: int = 9_999, seed: int = 0) -> MaxT:
    """For rows of paired differences over the same seeds or items, one row for each comparison. All ways to turn the signs
    are counted where there are no more than `resamples`."""
    import numpy as np

    data = np.asarray(rows, dtype=float)
    if data.ndim != 2 or data.shape[1] < 2 or not np.isfinite(data).all():
        raise BadData("max-t takes rows of finite differences over the same pairs, two at least")
    tests, n = data.shape
    if 2 ** (n - 1) <= resamples:
        counts = np.arange(2 ** (n - 1))[:, None] >> np.arange(n - 1)[None, :] & 1
        signs = np.concatenate([np.ones((len(counts), 1)), 1.0 - 2.0 * counts], axis=1)
    else:
        drawn = np.random.Generator(np.random.PCG64(seed)).choice([-1.0, 1.0], size=(resamples, n))
        signs = np.concatenate([np.ones((1, n)), drawn])

    def t_of(values: np.ndarray) -> np.ndarray:
        """|t| of every row under every choice of signs; signs change the mean and leave the squares."""
        means, squares = signs @ values.T / n, (values**2).sum(axis=1)
        variance = np.maximum(squares / n - means**2, 0.0) / (n - 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(np.abs(means) <= 1e-12, 0.0, np.abs(means) / np.sqrt(variance))

    found = t_of(data)
    seen = found[0]
    order = np.argsort(-seen, kind="stable")
    p, highest = [0.0] * tests, 0.0
    for place in range(tests):
        largest = found[:, order[place:]].max(axis=1)
        highest = max(highest, float((largest >= seen[order[place]] * (1 - 1e-9)).mean()))
        p[order[place]] = highest
    means = data.mean(axis=1)
    errors = data.std(axis=1, ddof=1) / math.sqrt(n)
    bound = float(np.quantile(t_of(data - means[:, None]).max(axis=1), level, method="higher"))
    halves = np.where(errors > 0, bound * errors, 0.0)
    return MaxT(tuple(p), tuple((means - halves).tolist()), tuple((means + halves).tolist()))


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
