"""A mean's interval and p-value that lean to the side on which the values have their tail.

The wider of two ends, and the larger of two p-values: Student's t, which is right for symmetric values, and Hall's
transformed t (Hall 1992, "On the removal of skewness by transformation"), which is right for skewed ones and errs a
little where few values make symmetric ones look skewed. Both are functions of mean, spread and skewness alone:
nothing is drawn, and the interval leaves out a value exactly where the p-value of that value is small enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sharpen.stats import student

if TYPE_CHECKING:
    from sharpen.stats.resampling import Floats


@dataclass(frozen=True, slots=True)
class Moments:
    """`lean` is the skewness over the root of n, by which the transformation bends."""

    mean: float
    error: float
    lean: float
    freedom: int

    def ends(self, level: float) -> tuple[float, float]:
        """The interval, two-sided."""
        t = student.critical(level, self.freedom)
        below, above = max(t, self._unbent(t)), max(t, -self._unbent(-t))
        return self.mean - below * self.error, self.mean + above * self.error

    def p(self) -> float:
        """The two-sided p-value of "the mean is 0"."""
        if self.error == 0.0:
            return 1.0 if self.mean == 0.0 else 0.0
        t = self.mean / self.error
        bent = self._bent(t)
        if bent * t <= 0.0:
            return 1.0
        return student.two_sided(min(abs(t), abs(bent)), self.freedom)

    def _bent(self, t: float) -> float:
        a = self.lean
        return t + a * t * t / 3 + a * a * t**3 / 27 + a / 6

    def _unbent(self, x: float) -> float:
        a = self.lean
        return x if abs(a) < 1e-9 else 3 / a * (float(np.cbrt(1 + a * (x - a / 6))) - 1)


def moments(data: Floats) -> Moments:
    """From two values on."""
    n, mean = len(data), float(data.mean())
    away = data - mean
    spread = float((away**2).sum())
    if spread == 0.0:
        return Moments(mean, 0.0, 0.0, n - 1)
    shares = away / math.sqrt(spread / n)  # values however small do not vanish when cubed
    skewness = float((shares**3).mean())
    return Moments(mean, math.sqrt(spread / (n - 1) / n), skewness / math.sqrt(n), n - 1)
