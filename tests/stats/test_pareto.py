"""The front and what it covers, against what their definitions say, on points that hypothesis makes up."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharpen.stats.pareto import Direction, dominates, front, fronts, hypervolume

WAYS: list[Direction] = ["max", "min"]
values = st.integers(-4, 4).map(float)


@st.composite
def clouds(draw: st.DrawFn, most: int = 14) -> tuple[list[tuple[float, ...]], list[Direction]]:
    """Some points, often equal in some aims, and the way each aim goes."""
    aims = draw(st.integers(1, 3))
    points = draw(st.lists(st.tuples(*[values] * aims), max_size=most))
    return points, draw(st.lists(st.sampled_from(WAYS), min_size=aims, max_size=aims))


@given(clouds())
def test_the_front_is_whoever_nobody_dominates(cloud: tuple[list[tuple[float, ...]], list[Direction]]) -> None:
    points, ways = cloud
    expected = [n for n, one in enumerate(points) if not any(dominates(other, one, ways) for other in points)]
    assert front(points, ways) == expected
    assert bool(expected) == bool(points)


@given(clouds())
def test_everybody_has_one_rank_and_is_dominated_from_the_rank_before(
    cloud: tuple[list[tuple[float, ...]], list[Direction]],
) -> None:
    points, ways = cloud
    ranks = fronts(points, ways)
    assert sorted(itertools.chain(*ranks)) == list(range(len(points)))
    for before, after in itertools.pairwise(ranks):
        for place in after:
            assert any(dominates(points[other], points[place], ways) for other in before)


@given(clouds())
def test_dominance_is_a_strict_order(cloud: tuple[list[tuple[float, ...]], list[Direction]]) -> None:
    points, ways = cloud
    for a, b, c in itertools.product(points[:5], repeat=3):
        assert not (dominates(a, b, ways) and dominates(b, a, ways))
        assert not (dominates(a, b, ways) and dominates(b, c, ways)) or dominates(a, c, ways)


@given(clouds(8))
def test_the_hypervolume_is_the_number_of_unit_boxes_that_are_covered(
    cloud: tuple[list[tuple[float, ...]], list[Direction]],
) -> None:
    """With whole numbers, the volume can be counted box by box."""
    points, ways = cloud
    reference = [-5.0 if way == "max" else 5.0 for way in ways]
    gains = [[abs(x - r) for x, r in zip(point, reference, strict=True)] for point in points]
    boxes = itertools.product(*[[n + 0.5 for n in range(10)]] * len(ways))
    covered = sum(any(all(x < g for x, g in zip(box, gain, strict=True)) for gain in gains) for box in boxes)
    assert hypervolume(points, reference, ways) == pytest.approx(covered)


@given(clouds(8), st.data())
def test_only_the_front_counts_and_more_points_never_cover_less(
    cloud: tuple[list[tuple[float, ...]], list[Direction]], data: st.DataObject
) -> None:
    points, ways = cloud
    reference = [data.draw(values) for _ in ways]
    whole = hypervolume(points, reference, ways)
    assert hypervolume([points[place] for place in front(points, ways)], reference, ways) == pytest.approx(whole)
    assert hypervolume(points[1:], reference, ways) <= whole + 1e-9


def test_a_known_volume() -> None:
    points = [(1.0, 5.0), (3.0, 3.0), (4.0, 1.0), (2.0, 2.0)]
    assert front(points, ["max", "max"]) == [0, 1, 2]
    assert fronts(points, ["max", "max"]) == [[0, 1, 2], [3]]
    assert hypervolume(points, (0.0, 0.0), ["max", "max"]) == 1 * 5 + 2 * 3 + 1 * 1
    assert hypervolume(points, (5.0, 6.0), ["min", "min"]) == 4 * 1 + 3 * 3 + 1 * 1 + 0
    assert hypervolume([], (0.0, 0.0), ["max", "max"]) == 0.0
