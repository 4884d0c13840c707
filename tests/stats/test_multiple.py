"""Adjusted p-values: statsmodels' and scipy's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sharpen.stats import exact, multiple
from sharpen.stats.errors import BadData
from sharpen.stats.multiple import max_t

families = st.lists(st.floats(0, 1), min_size=1, max_size=20)


@settings(max_examples=60, deadline=None)
@given(families)
def test_benjamini_hochberg_is_that_of_scipy(p_values: list[float]) -> None:
    assert multiple.benjamini_hochberg(p_values) == pytest.approx(list(stats.false_discovery_control(p_values)))


@settings(max_examples=60, deadline=None)
@given(families)
def test_holm_lies_between_no_correction_and_bonferroni(p_values: list[float]) -> None:
    for p, holm in zip(p_values, multiple.holm(p_values), strict=True):
        assert p <= holm <= min(1.0, len(p_values) * p) + 1e-12
    assert all(
        b <= h + 1e-12 for b, h in zip(multiple.benjamini_hochberg(p_values), multiple.holm(p_values), strict=True)
    )


def test_a_family_as_statsmodels_adjusts_it() -> None:
    # multipletests of statsmodels 0.15.0, methods holm and fdr_bh.
    family = [0.01, 0.04, 0.03, 0.005, 0.2, 0.6]
    assert multiple.holm(family) == pytest.approx([0.05, 0.12, 0.12, 0.03, 0.4, 0.6])
    assert multiple.benjamini_hochberg(family) == pytest.approx([0.03, 0.06, 0.06, 0.03, 0.24, 0.6])


@pytest.mark.parametrize("p", [-0.1, 1.2, math.nan])
def test_what_is_no_p_value_is_refused(p: float) -> None:
    with pytest.raises(BadData, match=r"a p-value must lie in 0\.\.1"):
        multiple.holm([0.5, p])


def test_an_empty_family_stays_empty() -> None:
    assert multiple.holm([]) == multiple.benjamini_hochberg([]) == []


def test_max_t_holds_the_family_and_finds_more_than_holm_where_arms_go_together() -> None:
    generator, trials, false, sharper = np.random.Generator(np.random.PCG64(4)), 300, 0, 0
    for _ in range(trials):
        baseline = generator.normal(size=8)
        rows = [0.3 * generator.normal(size=8) - baseline for _ in range(6)]
        found = max_t(rows, resamples=999)
        plain = multiple.holm([exact.sign_flip(row).p for row in rows])
        false += min(found.p) <= 0.05
        sharper += sum(a < b for a, b in zip(found.p, plain, strict=True))
    assert false / trials <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / trials)
    assert sharper > 0.9 * 6 * trials


def test_one_row_of_max_t_is_the_sign_flip_test() -> None:
    row = [0.3, 0.5, -0.1, 0.8, 0.2, 0.4, 0.6]
    assert max_t([row]).p[0] == pytest.approx(exact.sign_flip(row).p)


def test_simultaneous_intervals_hold_together() -> None:
    generator, trials, held = np.random.Generator(np.random.PCG64(5)), 200, 0
    for _ in range(trials):
        shared = generator.normal(size=12)
        found = max_t([shared + generator.normal(size=12) + 1.0 for _ in range(4)], resamples=999)
        held += all(low <= 1.0 <= high for low, high in zip(found.low, found.high, strict=True))
    assert held / trials >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / trials) - 0.02
