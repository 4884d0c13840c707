"""Looking before all runs are in, without fooling oneself: bounds for planned looks, and intervals that hold at any
time.

Testing at 0.05 after every new seed finds "significance" in a fifth of all comparisons of a thing with itself. Planned
looks share the error out instead: `bounds` gives the nominal level of each look, by an error-spending function,
`pocock` (about the same at each) or `obrien-fleming` (almost all kept for the last). `anytime` is a confidence
sequence: a wider interval that holds at all numbers of runs from six on together, so that adding seeds until it decides
is allowed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from sharpen.stats import student
from sharpen.stats.errors import BadData
from sharpen.stats.means import Estimate
from sharpen.stats.resampling import numbers

LEAST_RUNS = 6
"""Monitored from fewer, the estimated spread is too rough for a confidence sequence to keep its level."""
PLANNED = 20
_REACH = 8.0
_POINTS = 1601
_HALVINGS = 60


def _pocock(share: float, alpha: float) -> float:
    return alpha * math.log(1 + (math.e - 1) * share)


def _obrien_fleming(share: float, alpha: float) -> float:
    normal = NormalDist()
    # Half of alpha on either side, as Lan and DeMets bounds are commonly tabled.
    return 4 * (1 - normal.cdf(normal.inv_cdf(1 - alpha / 4) / math.sqrt(share)))


SPENDING: dict[str, Callable[[float, float], float]] = {"pocock": _pocock, "obrien-fleming": _obrien_fleming}


@dataclass(frozen=True, slots=True)
class Look:
    """A planned look at `runs` runs: `z` is its bound for a normal statistic, `level` the nominal two-sided p that must
    be reached, `spent` the share of all error given out up to here."""

    runs: int
    z: float
    level: float
    spent: float

    def stops(self, p: float) -> bool:
        return p <= self.level


def bounds(looks: Sequence[int], alpha: float = 0.05, spending: str = "pocock") -> list[Look]:
    """The bounds of looks at these numbers of runs, so that all of them together err with probability `alpha`."""
    if spending not in SPENDING:
        raise BadData(f"no way of spending {spending!r}; there are {', '.join(SPENDING)}")
    if not looks or list(looks) != sorted(set(looks)) or looks[0] < 2:
        raise BadData(f"looks must be rising numbers of runs from 2 on, got {list(looks)}")
    normal, last = NormalDist(), looks[-1]
    grid = np.linspace(-_REACH, _REACH, _POINTS)
    density, before, spent = None, 0.0, 0.0
    found = []
    for runs in looks:
        share = runs / last
        wanted = SPENDING[spending](share, alpha) - spent
        # The sum of the data at this look, in units in which its variance is 1 at the last one.
        spread = math.sqrt(share)
        if density is None:
            now = np.exp(-0.5 * (grid / spread) ** 2) / (spread * math.sqrt(2 * math.pi))
        else:
            step = math.sqrt(share - before)
            kernel = np.exp(-0.5 * ((grid[:, None] - grid[None, :]) / step) ** 2) / (step * math.sqrt(2 * math.pi))
            now = kernel @ density * (grid[1] - grid[0])
        z = _bound(grid, now, spread, wanted)
        spent += wanted
        found.append(Look(runs, z, 2 * (1 - normal.cdf(z)), spent))
        density, before = np.where(np.abs(grid) < z * spread, now, 0.0), share
    return found


def _bound(grid: np.ndarray, density: np.ndarray, spread: float, wanted: float) -> float:
    """The z beyond which, on either side, the density holds `wanted`."""
    width = grid[1] - grid[0]
    upper = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2 * width)])
    total = upper[-1]
    low, high = 0.0, _REACH / spread
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        inside = np.interp(middle * spread, grid, upper) - np.interp(-middle * spread, grid, upper)
        if total - inside > wanted:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def anytime(values: Sequence[float], *, level: float = 0.95, planned: int = PLANNED) -> Estimate:
    """The mean with an interval that holds however often it is looked at, from `LEAST_RUNS` values on. It is narrowest
    around `planned` values, which must be the same at every look. For differences between arms, whatever their spread: the
    mean of strongly skewed values by itself is missed more often."""
    data = numbers(values, LEAST_RUNS, "runs, to be looked at as they come")
    if planned < LEAST_RUNS:
        raise BadData(f"plan for at least {LEAST_RUNS} runs, not {planned}")
    n, mean = len(data), float(data.mean())
    alpha = 1 - level
    tuned = (-2 * math.log(alpha) + math.log(-2 * math.log(alpha) + 1)) / planned
    width = math.sqrt(2 * (n * tuned + 1) / (n * n * tuned) * math.log(math.sqrt(n * tuned + 1) / alpha))
    # The formula is for a known spread; Student's quantile in place of the normal one allows for estimating it.
    rough = student.critical(level, n - 1) / student.critical(level, math.inf)
    half = float(data.std(ddof=1)) * width * rough
    return Estimate(mean, mean - half, mean + half, n, "confidence sequence", level)
