"""Effect sizes: the textbook's definitions, and the same by other roads."""

from __future__ import annotations

import math
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sharpen.stats import effects
from sharpen.stats.errors import BadData

halves = st.lists(st.integers(-20, 20).map(lambda k: k / 2), min_size=2, max_size=12)
quick = settings(max_examples=60, deadline=None)


@quick
@given(halves, halves)
def test_the_share_of_wins_is_mann_whitneys_u(new: list[float], old: list[float]) -> None:
    u = stats.mannwhitneyu(new, old).statistic
    assert effects.win_share(new, old) == pytest.approx(u / (len(new) * len(old)))
    assert effects.cliffs_delta(new, old) == pytest.approx(2 * u / (len(new) * len(old)) - 1)


@quick
@given(halves, halves)
def test_swapping_the_arms_turns_every_sign(new: list[float], old: list[float]) -> None:
    assert effects.win_share(new, old) + effects.win_share(old, new) == pytest.approx(1.0)
    for size in (effects.cohen_d, effects.hedges_g):
        one, other = size(new, old), size(old, new)
        assert (one is None and other is None) or one == pytest.approx(-(other or 0.0))


@quick
@given(halves, halves)
def test_d_is_t_in_other_units(new: list[float], old: list[float]) -> None:
    d = effects.cohen_d(new, old)
    if d is None:
        return
    n, m = len(new), len(old)
    with warnings.catch_warnings(action="ignore"):
        t = stats.ttest_ind(new, old).statistic
    assert d == pytest.approx(t * math.sqrt(1 / n + 1 / m))
    assert effects.hedges_g(new, old) == pytest.approx(d * (1 - 3 / (4 * (n + m - 2) - 1)))


def test_a_worked_example() -> None:
    new, old = [4.0, 5.0, 6.0], [1.0, 2.0, 3.0]
    assert effects.cohen_d(new, old) == pytest.approx(3.0)
    assert effects.hedges_g(new, old) == pytest.approx(3.0 * (1 - 3 / 15))
    assert effects.d_z([1.0, 2.0, 3.0]) == pytest.approx(2.0)
    assert effects.correlation(new, old) == pytest.approx(1.0)
    assert effects.correlation(new, old[::-1]) == pytest.approx(-1.0)


def test_without_spread_there_is_no_size_rather_than_infinity() -> None:
    assert effects.cohen_d([2.0, 2.0], [1.0, 1.0]) is None
    assert effects.d_z([1.0, 1.0]) is None
    assert effects.correlation([1.0, 1.0], [1.0, 2.0]) is None


def test_one_value_has_no_spread() -> None:
    with pytest.raises(BadData, match="at least 2"):
        effects.cohen_d([1.0], [1.0, 2.0])
