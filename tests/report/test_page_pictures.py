"""Pictures keep inside of their box, say what they show, and hold no markup but their own."""

from __future__ import annotations

import math
import random
import xml.etree.ElementTree as Tree
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sharpen.report.page import svg
from sharpen.report.page.axes import NORMALISED, Scale, second, ticks
from sharpen.report.page.bars import Bar, bars
from sharpen.report.page.curves import Banded, Pin, curves
from sharpen.report.page.dots import Group, Pair, dots
from sharpen.report.page.forest import Row, Value, forest
from sharpen.report.page.heat import Column, heat
from sharpen.report.page.marks import LETTER, Area, Line, Picture, Words, fitted
from sharpen.report.page.panels import grid, on_paper
from sharpen.report.page.radar import radar
from sharpen.stats.normalise import Reference

Inside = Callable[[Picture], None]
NAMES = st.text(max_size=80)
SCORES = st.floats(0, 1)
ANY = st.floats(-1e6, 1e6)


@given(st.lists(st.tuples(NAMES, st.lists(SCORES, min_size=1, max_size=30)), min_size=1, max_size=9), st.booleans())
@settings(max_examples=40)
def test_curves_stay_on_the_paper(all_inside: Inside, series: list[tuple[str, list[float]]], banded: bool) -> None:
    made = []
    for name, values in series:
        low, high = tuple(v / 2 for v in values), tuple((1 + v) / 2 for v in values)
        steps = tuple(float(step) for step in range(len(values)))
        made.append(Banded(name, steps, tuple(values), low if banded else (), high if banded else ()))
    all_inside(curves("x", "title", made, "step", "score"))


@given(st.lists(st.tuples(NAMES, st.lists(ANY, min_size=1, max_size=9)), min_size=1, max_size=9), ANY, st.booleans())
@settings(max_examples=40)
def test_returns_of_any_size_their_pins_and_second_scale_stay_on_the_paper(
    all_inside: Inside, series: list[tuple[str, list[float]]], low: float, normalised: bool
) -> None:
    normal = Reference(low, low + 100.0, 100.0) if normalised else None
    made = [Banded(name, tuple(1e5 * n for n in range(len(row))), tuple(row)) for name, row in series]
    pins = [Pin("best", 1e5, low), Pin("best, measured again", 1e5, low, low - 50, low + 50)]
    all_inside(on_paper(curves("x", "title " * 30, made, "step", "score", within=None, normal=normal, pins=pins)))
    groups = [Group(name, tuple(row), row[0], low, row[-1]) for name, row in series]
    pairs = [Pair((0, len(groups) - 1), (groups[0].values[0], groups[-1].values[0]))]
    all_inside(on_paper(dots("x", "title", groups, pairs, "score", normal)))
    rows = [Row(name, (Value(row[0], low, row[-1]),)) for name, row in series]
    all_inside(on_paper(forest("x", "title", rows, (), "score", normal=normal)))


def test_what_leaves_the_scale_is_cut_where_it_crosses_the_edge() -> None:
    steps, values = (0.0, 1.0, 2.0, 3.0), (4.0, 0.5, 0.5, -1.5)
    low, high = tuple(value - 0.25 for value in values), tuple(value + 0.25 for value in values)
    made = curves("x", "title", [Banded("one", steps, values, low, high)], "step", "score", within=(0.0, 1.0))
    grid_lines = [mark.points for mark in made.marks if isinstance(mark, Line) and mark.colour == "grid"]
    (left, foot), (right, top) = grid_lines[0][0], grid_lines[-1][1]

    def told(points: tuple[tuple[float, float], ...]) -> list[tuple[float, float]]:
        return [(round(3 * (x - left) / (right - left), 3), round((foot - y) / (foot - top), 3)) for x, y in points]

    (line,) = (mark for mark in made.marks if isinstance(mark, Line) and mark.colour == "c0")
    assert told(line.points) == [(0.857, 1.0), (1.0, 0.5), (2.0, 0.5), (2.25, 0.0)]
    areas = [mark for mark in made.marks if isinstance(mark, Area) and mark.colour == "c0"]
    assert [spot.title for spot in areas[1:]] == ["one, step 1: 0.5", "one, step 2: 0.5"]
    assert sorted(told(areas[0].points)) == [
        (0.786, 1.0), (0.929, 1.0), (1.0, 0.25), (1.0, 0.75), (2.0, 0.25), (2.0, 0.75), (2.125, 0.0), (2.375, 0.0),
    ]  # fmt: skip


