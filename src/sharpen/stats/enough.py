"""Are there enough runs? What each number of runs, from two up, can say about the mean, and which effect it can show.

For every n: the half-width of the mean's t interval relative to the mean, and the smallest effect that n pairs or n runs in
each arm find with the wanted power, both as the runs at hand let expect them, with bands from drawing those runs again. The
coefficient of variation is told beside them because people know it; it describes the data and does not shrink with n, so it
answers no question about how many runs are enough.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sharpen.stats import student
from sharpen.stats.errors import BadData
from sharpen.stats.exact import pairs_needed, runs_needed
from sharpen.stats.power import ALPHA, POWER, smallest_effect
from sharpen.stats.resampling import draws, numbers


@dataclass(frozen=True, slots=True)
class Band:
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Row:
    """What `runs` runs can say. `half_width` and `detectable` are relative to the mean; `detectable` is None where an exact
    test of so few finds nothing, whatever they show. `variation` is the coefficient of variation of the first `runs` runs as
    they were given."""

    runs: int
    half_width: Band
    detectable: Band | None
    variation: float


@dataclass(frozen=True, slots=True)
class Enough:
    rows: tuple[Row, ...]
    mean: float
    spread: float
    threshold: float
    runs_needed: int | None
    """The fewest runs whose expected half-width is below the threshold; None where the largest looked at is not enough."""
    detectable_needed: int | None
    """The same for the smallest detectable effect."""


def enough(
    values: Sequence[float],
    *,
    threshold: float = 0.05,
    most: int | None = None,
    paired: bool = False,
    level: float = 0.95,
    target: float = POWER,
    resamples: int = 2_000,
    seed: int = 0,
) -> Enough:
    """From a summary per run. `most` is the largest number of runs looked at: those at hand, or twenty if they are fewer."""
    data = numbers(values, 2, "runs")
    most = max(20, len(data)) if most is None else most
    if most < 2:
        raise BadData(f"one run says nothing about spread: look at 2 runs or more, not {most}")
    if not 0 < threshold < math.inf:
        raise BadData(f"the wanted precision is a share of the mean, such as 0.05, not {threshold}")
    mean, spread = float(data.mean()), float(data.std(ddof=1))
    scale = abs(mean)
    blocks = [data[block] for block in draws(len(data), resamples, seed)]
    drawn = np.concatenate(
        [block.std(axis=1, ddof=1) / np.maximum(np.abs(block.mean(axis=1)), 1e-300) for block in blocks]
    )
    ratio = Band(spread / scale if scale else math.inf, *(float(q) for q in np.quantile(drawn, [0.025, 0.975])))
    fewest = pairs_needed(ALPHA) if paired else runs_needed(ALPHA)
    rows = []
    for n in range(2, most + 1):
        width = student.critical(level, n - 1) / math.sqrt(n)
        shows = smallest_effect(n, 1.0, paired=paired, target=target, alpha=ALPHA) or math.inf
        first = data[:n]
        variation = float(first.std(ddof=1)) / abs(float(first.mean())) if first.mean() else math.inf
        rows.append(Row(n, _times(ratio, width), _times(ratio, shows) if n >= fewest else None, variation))
    first_narrow = next((row.runs for row in rows if row.half_width.value <= threshold), None)
    first_shown = next((row.runs for row in rows if row.detectable and row.detectable.value <= threshold), None)
    return Enough(tuple(rows), mean, spread, threshold, first_narrow, first_shown)


def _times(band: Band, factor: float) -> Band:
    return Band(band.value * factor, band.low * factor, band.high * factor)
