"""How many runs: the textbook's tables, statsmodels' solutions, and simulations that agree with the formula."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sharpen.stats import power
from sharpen.stats.errors import BadData
from sharpen.stats.paired import mean_difference

# TTestIndPower and TTestPower of statsmodels 0.15.0 for power 0.8 at 0.05.
SMALLEST = {
    3: (3.070892, 3.264044),
    5: (2.024440, 1.681997),
    8: (1.506634, 1.156035),
    10: (1.324947, 0.996002),
    15: (1.059800, 0.778023),
    20: (0.909129, 0.660442),
    30: (0.735620, 0.529236),
    50: (0.565880, 0.404183),
}


@pytest.mark.parametrize("n", SMALLEST)
def test_the_power_of_t_alone_is_that_of_statsmodels(n: int) -> None:
    for effect, paired in zip(SMALLEST[n], (False, True), strict=True):
        assert power.power_of_t(effect, 1.0, n, paired, 0.05) == pytest.approx(0.8, abs=1e-4)


@pytest.mark.parametrize("n", [6, 8, 12, 20])
def test_power_is_that_of_the_verdict(n: int) -> None:
    """An effect that t finds in 80 % of cases is found by six pairs in about 60."""
    effect = {6: 1.4346}.get(n, 3.1 / math.sqrt(n))
    rows = np.random.Generator(np.random.PCG64(n)).normal(effect, 1, (400, n))
    found = np.mean([mean_difference(row, span=math.inf).verdict == "better" for row in rows])
    assert power.power(effect, 1.0, n, paired=True) == pytest.approx(found, abs=0.07)
    assert n > 6 or 0.55 < power.power(effect, 1.0, 6, paired=True) < 0.65


def test_many_runs_are_as_good_as_t_alone() -> None:
    assert power.runs_needed(0.5, 1.0, paired=False) == 64
    assert 34 <= (power.runs_needed(0.5, 1.0, paired=True) or 0) <= 37


@settings(max_examples=5, deadline=None)
@given(st.floats(0.2, 3), st.floats(0.1, 5), st.booleans())
def test_what_is_needed_is_enough_and_one_less_is_not(effect: float, spread: float, paired: bool) -> None:
    n = power.runs_needed(effect, spread, paired=paired)
    assert n is not None
    assert power.power(effect, spread, n, paired=paired) >= 0.8
    assert n <= (6 if paired else 4) or power.power(effect, spread, n - 1, paired=paired) < 0.8
    assert power.runs_needed(-10 * effect, 10 * spread, paired=paired) == n


def test_simulated_studies_find_as_often_as_the_formula_says() -> None:
    generator = np.random.Generator(np.random.PCG64(1))
    row = generator.normal(size=400)
    pilot = ((row - row.mean()) / row.std(ddof=1)).tolist()
    for n, effect in ((10, 1.0), (6, 1.5)):
        expected = power.power(effect, 1.0, n, paired=True)
        assert power.simulated(pilot, effect, n, trials=300) == pytest.approx(expected, abs=0.09)
        expected = power.power(effect, 1.0, n, paired=False)
        assert power.simulated((pilot, pilot), effect, n, trials=300) == pytest.approx(expected, abs=0.09)


def test_with_no_effect_simulated_studies_find_their_level() -> None:
    pilot = np.random.Generator(np.random.PCG64(2)).normal(size=300).tolist()
    assert power.simulated(pilot, 0.0, 12) == pytest.approx(0.045, abs=0.025)
    assert power.simulated(pilot, 0.0, 12, seed=1) == power.simulated(pilot, 0.0, 12, seed=1)


def test_the_limit_above_a_pilots_spread_holds_as_often_as_it_says() -> None:
    pilots = np.random.Generator(np.random.PCG64(3)).normal(size=(1500, 5)).tolist()
    assert np.mean([power.upper_spread(pilot) > 1.0 for pilot in pilots]) == pytest.approx(0.8, abs=0.04)
    values = [1.0, 2.0, 4.0, 3.0, 5.0]
    expected = float(np.std(values, ddof=1)) * math.sqrt(4 / stats.chi2.ppf(0.2, 4))
    assert power.upper_spread(values) == pytest.approx(expected)


def test_what_cannot_be_seen_is_said_so() -> None:
    assert power.runs_needed(0.0, 1.0, paired=True) is None
    assert power.runs_needed(1e-6, 1.0, paired=True) is None
    assert power.smallest_effect(1, 1.0, paired=True) is None
    assert power.runs_needed(0.5, 0.0, paired=True) == 6  # the fewest an exact test takes
    with pytest.raises(BadData, match="a spread 0 or more"):
        power.power(0.5, -1.0, 10, paired=True)
    with pytest.raises(BadData, match="an effect must be finite"):
        power.power(math.nan, 1.0, 10, paired=True)
    with pytest.raises(BadData, match="1 pilot runs; at least 2"):
        power.upper_spread([1.0])
