"""One run's learning curve, and the one number a comparison takes from it.

A curve is a row of (step, value). A summary is `auc` (area under the curve, divided by the steps it covers, so that it reads
like a score), `mean` (of the points, however they are spaced), `last` (mean of the last n points), `final`, `best`, `slope`
(of the least-squares line, per step), or `steps_to` (the step at which a threshold was first reached, which a run may never
do: such a run is censored at its last step, not dropped and not counted as having reached it).

`auc`, `mean` and `slope` look at a window: `all`, the first or last share of the points (`first:0.5`, `last:0.25`; rounded
up, as pipelines for this commonly do), or a range of steps (`1000..5000`), at whose ends the curve is interpolated. Curves
of unequal length are compared over what all of them cover (`common`); nothing is extrapolated.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sharpen.stats.errors import BadData

_LEAST_FOR_SLOPE = 2
_NUMBER = r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"


@dataclass(frozen=True, slots=True)
class Curve:
    """Steps go up strictly; values are finite. `name` is what messages call it."""

    steps: tuple[float, ...]
    values: tuple[float, ...]
    name: str = "the curve"

    def __post_init__(self) -> None:
        if len(self.steps) != len(self.values):
            raise BadData(f"{self.name}: {len(self.steps)} steps, but {len(self.values)} values")
        if not self.steps:
            raise BadData(f"{self.name} has no points")
        for step, value in zip(self.steps, self.values, strict=True):
            if not (math.isfinite(step) and math.isfinite(value)):
                raise BadData(f"{self.name}: the value at step {step:g} is {value}; both must be finite numbers")
        for before, after in zip(self.steps, self.steps[1:], strict=False):
            if after <= before:
                raise BadData(f"{self.name}: step {after:g} comes after step {before:g}; steps must go up")

    def at(self, step: float) -> float:
        """The value at a step within the curve, on the straight line between its points."""
        if not self.steps[0] <= step <= self.steps[-1]:
            raise BadData(f"{self.name} covers steps {self.steps[0]:g} to {self.steps[-1]:g}, not {step:g}")
        after = bisect_left(self.steps, step)
        if self.steps[after] == step:
            return self.values[after]
        (a, b), (x, y) = self.steps[after - 1 : after + 1], self.values[after - 1 : after + 1]
        return x + (y - x) * (step - a) / (b - a)

    def between(self, low: float, high: float) -> Curve:
        """The part between two steps, its ends interpolated."""
        low, high = max(low, self.steps[0]), min(high, self.steps[-1])
        if low > high:
            raise BadData(f"{self.name} covers steps {self.steps[0]:g} to {self.steps[-1]:g}: nothing in the window")
        inner = [(s, v) for s, v in self._points() if low < s < high]
        ends = [(low, self.at(low)), (high, self.at(high))]
        points = ends[:1] if low == high else [ends[0], *inner, ends[1]]
        return Curve(tuple(s for s, _ in points), tuple(v for _, v in points), self.name)

    def _points(self) -> list[tuple[float, float]]:
        return list(zip(self.steps, self.values, strict=True))


@dataclass(frozen=True, slots=True)
class Window:
    """Which part of a curve counts: all of it, the `first` or `last` share of its points, or steps `low` to `high`."""

    kind: str = "all"
    share: float = 1.0
    low: float = -math.inf
    high: float = math.inf

    @staticmethod
    def parse(text: str) -> Window:
        if text == "all":
            return Window()
        if found := re.fullmatch(rf"(first|last):({_NUMBER})", text):
            share = float(found[2])
            if 0.0 < share <= 1.0:
                return Window(found[1], share)
        elif found := re.fullmatch(rf"({_NUMBER})?\.\.({_NUMBER})?", text):
            low, high = float(found[1] or -math.inf), float(found[2] or math.inf)
            if low < high:
                return Window("steps", 1.0, low, high)
        raise BadData(f"no window {text!r}; write all, first:0.5, last:0.25, or steps as 1000..5000")

    def of(self, curve: Curve) -> Curve:
        if self.kind == "steps":
            return curve.between(self.low, self.high)
        count = max(1, math.ceil(self.share * len(curve.steps) - 1e-9))
        part = slice(-count, None) if self.kind == "last" else slice(0, count)
        return replace(curve, steps=curve.steps[part], values=curve.values[part])


ALL = Window()


@dataclass(frozen=True, slots=True)
class Reached:
    """The step at which a threshold was reached; where it was not, `step` is the last one seen and `censored` is true."""

    step: float
    censored: bool


def auc(curve: Curve, window: Window = ALL) -> float:
    """The area under the curve by trapezia, divided by the steps it covers. A single point is its own mean."""
    part = window.of(curve)
    width = part.steps[-1] - part.steps[0]
    if width == 0.0:
        return part.values[0]
    sides = zip(part.steps, part.steps[1:], part.values, part.values[1:], strict=False)
    return math.fsum((b - a) * (x + y) / 2 for a, b, x, y in sides) / width


def mean(curve: Curve, window: Window = ALL) -> float:
    """The mean of the points in the window."""
    part = window.of(curve)
    return math.fsum(part.values) / len(part.values)


def last(curve: Curve, n: int = 5) -> float:
    """The mean of the last `n` points, or of all where there are fewer."""
    if n < 1:
        raise BadData(f"the last {n} points are none; give at least 1")
    values = curve.values[-n:]
    return math.fsum(values) / len(values)


def final(curve: Curve) -> float:
    return curve.values[-1]


def best(curve: Curve, *, lowest: bool = False) -> float:
    """The best single value: the raw maximum, which flatters whoever was looked at often."""
    return min(curve.values) if lowest else max(curve.values)


def slope(curve: Curve, window: Window = ALL) -> float:
    """The slope per step of the least-squares line."""
    part = window.of(curve)
    if len(part.steps) < _LEAST_FOR_SLOPE:
        raise BadData(f"{curve.name}: a slope needs 2 points in the window, there is {len(part.steps)}")
    middle = math.fsum(part.steps) / len(part.steps)
    level = math.fsum(part.values) / len(part.values)
    products = math.fsum((s - middle) * (v - level) for s, v in zip(part.steps, part.values, strict=True))
    return products / math.fsum((s - middle) ** 2 for s in part.steps)


def steps_to(curve: Curve, threshold: float, *, lowest: bool = False) -> Reached:
    """When the curve first came to the threshold (from above with `lowest`), on the line between its points."""
    sign = -1.0 if lowest else 1.0
    before: tuple[float, float] | None = None
    for step, value in zip(curve.steps, curve.values, strict=True):
        if sign * value >= sign * threshold:
            if before is None:
                return Reached(step, False)
            at, was = before
            return Reached(at + (step - at) * (threshold - was) / (value - was), False)
        before = (step, value)
    return Reached(curve.steps[-1], True)


def common(curves: Sequence[Curve]) -> tuple[float, float]:
    """The steps that all curves cover."""
    if not curves:
        raise BadData("no curves were given")
    low, high = max(c.steps[0] for c in curves), min(c.steps[-1] for c in curves)
    if low > high:
        late = max(curves, key=lambda c: c.steps[0])
        early = min(curves, key=lambda c: c.steps[-1])
        raise BadData(f"{late.name} begins at step {late.steps[0]:g}, after {early.name} ends at {early.steps[-1]:g}")
    return low, high


def divergence(one: Sequence[Curve], other: Sequence[Curve], level: float = 0.95) -> float | None:
    """The first step from which on the intervals of the arms' means at each step no longer touch; None where they touch to
    the end. It describes the picture and tests nothing: many points are looked at."""
    from sharpen.stats.means import student_interval

    low, high = common([*one, *other])
    steps = sorted({s for c in (*one, *other) for s in c.steps if low <= s <= high})
    apart = None
    for step in steps:
        first, second = ([c.at(step) for c in arm] for arm in (one, other))
        if min(len(first), len(second)) < 2:
            return None
        a, b = student_interval(first, level), student_interval(second, level)
        touching = a.low <= b.high and b.low <= a.high
        apart = None if touching else step if apart is None else apart
    return apart
