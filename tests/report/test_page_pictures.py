"""Pictures keep inside of their box, say what they show, and hold no markup but their own."""

from __future__ import annotations

import math
import random
import xml.etree.ElementTree as Tree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sharpen.report.page import svg
from sharpen.report.page.axes import Scale, ticks
from sharpen.report.page.bars import Bar, bars
from sharpen.report.page.curves import Banded, curves
from sharpen.report.page.forest import Row, Value, forest
from sharpen.report.page.heat import Column, heat
from sharpen.report.page.marks import LETTER, Picture, Words, fitted
from sharpen.report.page.radar import radar

NAMES = st.text(max_size=80)
SCORES = st.floats(0, 1)
ANY = st.floats(-1e6, 1e6)


def all_inside(picture: Picture) -> None:
    """Every point of every mark, and every word as wide as it is reckoned to be, lies on the paper."""
    for mark in picture.marks:
        points = ((mark.x, mark.y),) if isinstance(mark, Words) else mark.points
        for x, y in points:
            assert -1 <= x <= picture.width + 1 and -1 <= y <= picture.height + 1, mark
        if isinstance(mark, Words):
            wide = len(mark.text) * LETTER * mark.size
            start = mark.x - {"start": 0.0, "middle": wide / 2, "end": wide}[mark.anchor]
            assert start >= -12 and start + wide <= picture.width + 12, mark
    Tree.fromstring(svg.as_file(picture))


@given(st.lists(st.tuples(NAMES, st.lists(SCORES, min_size=1, max_size=30)), min_size=1, max_size=9), st.booleans())
@settings(max_examples=40)
def test_curves_stay_on_the_paper(series: list[tuple[str, list[float]]], banded: bool) -> None:
    made = []
    for name, values in series:
        low, high = tuple(v / 2 for v in values), tuple((1 + v) / 2 for v in values)
        steps = tuple(float(step) for step in range(len(values)))
        made.append(Banded(name, steps, tuple(values), low if banded else (), high if banded else ()))
    all_inside(curves("x", "title", made, "step", "score"))


@given(
    st.lists(st.tuples(NAMES, ANY, st.floats(0, 1e9) | st.just(math.inf)), min_size=1, max_size=12),
    st.booleans(), NAMES,
)  # fmt: skip
@settings(max_examples=40)
def test_a_forest_stays_on_the_paper_also_where_intervals_have_no_end(
    rows: list[tuple[str, float, float]], zero: bool, figures: str
) -> None:
    made = [Row(name, (Value(x, x - half, x + half, place),), figures) for place, (name, x, half) in enumerate(rows)]
    all_inside(forest("x", "title", [Row("heading"), *made], ["a", "b"], "effect", zero=zero))


@given(st.lists(st.tuples(NAMES, SCORES, SCORES), min_size=3, max_size=24))
@settings(max_examples=40)
def test_a_radar_stays_on_the_paper(axes: list[tuple[str, float, float]]) -> None:
    arms = {"a": [row[1] for row in axes], "b": [row[2] for row in axes]}
    all_inside(radar("x", "title", [row[0] for row in axes], arms))


@given(st.integers(1, 6), st.integers(1, 80), st.randoms())
@settings(max_examples=40)
def test_a_heat_map_has_a_cell_for_each_item_and_step(items: int, steps: int, chance: random.Random) -> None:
    scores = [[chance.choice([None, 0.0, 0.3, 0.5, 1.0]) for _ in range(steps)] for _ in range(items)]
    names = [f"item {number}" for number in range(items)]
    picture = heat("x", "title", names, [Column(str(step), step % 2 == 0) for step in range(steps)], scores)
    all_inside(picture)
    told = [mark.title for mark in picture.marks if getattr(mark, "title", "")]
    assert len(told) == items * steps
    assert sum(title.endswith("not measured") for title in told) == sum(x is None for row in scores for x in row)


@given(st.lists(st.tuples(NAMES, st.floats(0, 1e12)), min_size=1, max_size=12))
@settings(max_examples=40)
def test_bars_are_as_long_as_their_amounts(rows: list[tuple[str, float]]) -> None:
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
