"""The e-values never win more than they may, and the intervals cover."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sharpen.core.rng import Stream
from sharpen.gates.betting import SignTest, SignWalk, TotalWalk, agreement, any_gain, mean_interval, sign_capital
from sharpen.gates.paired import sign_flip_p

values_in_range = st.lists(st.sampled_from([-1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=5)


@settings(deadline=None)
@given(values_in_range)
def test_a_sign_walk_is_fair_when_signs_are(sizes: list[float]) -> None:
    total = 0.0
    for signs in itertools.product((-1.0, 1.0), repeat=len(sizes)):
        walk = SignWalk()
        for sign, size in zip(signs, sizes, strict=True):
            walk.push(sign * size)
        total += walk.capital
    assert total / 2 ** len(sizes) == pytest.approx(1.0)


@settings(deadline=None)
@given(values_in_range)
def test_a_total_walk_wins_nothing_on_average_when_the_sum_is_not_positive(values: list[float]) -> None:
    excess = sum(values)
    if excess > 0:
        values = [-v for v in values]
    for stop in range(1, len(values)):
        capitals = []
        for order in itertools.permutations(values):
            walk = TotalWalk(len(values))
            for value in order[:stop]:
                walk.push(value)
            capitals.append(walk.capital)
        assert math.fsum(capitals) / len(capitals) <= 1.0 + 1e-9


def test_a_total_walk_is_certain_once_the_rest_cannot_undo_it() -> None:
    walk = TotalWalk(5)
    for value in (1.0, 1.0, 0.0):
        walk.push(value)
    assert walk.capital < 1e9
    walk.push(0.0)
    assert walk.capital >= 1e100


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0.01, 1)), min_size=1, max_size=5),
    st.floats(0.1, 1.0),
)
def test_agreement_is_an_e_value_for_any_distribution_of_scores(
    law: list[tuple[float, float]], boldness: float
) -> None:
    weight = sum(w for _, w in law)
    mean = sum(wn * wo * agreement(n, o, boldness) for (n, wn), (o, wo) in itertools.product(law, law)) / (
        weight * weight
    )
    assert mean <= 1.0 + 1e-9


def test_any_gain_stays_at_one_without_items_and_grows_with_them() -> None:
    assert any_gain([]) == 1.0
    assert any_gain([3.24, 3.24]) > any_gain([3.24]) > 1.0 > any_gain([0.04])


def test_sign_capital_agrees_with_the_walk() -> None:
    walk = SignWalk()
    for step in (1.0, -1.0, 0.0, 1.0, 1.0):
        walk.push(step)
    assert walk.capital == pytest.approx(sign_capital(3, 1))
    assert (walk.count, walk.wins, walk.units) == (4, 3, None)


@pytest.mark.parametrize(("steps", "level"), [(1, 0.05), (12, 0.05), (11, 0.2), (10, 0.5)])
def test_the_exact_sign_test_keeps_its_level_over_every_path(steps: int, level: float) -> None:
    test = SignTest(steps, level)
    for length in range(1, steps + 1):
        rejected = 0
        for path in itertools.product((-1.0, 1.0), repeat=length):
            walk = SignWalk()
            stopped = False
            for step in path:
                walk.push(step)
                stopped = stopped or test.passes(walk)
            rejected += stopped or test.passes_last(walk, lambda: 1.0)
        assert rejected / 2**length <= level


def test_a_step_that_is_no_unit_leaves_only_what_was_not_spent() -> None:
    test = SignTest(20, 0.05)
    walk = SignWalk()
    for step in (1.0, 1.0, 1.0, 1.0, 0.5):
        walk.push(step)
    assert walk.units == 4
    assert not test.passes(walk)
    assert test.threshold < 30.0


def test_long_walks_use_the_universal_bound() -> None:
    assert SignTest(500, 0.05).threshold == pytest.approx(30.0)


@settings(max_examples=30)
@given(st.lists(st.floats(-1, 1), min_size=1, max_size=40))
def test_the_interval_contains_the_mean_and_stays_in_range(values: list[float]) -> None:
    low, high = mean_interval(values, 0.95)
    assert -1.0 <= low <= sum(values) / len(values) + 1e-6
    assert sum(values) / len(values) - 1e-6 <= high <= 1.0


def test_the_interval_covers_wherever_one_stops() -> None:
    missed = 0
    for run in range(200):
        stream = Stream(run, "interval")
        values: list[float] = []
        outside = False
        for _ in range(60):
            draw = stream.random()
            values.append(1.0 if draw < 0.25 else -1.0 if draw < 0.35 else 0.0)
            if len(values) % 6 == 0:
                low, high = mean_interval(values, 0.95)
                outside = outside or not low <= 0.15 <= high
        missed += outside
    assert missed <= 10


def test_sign_flip_agrees_with_enumeration() -> None:
    differences = [0.5, -0.25, 0.125, 0.75, -0.5, 0.25, 0.0, 1.0]
    sums = [
        sum(s * abs(d) for s, d in zip(signs, differences, strict=True))
        for signs in itertools.product((-1, 1), repeat=len(differences))
    ]
    expected = sum(total >= sum(differences) - 1e-12 for total in sums) / len(sums)
    assert sign_flip_p(differences) == pytest.approx(expected)


def test_sign_flip_of_binary_pairs_is_exact_mcnemar() -> None:
    from scipy.stats import binomtest

    differences = [1.0] * 12 + [-1.0] * 4 + [0.0] * 50
    assert sign_flip_p(differences) == pytest.approx(binomtest(12, 16, alternative="greater").pvalue)


def test_sign_flip_of_many_continuous_differences_agrees_with_scipy() -> None:
    import numpy as np
    from scipy.stats import permutation_test

    stream = Stream(5, "flip")
    differences = [stream.random() - 0.42 for _ in range(60)]
    found = permutation_test(
        (np.asarray(differences),), np.mean, permutation_type="samples", alternative="greater", n_resamples=20_000,
        rng=np.random.default_rng(1),
    )  # fmt: skip
    assert sign_flip_p(differences) == pytest.approx(found.pvalue, abs=0.01)


def test_sign_flip_without_a_difference_proves_nothing() -> None:
    assert sign_flip_p([]) == sign_flip_p([0.0, 0.0]) == 1.0
