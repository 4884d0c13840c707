"""Intervals of a mean: Student's is scipy's, all move and scale with the data, and the default covers what it says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sharpen.stats import means
from sharpen.stats.errors import BadData

rows = st.lists(st.floats(-100, 100).map(lambda x: round(x, 3)), min_size=2, max_size=25)


@settings(max_examples=50, deadline=None)
@given(rows.filter(lambda row: len(set(row)) > 1), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_students_interval_is_that_of_scipy(row: list[float], level: float) -> None:
    expected = stats.ttest_1samp(row, 0).confidence_interval(level)
    found = means.student_interval(row, level)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-7, abs=1e-7)
    assert (found.n, found.level) == (len(row), level)


@settings(max_examples=25, deadline=None)
@given(rows, st.sampled_from(means.METHODS), st.floats(-50, 50), st.floats(0.1, 20))
def test_intervals_move_and_stretch_with_the_values(row: list[float], method: str, shift: float, scale: float) -> None:
    before = means.interval(row, method=method, resamples=200)
    after = means.interval([scale * x + shift for x in row], method=method, resamples=200)
    expected = [scale * x + shift for x in (before.value, before.low, before.high)]
    assert [after.value, after.low, after.high] == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("method", means.METHODS)
def test_equal_values_have_an_interval_of_no_width(method: str) -> None:
    found = means.interval([2.5] * 8, method=method)
    assert (found.low, found.value, found.high) == (2.5, 2.5, 2.5)


def test_the_default_is_t_for_the_very_few_and_studentised_from_five() -> None:
    assert means.interval([1.0, 2.0, 4.0, 3.0]).method == "t"
    assert means.interval([1.0, 2.0, 4.0, 3.0, 9.0]).method == "studentised"


@pytest.mark.parametrize("n", [5, 10, 15, 30])
def test_the_default_covers_what_it_says_for_normal_values(n: int) -> None:
    samples = np.random.Generator(np.random.PCG64(1)).normal(size=(800, n)).tolist()
    found = [means.interval(row, resamples=400, seed=k) for k, row in enumerate(samples)]
    # 93 to 97, and two standard errors of 800 trials.
    assert 0.915 < np.mean([e.low <= 0 <= e.high for e in found]) < 0.985


def test_the_default_holds_up_for_skewed_values() -> None:
    samples = np.random.Generator(np.random.PCG64(2)).lognormal(size=(800, 10)).tolist()
    found = [means.interval(row, resamples=400, seed=k) for k, row in enumerate(samples)]
    assert np.mean([e.low <= np.exp(0.5) <= e.high for e in found]) > 0.88


def test_the_same_seed_gives_the_same_interval() -> None:
    values = [0.3, 0.9, 0.1, 0.4, 0.5, 0.2]
    assert means.interval(values, seed=4) == means.interval(values, seed=4)


def test_what_is_asked_for_wrongly_is_said() -> None:
    with pytest.raises(BadData, match="no method 'magic'; there are auto, t, percentile, bca, studentised"):
        means.interval([1.0, 2.0], method="magic")
    with pytest.raises(BadData, match="1 values; at least 2"):
        means.interval([1.0])
    with pytest.raises(BadData, match="confidence level must lie between 0 and 1, got 95"):
        means.interval([1.0, 2.0, 3.0, 4.0, 5.0], 95)
