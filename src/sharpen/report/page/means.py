"""Curves of several runs as one: their mean over the steps that all of them cover, with its 95 % band. Pure.

Scores in 0..1 get a band that stays there; values without bounds get Student's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from sharpen.report.page.curves import UNIT, Banded
from sharpen.stats.curves import Curve, common
from sharpen.stats.errors import BadData
from sharpen.stats.intervals import bounded_mean
from sharpen.stats.means import student_interval

_MOST_POINTS = 200


def banded(name: str, row: Sequence[Curve]) -> Banded:
    """The mean with its band, and the single runs as thin lines. Runs that have no step in common have no mean."""
    if not row:
        return Banded(name, (), ())
    thin = tuple(_thinned(one) for one in row) if len(row) > 1 else ()
    try:
        first, last = common(row)
    except BadData:
        return Banded(name, (), (), thin=thin)
    steps = sorted({step for one in row for step in one.steps if first <= step <= last} | {first, last})
    steps = _some(steps)
    values = [[one.at(step) for one in row] for step in steps]
    means = tuple(fmean(at) for at in values)
    if len(row) < 2:
        return Banded(name, tuple(steps), means)
    bounds = [_bounds(at, bounded=is_unit(row)) for at in values]
    return Banded(name, tuple(steps), means, tuple(low for low, _ in bounds), tuple(high for _, high in bounds), thin)


def is_unit(row: Sequence[Curve]) -> bool:
    return all(0.0 <= value <= 1.0 for one in row for value in one.values)


def within(rows: Sequence[Sequence[Curve]]) -> tuple[float, float] | None:
    """What the scale of these curves shows: the whole of 0..1 for scores, else what the values ask for."""
    return UNIT if all(map(is_unit, rows)) else None


def _bounds(values: Sequence[float], *, bounded: bool) -> tuple[float, float]:
    if bounded:
        return bounded_mean(values)[:2]
    found = student_interval(values)
    return found.low, found.high


def _thinned(one: Curve) -> tuple[tuple[float, float], ...]:
    return tuple((step, one.at(step)) for step in _some(one.steps))


def _some(steps: Sequence[float]) -> list[float]:
    """At most so many that a picture stays small, the last one among them."""
    every = math.ceil(len(steps) / _MOST_POINTS)
    kept = list(steps[:: max(1, every)])
    return kept if kept[-1] == steps[-1] else [*kept, steps[-1]]
