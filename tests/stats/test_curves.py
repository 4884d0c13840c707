"""Learning curves: areas as numpy integrates them, windows as people write them, and runs that never got there."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sharpen.stats import curves
from sharpen.stats.curves import Curve, Window
from sharpen.stats.errors import BadData

points = st.lists(st.tuples(st.integers(1, 50), st.integers(-40, 40)), min_size=2, max_size=30)
RISING = Curve((0.0, 10.0, 20.0, 30.0, 40.0), (0.0, 1.0, 4.0, 6.0, 6.0), "run 1")


def _curve(pairs: list[tuple[int, int]]) -> Curve:
    steps = np.cumsum([gap for gap, _ in pairs]).astype(float)
    return Curve(tuple(steps.tolist()), tuple(value / 4 for _, value in pairs))


@settings(max_examples=60, deadline=None)
@given(points)
def test_area_and_slope_are_numpys(pairs: list[tuple[int, int]]) -> None:
    curve = _curve(pairs)
    steps, values = np.array(curve.steps), np.array(curve.values)
    area = float((np.diff(steps) * (values[1:] + values[:-1]) / 2).sum())
    assert curves.auc(curve) == pytest.approx(area / (steps[-1] - steps[0]), abs=1e-9)
    assert curves.slope(curve) == pytest.approx(np.polyfit(steps, values, 1)[0], rel=1e-5, abs=1e-7)
    assert curves.mean(curve) == pytest.approx(values.mean())


@settings(max_examples=60, deadline=None)
@given(points, st.floats(0, 1), st.floats(0, 1))
def test_a_window_of_steps_is_interpolated_at_its_ends(pairs: list[tuple[int, int]], one: float, other: float) -> None:
    curve = _curve(pairs)
    first, last = curve.steps[0], curve.steps[-1]
    low, high = sorted(first + share * (last - first) for share in (one, other))
    part = curve.between(low, high)
    expected = np.interp([part.steps[0], part.steps[-1]], curve.steps, curve.values)
    assert [part.values[0], part.values[-1]] == pytest.approx(expected.tolist())
    assert min(curve.values) - 1e-9 <= curves.auc(part) <= max(curve.values) + 1e-9


@settings(max_examples=30, deadline=None)
@given(points, st.floats(-5, 5), st.floats(0.1, 9))
def test_moving_and_stretching_a_curve_moves_and_stretches_its_area(
    pairs: list[tuple[int, int]], shift: float, scale: float
) -> None:
    curve = _curve(pairs)
    moved = Curve(curve.steps, tuple(scale * value + shift for value in curve.values))
    assert curves.auc(moved) == pytest.approx(scale * curves.auc(curve) + shift)


def test_windows_as_they_are_written() -> None:
    assert curves.mean(RISING, Window.parse("last:0.4")) == 6.0
    assert curves.mean(RISING, Window.parse("first:0.5")) == pytest.approx(5 / 3)
    assert curves.auc(RISING, Window.parse("10..30")) == pytest.approx((25 + 50) / 20)
    assert curves.auc(RISING, Window.parse("15..")) == curves.auc(RISING, Window.parse("15..1e3"))
    assert curves.auc(RISING, Window.parse("all")) == curves.auc(RISING)
    assert curves.mean(RISING, Window.parse("last:0.01")) == 6.0


@pytest.mark.parametrize(
    "text", ["", "last", "last:0", "last:1.5", "first:1..2", "5..5", "9..3", "e..e", "1.2.3..4", "some"]
)
def test_windows_that_are_none_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadData, match=r"write all, first:0\.5, last:0\.25, or steps as 1000\.\.5000"):
        Window.parse(text)


def test_summaries_of_single_points() -> None:
    assert (curves.final(RISING), curves.best(RISING), curves.best(RISING, lowest=True)) == (6.0, 6.0, 0.0)
    assert curves.last(RISING, 2) == 6.0
    assert curves.last(RISING, 100) == pytest.approx(3.4)
    assert curves.auc(Curve((5.0,), (2.0,))) == 2.0


def test_a_threshold_is_reached_on_the_line_or_not_at_all() -> None:
    assert curves.steps_to(RISING, 2.5) == curves.Reached(15.0, False)
    assert curves.steps_to(RISING, 0.0) == curves.Reached(0.0, False)
    assert curves.steps_to(RISING, 7.0) == curves.Reached(40.0, True)
    falling = Curve((0.0, 10.0), (8.0, 4.0))
    assert curves.steps_to(falling, 6.0, lowest=True) == curves.Reached(5.0, False)


def test_curves_are_compared_over_what_all_cover() -> None:
    late, early = Curve((10.0, 50.0), (1.0, 1.0), "late"), Curve((0.0, 5.0), (1.0, 1.0), "early")
    assert curves.common([RISING, late]) == (10.0, 40.0)
    with pytest.raises(BadData, match="late begins at step 10, after early ends at 5"):
        curves.common([early, late])


def test_arms_part_where_their_intervals_stop_touching_for_good() -> None:
    flat = [Curve((0.0, 10.0, 20.0, 30.0), (0.0 + e, 0.0 + e, 0.0 + e, 0.0 + e)) for e in (0.0, 0.1, 0.2)]
    up = [Curve((0.0, 10.0, 20.0, 30.0), (0.0 + e, 5.0 + e, 0.1 + e, 5.0 + e)) for e in (0.0, 0.1, 0.2)]
    assert curves.divergence(up, flat) == 30.0
    assert curves.divergence(flat, flat) is None


@pytest.mark.parametrize(
    ("steps", "values", "says"),
    [
        ((), (), "run 7 has no points"),
        ((1.0, 2.0), (1.0,), "run 7: 2 steps, but 1 values"),
        ((1.0, 1.0), (1.0, 2.0), "run 7: step 1 comes after step 1; steps must go up"),
        ((1.0, 2.0), (1.0, math.nan), "run 7: the value at step 2 is nan"),
        ((1.0, math.inf), (1.0, 2.0), "both must be finite"),
    ],
)
def test_curves_that_are_none_are_named(steps: tuple[float, ...], values: tuple[float, ...], says: str) -> None:
    with pytest.raises(BadData, match=says):
        Curve(steps, values, "run 7")


def test_what_is_outside_a_curve_is_not_made_up() -> None:
    with pytest.raises(BadData, match="run 1 covers steps 0 to 40, not 41"):
        RISING.at(41)
    with pytest.raises(BadData, match="nothing in the window"):
        curves.auc(RISING, Window.parse("50..90"))
    with pytest.raises(BadData, match="a slope needs 2 points in the window, there is 1"):
        curves.slope(RISING, Window.parse("last:0.1"))
    with pytest.raises(BadData, match="at least 1"):
        curves.last(RISING, 0)
