"""Intervals agree with scipy where it has them, cover what they claim, and stay sane at the extremes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sharpen.core.rng import Stream
from sharpen.stats import student
from sharpen.stats.intervals import bounded_mean, wilson
from sharpen.stats.paired import paired_difference
from sharpen.stats.summary import summarise, summarise_by_type

scores = st.floats(0, 1, allow_nan=False)
binary = st.sampled_from([0.0, 1.0])


@pytest.mark.parametrize(("hits", "n", "level"), [(0, 7, 0.95), (3, 10, 0.9), (50, 50, 0.95), (37, 100, 0.99)])
def test_wilson_agrees_with_scipy(hits: int, n: int, level: float) -> None:
    from scipy.stats import binomtest

    expected = binomtest(hits, n).proportion_ci(level, method="wilson")
    assert wilson(hits, n, level) == pytest.approx((expected.low, expected.high), abs=1e-9)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_student_agrees_with_scipy(freedom: int, level: float) -> None:
    from scipy.stats import t

    assert student.critical(level, freedom) == pytest.approx(t.ppf((1 + level) / 2, freedom), rel=1e-9)


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_constant_scores_have_one_interval_whoever_asks(value: float) -> None:
    low, high, _ = bounded_mean([value] * 20)
    assert (summarise([value] * 20).low, summarise([value] * 20).high) == (low, high)
    assert low < high


def test_binary_pairs_without_a_difference_still_leave_doubt() -> None:
    found = paired_difference([1.0, 0.0] * 10, [1.0, 0.0] * 10)
    assert found.mean == 0.0
    assert -0.2 < found.low < 0.0 < found.high < 0.2


@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_equal_continuous_differences_leave_less_doubt_the_more_there_are(n: int) -> None:
    found = paired_difference([0.6] * n, [0.4] * n)
    assert -1.0 <= found.low < 0.2 < found.high <= 1.0
    more = paired_difference([0.6] * 2 * n, [0.4] * 2 * n)
    assert more.high - more.low < found.high - found.low


def test_no_pairs_say_nothing() -> None:
    found = paired_difference([], [])
    assert (found.low, found.high, found.n) == (-1.0, 1.0, 0)


def test_pairs_of_unequal_length_are_refused() -> None:
    with pytest.raises(ValueError, match="2 new, 1 old"):
        paired_difference([1.0, 0.0], [1.0])


@settings(deadline=None, max_examples=60)
@given(
    st.one_of(
        st.lists(st.tuples(scores, scores), min_size=1, max_size=30), st.lists(st.tuples(binary, binary), min_size=1)
    )
)
def test_the_interval_holds_the_mean_and_is_never_wider_than_the_range(pairs: list[tuple[float, float]]) -> None:
    found = paired_difference([a for a, _ in pairs], [b for _, b in pairs])
    assert -1.0 <= found.low <= found.mean + 1e-9
    assert found.mean - 1e-9 <= found.high <= 1.0


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(binary, binary), min_size=1, max_size=40))
def test_swapping_the_arms_mirrors_the_interval(pairs: list[tuple[float, float]]) -> None:
    forth = paired_difference([a for a, _ in pairs], [b for _, b in pairs])
    back = paired_difference([b for _, b in pairs], [a for a, _ in pairs])
    assert (back.low, back.high) == pytest.approx((-forth.high, -forth.low))


@pytest.mark.parametrize(("gain", "loss", "n"), [(0.15, 0.05, 40), (0.3, 0.1, 100), (0.02, 0.02, 60)])
def test_the_binary_paired_interval_covers(gain: float, loss: float, n: int) -> None:
    held = 0
    for run in range(150):
        stream = Stream(run, "coverage", n)
        draws = [stream.random() for _ in range(n)]
        base = [float(stream.random() < 0.5) for _ in range(n)]
        new = [1.0 if d < gain else 0.0 if d > 1 - loss else b for d, b in zip(draws, base, strict=True)]
        old = [0.0 if d < gain else 1.0 if d > 1 - loss else b for d, b in zip(draws, base, strict=True)]
        found = paired_difference(new, old)
        held += found.low <= gain - loss <= found.high
    assert held >= 0.9 * 150


@pytest.mark.parametrize("n", [6, 30, 80])
def test_the_continuous_interval_covers(n: int) -> None:
    held = 0
    for run in range(200):
        stream = Stream(run, "continuous", n)
        low, high, _ = bounded_mean([stream.random() ** 2 for _ in range(n)])
        held += low <= 1 / 3 <= high
    assert held >= 0.92 * 200


def test_a_summary_leaves_out_what_failed_and_counts_it() -> None:
    found = summarise([1.0, None, 0.0, 1.0], failed=2)
    assert found.mean == pytest.approx(2 / 3)
    assert (found.n, found.failed, found.method) == (3, 3, "Wilson")
    assert found.row() == [found.mean, found.low, found.high, 3, 3]


def test_a_summary_of_nothing_has_no_mean() -> None:
    assert summarise([None, None]).row() == [None, None, None, 0, 2]


def test_a_single_partial_score_says_nothing_about_its_neighbours() -> None:
    found = summarise([0.4])
    assert (found.low, found.high) == (0.0, 1.0)


def test_values_of_another_range_keep_to_it() -> None:
    found = summarise([-0.2, 0.1, 0.3, 0.0, 0.2], low=-1.0)
    assert found.low is not None and -1.0 <= found.low < 0.0


def test_summaries_by_type_are_in_alphabetical_order() -> None:
    found = summarise_by_type(["b", "a", "b"], [1.0, 0.5, None])
    assert list(found) == ["a", "b"]
    assert (found["b"].n, found["b"].failed) == (1, 1)


def test_one_return_without_bounds_has_no_interval() -> None:
    found = summarise([15.0], low=float("-inf"), high=float("inf"))
    assert found.row() == [15.0, None, None, 1, 0]