@given(ANY, st.floats(0.1, 1e4), st.sampled_from([-1.0, 1.0]), st.sampled_from([1.0, 100.0]))
def test_a_second_scale_tells_the_same_place_in_other_numbers(
    low: float, wide: float, way: float, times: float
) -> None:
    normal = Reference(low, low + way * wide, times)
    scale = Scale(low - 2 * wide, low + 2 * wide, 300.0, 20.0)
    found = second(scale, normal)
    assert len(found) >= 2
    for at, told in found:
        raw = scale.low + (at - scale.start) / (scale.end - scale.start) * (scale.high - scale.low)
        assert normal.of(raw) == pytest.approx(float(told), rel=1e-3, abs=1e-3 * times)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=7), st.integers(1, 3))
def test_pictures_on_one_paper_do_not_overlap(sizes: list[tuple[int, int]], across: int) -> None:
    made = [
        Picture(str(n), "", 10.0 * w, 10.0 * h, (Area(((0, 0), (10.0 * w, 10.0 * h)), "ink", title=str(n)),))
        for n, (w, h) in enumerate(sizes)
    ]
    whole = grid("x", "title", made, across)
    boxes = [mark.points for mark in whole.marks if isinstance(mark, Area)]
    assert all(x <= whole.width and y <= whole.height for _, (x, y) in boxes)
    for n, (one_start, one_end) in enumerate(boxes):
        for other_start, other_end in boxes[n + 1 :]:
            assert any(one_end[k] < other_start[k] or other_end[k] < one_start[k] for k in (0, 1))


def test_names_too_long_for_their_columns_are_told_by_their_marks() -> None:
    short = dots("x", "t", [Group("a", (1.0,)), Group("b", (2.0,))], [], "score")
    names = [f"arm-{n}-with-a-rather-long-name" for n in range(8)]
    long = dots("x", "t", [Group(name, (float(n),)) for n, name in enumerate(names)], [], "score")
    assert set(names) <= {mark.text for mark in long.marks if isinstance(mark, Words)}
    assert long.height > short.height


def test_a_scale_is_called_normalised_where_it_is_and_nowhere_else() -> None:
    series = [Banded("a", (0.0, 1.0), (10.0, 20.0))]
    for normal in (None, Reference(0.0, 20.0)):
        picture = curves("x", "title", series, "step", "score", within=None, normal=normal)
        words = [mark.text for mark in picture.marks if isinstance(mark, Words)]
        assert (NORMALISED in words) == (normal is not None)


@given(
    st.lists(st.tuples(NAMES, ANY, st.floats(0, 1e9) | st.just(math.inf)), min_size=1, max_size=12),
    st.booleans(), NAMES,
)  # fmt: skip
@settings(max_examples=40)
def test_a_forest_stays_on_the_paper_also_where_intervals_have_no_end(
    all_inside: Inside, rows: list[tuple[str, float, float]], zero: bool, figures: str
) -> None:
    made = [Row(name, (Value(x, x - half, x + half, place),), figures) for place, (name, x, half) in enumerate(rows)]
    all_inside(forest("x", "title", [Row("heading"), *made], ["a", "b"], "effect", zero=zero))


