"""Resampled intervals: the same as scipy's from the same draws, and sane where few values repeat."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from sharpen.stats import resampling
from sharpen.stats.errors import BadData

rows = st.lists(st.floats(-100, 100).map(lambda x: round(x, 3)), min_size=3, max_size=25).filter(
    lambda row: len(set(row)) > 2
)


@settings(max_examples=40, deadline=None)
@given(rows, st.sampled_from([0.8, 0.95, 0.99]))
def test_bca_equals_that_of_scipy_for_the_same_draws(row: list[float], level: float) -> None:
    values = np.array(row)
    drawn = resampling.means(values, 999, seed=3)
    # Given a finished bootstrap and no draws to add, scipy only makes the interval.
    done = stats.bootstrap((values,), np.mean, n_resamples=9, method="percentile", rng=np.random.default_rng(0))
    done.bootstrap_distribution = drawn
    with warnings.catch_warnings(action="ignore"):
        expected = stats.bootstrap(
            (values,), np.mean, n_resamples=0, confidence_level=level, method="BCa", bootstrap_result=done
        ).confidence_interval
    # Where sums of equal numbers in another order come out a digit apart, scipy takes a tie for a difference.
    assume(((drawn == values.mean()) == np.isclose(drawn, values.mean(), rtol=1e-9, atol=1e-12)).all())
    left_out = (values.sum() - values) / (len(values) - 1)
    found = resampling.bca(drawn, float(values.mean()), left_out, level)
    if math.isfinite(expected.low) and math.isfinite(expected.high):
        assert found == pytest.approx((expected.low, expected.high), rel=1e-6, abs=1e-6)


def test_intervals_agree_with_scipy_within_what_draws_differ_by() -> None:
    values = np.random.Generator(np.random.PCG64(5)).lognormal(size=20)
    for method, ours in (
        ("percentile", resampling.percentile(resampling.means(values, 20_000, 1))),
        ("BCa", resampling.bca_mean(values, 0.95, 20_000, 1)),
    ):
        rng = np.random.default_rng(2)
        expected = stats.bootstrap((values,), np.mean, n_resamples=20_000, method=method, rng=rng).confidence_interval
        assert ours == pytest.approx((expected.low, expected.high), abs=0.04 * (expected.high - expected.low))


def test_values_that_hardly_vary_do_not_explode_the_studentised_interval() -> None:
    values = np.array([0.1] * 9 + [0.3])
    low, high = resampling.studentised(values)
    assert values.min() - 0.5 < low < values.mean() < high < 0.5


def test_the_studentised_interval_covers_successes_and_failures() -> None:
    generator = np.random.Generator(np.random.PCG64(1))
    samples = (generator.random((300, 15)) < 0.8).astype(float)
    held = [low <= 0.8 <= high for low, high in (resampling.studentised(row, 0.95, 500, 1) for row in samples)]
    assert np.mean(held) > 0.9


def test_the_same_seed_draws_the_same_and_another_does_not() -> None:
    values = np.arange(10.0)
    assert (resampling.means(values, 500, 1) == resampling.means(values, 500, 1)).all()
    assert (resampling.means(values, 500, 1) != resampling.means(values, 500, 2)).any()


def test_draws_come_in_blocks_without_losing_any() -> None:
    blocks = [block.shape for block in resampling.draws(1_000_000, 5, 0)]
    assert blocks == [(2, 1_000_000), (2, 1_000_000), (1, 1_000_000)]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([1.0, math.nan], "number 2 of the values is nan; all must be finite"),
        ([math.inf, 1.0], "number 1 of the values is inf"),
        ([], "0 values; at least 2 are needed"),
        ([1.0], "1 values; at least 2 are needed"),
        ([[1.0, 2.0], [3.0, 4.0]], r"got an array of shape \(2, 2\)"),
    ],
)
def test_numbers_that_cannot_be_used_are_named(values: list[float], says: str) -> None:
    with pytest.raises(BadData, match=says):
        resampling.numbers(values, 2)
