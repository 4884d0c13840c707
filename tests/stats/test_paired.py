"""Interval, p and verdict of a paired difference agree with each other, and hold what they say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sharpen.stats import skew, unseen
from sharpen.stats.paired import BETTER, OPEN, WORSE, Interval, mean_difference
from sharpen.testing.scores import BEYOND, SHAPES, Shape, clustered

differences = st.one_of(
    st.lists(st.floats(-1, 1, allow_nan=False), min_size=2, max_size=40),
    st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.0, 0.0, 0.25, 0.5, 1.0]), min_size=2, max_size=60),
)


@settings(deadline=None, max_examples=150)
@given(differences, st.sampled_from([0.8, 0.9, 0.95, 0.99]), st.sampled_from([1.0, math.inf]))
def test_the_interval_excludes_nought_exactly_where_p_says_so(row: list[float], level: float, span: float) -> None:
    found = mean_difference(row, level, span=span)
    assert (found.p <= round(1 - level, 12)) == (found.verdict != OPEN)
    assert found.low <= found.mean + 1e-9 and found.mean - 1e-9 <= found.high
    mirrored = mean_difference([-value for value in row], level, span=span)
    assert (mirrored.low, mirrored.high, mirrored.p) == pytest.approx((-found.high, -found.low, found.p), abs=1e-9)
    assert {found.verdict, mirrored.verdict} in ({OPEN}, {BETTER, WORSE})


@pytest.mark.parametrize("n", [3, 8, 12, 40, 120, 2000])
@pytest.mark.parametrize("rise", [0.1, 0.5, 1.0])
def test_three_items_that_rise_and_none_that_falls_are_not_better(n: int, rise: float) -> None:
    found = mean_difference([rise] * 3 + [0.0] * (n - 3))
    assert found.verdict == OPEN
    assert found.p == 0.25
    assert found.low <= 0.0 < found.high


def test_six_of_six_are_better_where_they_rise_alike_and_not_where_one_rules() -> None:
    assert mean_difference([0.3, 0.4, 0.35, 0.45, 0.3, 0.4], span=math.inf).verdict == BETTER
    assert mean_difference([0.01, 0.01, 0.02, 0.01, 0.02, 0.9], span=math.inf).verdict == OPEN


def test_p_is_the_larger_of_flips_and_t() -> None:
    row = np.random.Generator(np.random.PCG64(3)).normal(0.3, 1, 14)
    found = mean_difference(row, span=math.inf)
    flips = stats.permutation_test((row,), np.mean, permutation_type="samples", n_resamples=np.inf).pvalue
    assert found.p >= max(flips, stats.ttest_1samp(row, 0).pvalue) - 1e-12


def test_symmetric_values_have_students_interval() -> None:
    row = np.array([-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 0.5, -0.5])
    expected = stats.ttest_1samp(row, 0).confidence_interval()
    assert skew.moments(row).ends(0.95) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize("hits", [1, 3, 5])
def test_bounds_for_the_unseen_are_those_of_clopper_and_pearson_for_two_values(hits: int) -> None:
    row = np.array([1.0] * hits + [0.0] * (20 - hits))
    expected = stats.binomtest(hits, 20).proportion_ci(0.95, method="exact")
    assert unseen.ends(row, 0.95, 0.0, 1.0) == pytest.approx((expected.low, expected.high), abs=0.01)


def test_the_same_rise_everywhere_is_better_only_from_enough_items_on() -> None:
    assert mean_difference([0.2] * 6).verdict == OPEN
    assert mean_difference([0.2] * 30).verdict == BETTER


def test_one_pair_says_nothing() -> None:
    assert mean_difference([0.7]).verdict == OPEN
    assert mean_difference([0.7]).p == 1.0


def test_items_of_one_group_count_once() -> None:
    row = [0.3, 0.31, 0.29, 0.3, 0.32, 0.3, 0.28, 0.3]
    assert mean_difference(row).verdict == BETTER
    pairs = mean_difference(row, groups=[0, 0, 1, 1, 2, 2, 3, 3])
    assert pairs.verdict == OPEN and pairs.groups == 4
    alone = mean_difference(row, groups=[0] * 8)
    assert (alone.low, alone.high, alone.p, alone.groups) == (-1.0, 1.0, 1.0, 1)


def test_groups_of_one_item_are_no_groups() -> None:
    row = np.random.Generator(np.random.PCG64(5)).normal(0.05, 0.2, 30)
    alone, grouped = mean_difference(row), mean_difference(row, groups=list(range(30)))
    assert (grouped.mean, grouped.low, grouped.high, grouped.p) == pytest.approx(
        (alone.mean, alone.low, alone.high, alone.p)
    )


def coverage(shape: Shape, n: int, trials: int) -> tuple[float, float]:
    """The share of intervals that hold the truth, and of verdicts that a difference of nought is none."""
    rows = shape.draw(np.random.Generator(np.random.PCG64(n)), (trials, n))
    return shares([mean_difference(row) for row in rows], shape.mean)


def shares(found: list[Interval], truth: float) -> tuple[float, float]:
    held = sum(one.low - 1e-12 <= truth <= one.high + 1e-12 for one in found)
    return held / len(found), sum(one.verdict != OPEN for one in found) / len(found)


def least(nominal: float, trials: int) -> float:
    """What a share that is truly `nominal` stays above but for one time in a thousand."""
    return nominal - 3.1 * math.sqrt(nominal * (1 - nominal) / trials)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
@pytest.mark.parametrize("n", [12, 40])
def test_intervals_hold_the_truth_and_verdicts_are_seldom_false(shape: Shape, n: int) -> None:
    held, claimed = coverage(shape, n, 120)
    assert held >= least(0.935, 120)
    if shape.mean == 0.0:
        assert claimed <= 1 - least(0.935, 120)


@pytest.mark.slow
@pytest.mark.parametrize("n", [8, 16, 40, 120])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_coverage_is_nominal_within_a_point_and_a_half(shape: Shape, n: int) -> None:
    trials = 600
    held, claimed = coverage(shape, n, trials)
    assert held >= least(0.935, trials)
    if not shape.discrete:
        assert 1 - held >= 0.035 - 3.1 * math.sqrt(0.035 * 0.965 / trials)
    if shape.mean == 0.0:
        assert claimed <= 1 - least(0.935, trials)


@pytest.mark.parametrize("shape", BEYOND, ids=lambda shape: shape.name)
def test_falls_too_rare_to_be_seen_are_missed_until_there_are_items_enough(shape: Shape) -> None:
    assert coverage(shape, 20, 200)[0] < 0.935
    assert coverage(shape, 120, 200)[0] >= least(0.935, 200)


@pytest.mark.slow
@pytest.mark.parametrize(("groups", "size"), [(8, 5), (15, 4), (30, 4), (30, 1)])
def test_groups_keep_the_level_where_items_of_a_group_go_together(groups: int, size: int) -> None:
    rng, trials = np.random.Generator(np.random.PCG64(groups)), 600
    counted, alone = [], []
    for _ in range(trials):
        row, names = clustered(rng, groups, size, 0.5)
        counted.append(mean_difference(row, groups=names))
        alone.append(mean_difference(row))
    assert shares(counted, 0.0)[0] >= least(0.935, trials)
    if size > 1:
        assert shares(alone, 0.0)[0] < 0.9  # as if independent