@given(st.lists(st.tuples(NAMES, SCORES, SCORES), min_size=3, max_size=24))
@settings(max_examples=40)
def test_a_radar_stays_on_the_paper(all_inside: Inside, axes: list[tuple[str, float, float]]) -> None:
    arms = {"a": [row[1] for row in axes], "b": [row[2] for row in axes]}
    all_inside(radar("x", "title", [row[0] for row in axes], arms))


@given(st.integers(1, 6), st.integers(1, 80), st.randoms())
@settings(max_examples=40)
def test_a_heat_map_has_a_cell_for_each_item_and_step(
    all_inside: Inside, items: int, steps: int, chance: random.Random
) -> None:
    scores = [[chance.choice([None, 0.0, 0.3, 0.5, 1.0]) for _ in range(steps)] for _ in range(items)]
    names = [f"item {number}" for number in range(items)]
    picture = heat("x", "title", names, [Column(str(step), step % 2 == 0) for step in range(steps)], scores)
    all_inside(picture)
    told = [mark.title for mark in picture.marks if getattr(mark, "title", "")]
    assert len(told) == items * steps
    assert sum(title.endswith("not measured") for title in told) == sum(x is None for row in scores for x in row)


@given(st.lists(st.tuples(NAMES, st.floats(0, 1e12)), min_size=1, max_size=12))
@settings(max_examples=40)
def test_bars_are_as_long_as_their_amounts(all_inside: Inside, rows: list[tuple[str, float]]) -> None:
    picture = bars("x", "title", [Bar(name, amount, f"{amount:g} tokens") for name, amount in rows])
    all_inside(picture)
    lengths = [mark.points[1][0] - mark.points[0][0] for mark in picture.marks if getattr(mark, "title", "")]
    most = max(amount for _, amount in rows)
    if most > 1e-9:
        for length, (_, amount) in zip(lengths, rows, strict=True):
            assert length == pytest.approx(max(lengths) * amount / most, abs=0.01)


def test_right_and_wrong_have_different_colours_and_half_is_not_empty() -> None:
    picture = heat("x", "title", ["i"], [Column(str(n), False) for n in range(4)], [[0.0, 0.5, 1.0, None]])
    wrong, half, right, empty = [mark for mark in picture.marks if getattr(mark, "title", "")]
    assert len({wrong.colour, right.colour, empty.colour}) == 3
    assert half.opacity > empty.opacity


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "\"&'", "\x00\x1b[31mred", "]]>"])
def test_a_label_can_not_be_markup(text: str) -> None:
    picture = bars(text, text, [Bar(text, 1.0, text)])
    root = Tree.fromstring(svg.as_file(picture))
    assert {child.tag.rpartition("}")[2] for child in root.iter()} <= {
        "svg", "title", "style", "rect", "polygon", "polyline", "text",
    }  # fmt: skip
    assert "<script" not in svg.inline(picture)


@given(st.text(max_size=60), st.floats(0, 400))
def test_a_shortened_label_fits_and_keeps_both_ends(text: str, room: float) -> None:
    shown = fitted(text, room, 12)
    assert len(shown) <= max(1, room / (LETTER * 12) + 1e-6)
    if shown != text and len(shown) > 2:
        assert shown[0] == text[0] and shown[-1] == text[-1]


@given(ANY, st.floats(1e-6, 1e6))
def test_ticks_are_inside_and_in_order(low: float, wide: float) -> None:
    high = low + wide
    found = ticks(low, high)
    slack = 1e-6 * max(abs(low), abs(high), wide)
    assert all(low - slack <= tick <= high + slack for tick in found)
    assert found == sorted(found) and len(found) <= 12


@given(ANY, st.floats(0, 1e6), st.floats(allow_nan=False))
def test_a_scale_never_leaves_its_stretch(low: float, wide: float, value: float) -> None:
    at = Scale(low, low + wide, 10, 20).at(value)
    assert math.isfinite(at) and 10 <= at <= 20
