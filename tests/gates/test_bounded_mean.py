"""The test behind every proof, against exact probabilities, simulation and awkward distributions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sharpen.gates.bounded_mean import _probability_below, _with_worst, binomial_tail, fair_coins, interval, p_value


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 30))
@settings(max_examples=60, deadline=None)
def test_for_unit_values_it_is_the_exact_sign_test(wins: int, losses: int, ties: int) -> None:
    values = [1.0] * wins + [-1.0] * losses + [0.0] * ties
    exact = stats.binomtest(wins, wins + losses, alternative="greater").pvalue if wins + losses else 1.0
    assert p_value(values) == pytest.approx(exact, abs=1e-12)
    assert _probability_below(_with_worst(values, 1.0)) == pytest.approx(exact, abs=2e-5)


@given(st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=60))
@settings(max_examples=40, deadline=None)
def test_graded_values_agree_with_weights_drawn_at_random(values: list[float]) -> None:
    weights = np.random.default_rng(0).exponential(size=(20_000, len(values) + 1))
    seen = float((weights @ np.array([*values, -1.0]) <= 0.0).mean())
    assert p_value(values) == pytest.approx(seen, abs=0.02)


def test_many_small_gains_prove_nothing_while_one_large_loss_may_be_missing() -> None:
    """Symmetry would make 60 small gains without a loss a certainty; one value of -1 in 60 would undo them."""
    assert p_value([1 / 60] * 60) > 0.3
    assert p_value([0.2] * 60) < 1e-3


@pytest.mark.parametrize("share", [0.03, 0.05, 0.1])
def test_small_gains_with_rare_large_losses_keep_the_level(share: float) -> None:
    generator = np.random.default_rng(1)
    gain = share / (1.0 - share)
    false = 0
    for _ in range(600):
        lost = generator.random(60) < share
        false += p_value(np.where(lost, -1.0, gain).tolist()) <= 0.05
    assert false <= 600 * 0.05 + 2.5 * math.sqrt(600 * 0.05 * 0.95)


@given(
    st.lists(st.sampled_from([-1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=40),
    st.sampled_from([0.005, 0.02, 0.05]),
)
@settings(max_examples=60, deadline=None)
def test_the_interval_is_the_test_turned_round(values: list[float], level: float) -> None:
    low, high = interval(values, level)
    assert -1.0 <= low <= high <= 1.0
    p = p_value(values)
    if abs(p - level) > 1e-4:
        assert (low > 0.0) == (p < level)


def test_a_larger_bound_asks_for_more() -> None:
    values = [1.0] * 8
    assert p_value(values, bound=1.0) < p_value(values, bound=2.0) < p_value(values, bound=4.0)


def test_sums_far_from_zero_are_bounded_quickly() -> None:
    assert p_value([0.5, 0.25] * 5000) < 1e-12
    assert p_value([-0.5, -0.25] * 5000) == 1.0


def test_coins_counted_with_logarithms_agree_with_whole_numbers() -> None:
    assert sum(fair_coins(2000)) == pytest.approx(1.0, abs=1e-9)
    assert binomial_tail(2000, 1037) == pytest.approx(float(stats.binom.sf(1036, 2000, 0.5)), rel=1e-9)
