"""Times that some runs never come to: held against scipy, plain means where nobody is censored, and simulation."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from sharpen.stats.errors import BadData
from sharpen.stats.means import student_interval
from sharpen.stats.survival import (
    Times,
    kaplan_meier,
    log_rank,
    log_rank_statistic,
    median,
    pseudo_values,
    restricted_mean,
)

RUNS = st.lists(st.tuples(st.integers(1, 12), st.booleans()), min_size=2, max_size=12)


def times(rows: list[tuple[int, bool]]) -> Times:
    return Times(tuple(float(step) for step, _ in rows), tuple(reached for _, reached in rows))


def censored(of: Times) -> scipy.stats.CensoredData:
    pairs = list(zip(of.steps, of.reached, strict=True))
    return scipy.stats.CensoredData(uncensored=[s for s, r in pairs if r], right=[s for s, r in pairs if not r])


@settings(max_examples=60, deadline=None)
@given(RUNS)
def test_the_curve_is_that_of_scipy(rows: list[tuple[int, bool]]) -> None:
    if not any(reached for _, reached in rows):
        return
    found, theirs = kaplan_meier(times(rows)), scipy.stats.ecdf(censored(times(rows))).sf
    assert theirs.evaluate(list(found.steps)) == pytest.approx(list(found.shares))


@settings(max_examples=60, deadline=None)
@given(RUNS, RUNS)
def test_the_log_rank_statistic_is_that_of_scipy(one: list[tuple[int, bool]], other: list[tuple[int, bool]]) -> None:
    new, old = times(one), times(other)
    ours = log_rank_statistic(new, old)
    if ours == 0.0:
        return
    assert abs(ours) == pytest.approx(abs(scipy.stats.logrank(censored(new), censored(old)).statistic))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 30), min_size=2, max_size=10), st.integers(5, 30))
def test_where_nobody_is_censored_early_it_is_students_interval_of_the_times_cut_at_the_horizon(
    steps: list[int], until: int
) -> None:
    cut = [float(min(step, until)) for step in steps]
    found = Times(tuple(cut), tuple(step < until for step in steps))
    plain, ours = student_interval(cut), restricted_mean(found, until)
    assert (ours.value, ours.low, ours.high) == pytest.approx((plain.value, max(0, plain.low), min(until, plain.high)))
    assert pseudo_values(found, until) == pytest.approx(cut)


def test_a_run_that_was_watched_less_long_takes_what_the_others_say() -> None:
    # 2 of 4 are at 4 at step 2, the one who left at 3 counts until then, and the last gets there at 6.
    found = times([(2, True), (2, True), (3, False), (6, True)])
    assert kaplan_meier(found).shares == (0.5, 0.0)
    assert median(found) == 2
    assert restricted_mean(found, 6).value == pytest.approx(2 + 0.5 * 4)
    assert sum(pseudo_values(found, 6)) / 4 == pytest.approx(4.0, abs=0.5)


def test_the_median_is_unknown_where_less_than_half_get_there() -> None:
    assert median(times([(2, True), (9, False), (9, False)])) is None
    assert median(times([(2, True), (4, True), (9, False), (9, False)])) == 4


def test_the_permutations_are_all_counted_and_pairs_are_swapped_within() -> None:
    fast, slow = times([(n, True) for n in (1, 2, 3, 4)]), times([(n, n < 8) for n in (5, 6, 7, 8)])
    apart, together = log_rank(fast, slow), log_rank(fast, slow, paired=True)
    assert (apart.p, apart.smallest_p) == (2 / 70, 2 / 70)
    assert (together.p, together.smallest_p) == (2 / 16, 2 / 16)
    assert log_rank(slow, fast).p == apart.p
    assert log_rank(fast, fast).p == 1.0


def test_it_finds_nothing_in_a_thing_and_itself_more_often_than_it_says() -> None:
    generator = np.random.Generator(np.random.PCG64(5))
    found = 0
    for _ in range(400):
        drawn = generator.exponential(1.0, 12)
        both = Times(tuple(np.minimum(drawn, 1.0)), tuple(drawn < 1.0))
        halves = [Times(both.steps[part], both.reached[part]) for part in (slice(0, 6), slice(6, 12))]
        found += log_rank(*halves).p <= 0.05
    assert found / 400 <= 0.075


def test_restricted_means_cover_what_they_say_with_runs_that_leave_early() -> None:
    generator = np.random.Generator(np.random.PCG64(6))
    truth, held = 1 - np.exp(-1.0), 0
    for _ in range(400):
        arrives, leaves = generator.exponential(1.0, 15), generator.uniform(0.5, 3.0, 15)
        leaves[0] = 3.0
        found = restricted_mean(Times(tuple(np.minimum(arrives, leaves)), tuple(arrives <= leaves)), 1.0)
        held += found.low <= truth <= found.high
    assert 0.90 <= held / 400 <= 0.98


def test_more_than_can_be_counted_are_drawn_and_agree_with_the_normal_limit() -> None:
    generator = np.random.Generator(np.random.PCG64(7))
    groups = [generator.exponential(scale, 25) for scale in (1.0, 1.7)]
    new, old = (Times(tuple(np.minimum(group, 2.0)), tuple(group < 2.0)) for group in groups)
    found = log_rank(new, old)
    assert found.method == "log-rank, 99,999 permutations"
    assert found.p == pytest.approx(float(scipy.stats.logrank(censored(new), censored(old)).pvalue), rel=0.25, abs=0.01)


def test_what_can_not_be_used_is_refused() -> None:
    with pytest.raises(BadData, match="2 times, but 1 marks"):
        Times((1.0, 2.0), (True,))
    with pytest.raises(BadData, match="pairs need both times"):
        log_rank(times([(1, True)]), times([(1, True), (2, True)]), paired=True)
    with pytest.raises(BadData, match="takes at least 2"):
        restricted_mean(times([(1, True)]), 2.0)
