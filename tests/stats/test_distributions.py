"""Student's t and chi-squared agree with scipy far beyond the digits anybody prints, also far out in the tails."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sharpen.stats import chi, student
from sharpen.stats.errors import BadData

freedoms = st.floats(1.0, 500.0)
quick = settings(max_examples=60, deadline=None)


@quick
@given(st.floats(-60, 60), freedoms)
def test_the_t_distribution_agrees(t: float, freedom: float) -> None:
    assert student.cdf(t, freedom) == pytest.approx(stats.t.cdf(t, freedom), rel=1e-8, abs=1e-7)
    assert student.two_sided(t, freedom) == pytest.approx(2 * stats.t.sf(abs(t), freedom), rel=1e-8, abs=1e-7)


@pytest.mark.parametrize(("t", "freedom"), [(8.0, 30), (-12.0, 100), (50.0, 4), (-900.0, 2)])
def test_small_tails_keep_their_digits(t: float, freedom: float) -> None:
    assert student.cdf(-abs(t), freedom) == pytest.approx(stats.t.cdf(-abs(t), freedom), rel=1e-8)
    assert student.two_sided(t, freedom) == pytest.approx(2 * stats.t.sf(abs(t), freedom), rel=1e-8)


@quick
@given(st.floats(0.001, 0.999), freedoms)
def test_t_quantiles_agree_and_are_the_inverse(p: float, freedom: float) -> None:
    assert student.quantile(p, freedom) == pytest.approx(stats.t.ppf(p, freedom), rel=1e-8, abs=1e-9)
    assert student.cdf(student.quantile(p, freedom), freedom) == pytest.approx(p, abs=1e-10)


def test_without_end_of_freedom_t_is_normal() -> None:
    assert student.critical(0.95, math.inf) == pytest.approx(1.959964, abs=1e-6)
    assert student.critical(0.95, 1e6) == pytest.approx(1.959966, abs=1e-5)
    assert student.cdf(1.0, math.inf) == pytest.approx(0.8413447, abs=1e-7)


@settings(max_examples=30, deadline=None)
@given(st.floats(0, 6), st.integers(1, 120), st.sampled_from([0.01, 0.05, 0.2]), st.booleans())
def test_power_is_that_of_the_noncentral_t(shift: float, freedom: int, alpha: float, one_sided: bool) -> None:
    bound = stats.t.ppf(1 - (alpha if one_sided else alpha / 2), freedom)
    expected = stats.nct.sf(bound, freedom, shift) + (0 if one_sided else stats.nct.cdf(-bound, freedom, shift))
    assert student.power(shift, freedom, alpha, one_sided=one_sided) == pytest.approx(expected, abs=2e-4)


@quick
@given(st.floats(0, 900), freedoms)
def test_the_chi_squared_distribution_agrees(x: float, freedom: float) -> None:
    assert chi.cdf(x, freedom) == pytest.approx(stats.chi2.cdf(x, freedom), rel=1e-8, abs=1e-12)


@quick
@given(st.floats(0.001, 0.999), freedoms)
def test_chi_squared_quantiles_agree(p: float, freedom: float) -> None:
    assert chi.quantile(p, freedom) == pytest.approx(stats.chi2.ppf(p, freedom), rel=1e-8)


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0, -0.5, math.nan])
def test_a_level_in_per_cent_is_refused(level: float) -> None:
    with pytest.raises(BadData, match="between 0 and 1"):
        student.critical(level, 5)
