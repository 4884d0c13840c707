"""Arms over many tasks: shares of wins, profiles, and places, however arms and tasks are ordered."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sharpen.stats.aggregates import Scores
from sharpen.stats.errors import BadData
from sharpen.stats.profiles import improvement, profile, ranks, same_tasks, scores_of

runs = st.lists(st.integers(0, 6).map(float), min_size=1, max_size=6)
tables = st.tuples(runs, runs, runs).map(lambda rows: dict(zip("abc", rows, strict=True)))


@settings(max_examples=40, deadline=None)
@given(tables, tables)
def test_improvement_is_the_mean_of_mann_whitneys_shares(
    new: dict[str, list[float]], old: dict[str, list[float]]
) -> None:
    expected = sum(stats.mannwhitneyu(new[t], old[t]).statistic / (len(new[t]) * len(old[t])) for t in new) / 3
    found = improvement(Scores(new), Scores(old), resamples=50)
    assert found.value == pytest.approx(expected)
    assert 0 <= found.low <= found.high <= 1 + 1e-6
    assert improvement(Scores(old), Scores(new), resamples=50).value == pytest.approx(1 - expected)


def test_a_clear_winner_wins_always() -> None:
    found = improvement(
        Scores({"a": [5.0, 6.0], "b": [7.0, 9.0]}), Scores({"a": [1.0], "b": [2.0, 3.0]}), resamples=200
    )
    assert (found.value, found.low, found.high) == pytest.approx((1.0, 1.0, 1.0))


@settings(max_examples=30, deadline=None)
@given(tables)
def test_profiles_fall_from_one_to_nought(table: dict[str, list[float]]) -> None:
    found = profile(Scores(table), [-1.0, 0.0, 2.5, 6.0], resamples=100)
    assert (found.shares[0], found.low[0]) == pytest.approx((1.0, 1.0)) and found.high[0] <= 1.0
    assert (found.shares[-1], found.high[-1]) == (0.0, 0.0)
    assert list(found.shares) == sorted(found.shares, reverse=True)
    assert found.shares[2] == pytest.approx(sum(sum(x > 2.5 for x in row) / len(row) for row in table.values()) / 3)


def test_places_add_up_and_the_better_arm_stands_first() -> None:
    arms = scores_of({"good": {"t": [3.0, 4.0], "u": [5.0, 6.0]}, "bad": {"u": [1.0, 1.5], "t": [1.0, 2.0]}})
    places = ranks(arms)
    assert places == {"good": (1.0, 0.0), "bad": (0.0, 1.0)}


def test_arms_that_tie_share_their_places_whoever_is_named_first() -> None:
    same = {"t": [1.0, 1.0], "u": [1.0, 1.0]}
    places = ranks([Scores(same, "x"), Scores(same, "y"), Scores({"t": [0.0], "u": [0.0]}, "z")])
    assert places["x"] == places["y"] == (0.5, 0.5, 0.0)
    assert places["z"] == (0.0, 0.0, 1.0)


def test_the_same_seed_gives_the_same_answer() -> None:
    new, old = Scores({"a": [1.0, 2.0, 4.0]}), Scores({"a": [0.0, 3.0, 2.0]})
    assert improvement(new, old, resamples=500, seed=3) == improvement(new, old, resamples=500, seed=3)
    assert profile(new, [1.5], resamples=500, seed=3) == profile(new, [1.5], resamples=500, seed=3)


def test_arms_on_different_tasks_are_not_compared() -> None:
    with pytest.raises(BadData, match="B has no scores on pong: arms can be compared on the tasks all of them ran"):
        scores_of({"A": {"pong": [1.0]}, "B": {}})
    with pytest.raises(BadData, match="B has no scores on pong"):
        same_tasks([Scores({"pong": [1.0], "qbert": [1.0]}, "A"), Scores({"qbert": [1.0]}, "B")])
    with pytest.raises(BadData, match="another order"):
        same_tasks([Scores({"x": [1.0], "y": [1.0]}, "A"), Scores({"y": [1.0], "x": [1.0]}, "B")])
