"""Two arms: effects, intervals and p-values beside scipy and statsmodels, margins, and what is warned of."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sharpen.stats import arms
from sharpen.stats.errors import BadData

values = st.integers(-50, 50).map(lambda k: k / 10)
groups = st.lists(values, min_size=2, max_size=7).filter(lambda row: len(set(row)) > 1)
NEW, OLD = [5.1, 4.8, 6.0, 5.5, 5.9, 6.2], [5.0, 4.9, 5.7, 5.6, 5.5, 6.0]


@settings(max_examples=25, deadline=None)
@given(groups, groups)
def test_independent_arms_have_welchs_interval_and_p(new: list[float], old: list[float]) -> None:
    expected = stats.ttest_ind(new, old, equal_var=False)
    found = arms.unpaired(new, old, method="t")
    ends = expected.confidence_interval(0.95)
    assert (found.effect.low, found.effect.high) == pytest.approx((ends.low, ends.high), rel=1e-6, abs=1e-6)
    assert found.p_t == pytest.approx(expected.pvalue, rel=1e-6)
    assert found.better == pytest.approx(
        stats.ttest_ind(new, old, equal_var=False, alternative="less").pvalue, rel=1e-6
    )


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(values, values), min_size=3, max_size=9))
def test_pairs_have_the_paired_t_and_its_interval(pairs: list[tuple[float, float]]) -> None:
    new, old = [a for a, _ in pairs], [b for _, b in pairs]
    if len({round(a - b, 9) for a, b in pairs}) < 2:
        return
    expected = stats.ttest_rel(new, old)
    found = arms.paired(new, old, method="t")
    ends = expected.confidence_interval(0.95)
    assert (found.effect.low, found.effect.high) == pytest.approx((ends.low, ends.high), rel=1e-6, abs=1e-6)
    assert found.p_t == pytest.approx(expected.pvalue, rel=1e-6)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(values, values), min_size=2, max_size=9), st.booleans())
def test_swapping_the_arms_turns_the_effect_and_keeps_the_p(pairs: list[tuple[float, float]], paired: bool) -> None:
    new, old = [a for a, _ in pairs], [b for _, b in pairs]
    compare = arms.paired if paired else arms.unpaired
    one, other = compare(new, old, method="t"), compare(old, new, method="t")
    assert one.effect.value == pytest.approx(-other.effect.value, abs=1e-9)
    assert one.effect.low == pytest.approx(-other.effect.high, abs=1e-9)
    assert one.test.p == pytest.approx(other.test.p)
    assert one.better == pytest.approx(1 - other.better)
    assert one.win_share == pytest.approx(1 - other.win_share)


def test_the_order_of_pairs_does_not_matter() -> None:
    one, other = arms.paired(NEW, OLD, method="t"), arms.paired(NEW[::-1], OLD[::-1], method="t")
    assert (one.effect.low, one.effect.high) == pytest.approx((other.effect.low, other.effect.high))
    assert one.test == other.test


def test_margins_are_proven_as_statsmodels_proves_them() -> None:
    # ttost_paired and ttost_ind(usevar="unequal") of statsmodels 0.15.0, from -0.4 to 0.4.
    paired, unpaired = arms.paired(NEW, OLD, margin=0.4).margin, arms.unpaired(NEW, OLD, margin=0.4).margin
    assert paired is not None and unpaired is not None
    assert paired.p_same == pytest.approx(0.01251550790922649, rel=1e-7)
    assert paired.p_not_worse == pytest.approx(0.0007282908971455053, rel=1e-6)
    assert (paired.not_worse, paired.same) == (True, True)
    assert unpaired.p_same == pytest.approx(0.18486174751225617, rel=1e-7)
    assert unpaired.p_not_worse == pytest.approx(0.04540659728849636, rel=1e-7)
    assert (unpaired.not_worse, unpaired.same) == (True, False)


def test_pairing_says_what_it_saved() -> None:
    together = arms.paired([1.0, 2.0, 3.0, 4.1], [0.9, 2.1, 3.0, 4.0])
    assert together.correlation is not None and together.correlation > 0.99
    assert together.saved is not None and together.saved > 0.98
    apart = arms.paired([1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.0, 1.0])
    assert apart.saved == pytest.approx(-1.0)
    assert "the pairs do not go together: pairing widened the interval here" in apart.warnings


def test_too_few_runs_are_warned_of_before_their_p_is_read() -> None:
    five = arms.paired([1.0, 2.0, 3.0, 4.0, 5.0], [0.1, 0.9, 1.8, 2.7, 3.6])
    assert five.test.p == 0.0625 and not five.significant
    assert five.warnings == ("5 pairs can't come below p = 0.0625, whatever they show: for 0.05 it takes 6",)
    three = arms.unpaired([7.0, 8.0, 9.0], [1.0, 2.0, 3.0])
    assert three.warnings[0].startswith("3 against 3 runs can't come below p = 0.1")


def test_arms_without_any_spread_are_compared_without_dividing_by_it() -> None:
    same = arms.paired([1.0] * 4, [1.0] * 4)
    assert (same.p_t, same.better, same.test.p, same.d) == (1.0, 0.5, 1.0, None)
    more = arms.unpaired([2.0] * 4, [1.0] * 4)
    assert (more.p_t, more.better, more.effect.low, more.effect.high) == (0.0, 1.0, 1.0, 1.0)


def test_the_same_seed_gives_the_same_comparison() -> None:
    assert arms.paired(NEW, OLD, seed=5) == arms.paired(NEW, OLD, seed=5)


@pytest.mark.parametrize("margin", [0.0, -0.1, math.nan, math.inf])
def test_a_margin_must_be_a_size(margin: float) -> None:
    with pytest.raises(BadData, match="a margin must be above 0"):
        arms.paired(NEW, OLD, margin=margin)


def test_what_cannot_be_compared_is_said() -> None:
    with pytest.raises(BadData, match="pairs need both values: 6 of the new arm, 5 of the old one"):
        arms.paired(NEW, OLD[:5])
    with pytest.raises(BadData, match="1 values of the old arm; at least 2"):
        arms.unpaired(NEW, [1.0])
    with pytest.raises(BadData, match="number 1 of the pairs is nan"):
        arms.paired([math.nan, 1.0], [1.0, 2.0])


def test_a_few_equal_differences_prove_no_margin() -> None:
    few = arms.paired([0.51, 0.61], [0.5, 0.6], margin=0.05)
    assert few.margin is not None and not few.margin.same and few.margin.p_same == pytest.approx(0.25)
    many = arms.paired([0.01 + n / 10 for n in range(9)], [n / 10 for n in range(9)], margin=0.05)
    assert many.margin is not None and many.margin.same
    apart = arms.unpaired([0.5, 0.5], [0.5, 0.5], margin=0.05)
    assert apart.margin is not None and not apart.margin.same


@pytest.mark.parametrize(("sizes", "spreads"), [((4, 15), (4.0, 1.0)), ((15, 4), (4.0, 1.0)), ((6, 6), (4.0, 1.0))])
def test_groups_of_unlike_size_and_spread_keep_the_level(sizes: tuple[int, int], spreads: tuple[float, float]) -> None:
    generator, trials = np.random.Generator(np.random.PCG64(sum(sizes))), 120
    false = 0
    for _ in range(trials):
        new, old = (generator.normal(0, spread, n).tolist() for n, spread in zip(sizes, spreads, strict=True))
        found = arms.unpaired(new, old, resamples=999)
        assert found.significant == (not found.effect.low <= 0.0 <= found.effect.high)
        false += found.significant
    # Of the raw difference, permuted, 30 % were false for 4 against 15.
    assert false / trials <= 0.06 + 3 * math.sqrt(0.06 * 0.94 / trials)
