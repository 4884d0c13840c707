"""Exact tests count what scipy counts, and say what a design can't reach."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sharpen.stats import exact
from sharpen.stats.errors import BadData

halves = st.integers(-20, 20).map(lambda k: k / 2)
quick = settings(max_examples=30, deadline=None)


def _difference(x: np.ndarray, y: np.ndarray, axis: int = 0) -> np.ndarray:
    return np.asarray(np.mean(x, axis=axis) - np.mean(y, axis=axis))


@quick
@given(st.lists(halves, min_size=2, max_size=9))
def test_sign_flips_count_what_scipy_counts(differences: list[float]) -> None:
    data = (np.array(differences), np.zeros(len(differences)))
    expected = stats.permutation_test(
        data, _difference, permutation_type="samples", vectorized=True, n_resamples=np.inf
    )
    assert exact.sign_flip(differences).p == pytest.approx(expected.pvalue)


@quick
@given(st.lists(halves, min_size=2, max_size=4), st.lists(halves, min_size=4, max_size=4))
def test_permutations_of_equal_groups_count_what_scipy_counts(new: list[float], old: list[float]) -> None:
    old = old[: len(new)]
    data = (np.array(new), np.array(old))
    expected = stats.permutation_test(data, _difference, vectorized=True, n_resamples=np.inf)
    assert exact.permutation(new, old).p == pytest.approx(expected.pvalue)


@quick
@given(st.lists(halves, min_size=1, max_size=5), st.lists(halves, min_size=1, max_size=5))
def test_permutations_of_unequal_groups_count_all_as_far_off(new: list[float], old: list[float]) -> None:
    from itertools import combinations

    def welch(one: np.ndarray, other: np.ndarray) -> float:
        difference = float(one.mean() - other.mean())
        if min(len(one), len(other)) < 2 or abs(difference) < 1e-12:
            return abs(difference)
        error = math.sqrt(one.var(ddof=1) / len(one) + other.var(ddof=1) / len(other))
        return abs(difference) / error if error > 1e-9 else math.inf

    pool = np.array(new + old)
    seen = welch(np.array(new), np.array(old))
    far = []
    for places in combinations(range(len(pool)), len(new)):
        mask = np.zeros(len(pool), bool)
        mask[list(places)] = True
        far.append(welch(pool[mask], pool[~mask]) >= seen * (1 - 1e-9))
    assert exact.permutation(new, old).p == pytest.approx(np.mean(far))


@quick
@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_exact_binomial(gained: int, lost: int) -> None:
    expected = stats.binomtest(gained, gained + lost).pvalue if gained + lost else 1.0
    assert exact.mcnemar(gained, lost).p == pytest.approx(expected)
    flips = exact.sign_flip([1.0] * gained + [-1.0] * lost + [0.0])
    assert flips.p == pytest.approx(expected)


@pytest.mark.parametrize("n", [29, 60, 300])
def test_many_pairs_agree_with_drawing_signs(n: int) -> None:
    generator = np.random.Generator(np.random.PCG64(n))
    for values in (generator.normal(1.5 / math.sqrt(n), 1, n), np.round(4 * generator.normal(0.1, 0.5, n)) / 12):
        signs = generator.choice([-1.0, 1.0], size=(20_000, n))
        drawn = float((np.abs(signs @ values) >= abs(values.sum()) - 1e-9).mean())
        error = 4 * math.sqrt(drawn * (1 - drawn) / 20_000) + 0.001
        assert exact.sign_flip(values).p == pytest.approx(drawn, abs=error)


def test_multiples_of_one_step_are_counted_exactly_however_many_there_are() -> None:
    ones = [0.25] * 70 + [-0.25] * 50
    assert exact.sign_flip([*ones, 0.0, 0.0]).p == pytest.approx(stats.binomtest(70, 120).pvalue)
    # One of another size sends the same values to the grid: exact by hand, as one flip more of the binomial.
    tail = sum(math.comb(120, k) * (120 - 2 * k + 2 * sign >= 22) for k in range(121) for sign in (-1, 1))
    assert exact.sign_flip([*ones, 0.5]).p == pytest.approx(2 * tail / 2**121)


def test_many_runs_are_drawn_and_close_to_the_t_test() -> None:
    generator = np.random.Generator(np.random.PCG64(2))
    new, old = generator.normal(0.6, 1, 20).tolist(), generator.normal(0, 1, 25).tolist()
    found = exact.permutation(new, old)
    assert found.method == "99,999 permutations of t"
    assert found.p == pytest.approx(stats.ttest_ind(new, old).pvalue, abs=0.01)


def test_hundreds_of_runs_do_not_overflow() -> None:
    row = [float(k % 7) for k in range(600)]
    assert exact.permutation(row, row[::-1], resamples=99).p == 1.0
    assert exact.sign_flip([0.5 + k for k in row]).p < 1e-9
    assert exact.mcnemar(900, 700).p == pytest.approx(stats.binomtest(900, 1600).pvalue)


def test_a_p_value_is_never_nought_however_clear_the_case() -> None:
    assert exact.sign_flip([1.0 + k / 10 for k in range(28)]).p == pytest.approx(2**-27)
    assert 0.0 < exact.sign_flip([1.0 + k / 10 for k in range(300)]).p < 1e-12


def test_five_pairs_and_three_runs_can_not_come_below_a_twentieth() -> None:
    clear = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5]
    assert exact.sign_flip(clear[:5]).p == exact.smallest_p(5) == 0.0625
    assert not exact.sign_flip(clear[:5]).can_reach
    assert exact.sign_flip(clear).p == 0.03125
    assert exact.pairs_needed(0.05) == 6
    assert exact.permutation(clear[3:], clear[:3]).smallest_p == pytest.approx(0.1)
    assert exact.permutation([5.0, 6.0, 7.0, 8.0], [1.0, 2.0, 3.0, 4.0]).smallest_p == pytest.approx(2 / 70)


def test_order_and_sign_do_not_matter() -> None:
    values = [0.4, -0.1, 0.7, 0.2, 0.3, -0.6, 0.9]
    assert exact.sign_flip(values).p == exact.sign_flip(values[::-1]).p == exact.sign_flip([-v for v in values]).p
    assert exact.permutation(values[:3], values[3:]).p == exact.permutation(values[3:], values[:3]).p


def test_no_difference_at_all_is_a_p_of_one() -> None:
    assert exact.sign_flip([0.0] * 8).p == 1.0
    assert exact.permutation([2.0] * 3, [2.0] * 4).p == 1.0


def test_nothing_to_test_is_said() -> None:
    with pytest.raises(BadData, match="0 differences; at least 1"):
        exact.sign_flip([])
    with pytest.raises(BadData, match="0 values of the second group"):
        exact.permutation([1.0], [])


def test_the_fewest_runs_in_each_arm_are_those_that_can_reach_alpha() -> None:
    for alpha in (0.2, 0.05, 0.01, 0.001):
        fewest = exact.runs_needed(alpha)
        assert exact.permutation([1.0] * fewest, [0.0] * fewest).p <= alpha
        assert exact.permutation([1.0] * (fewest - 1), [0.0] * (fewest - 1)).p > alpha
