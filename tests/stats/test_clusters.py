"""Clustered errors: Miller's formula by its double sum, statsmodels' figures, and what samples per item buy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sharpen.stats.clusters import clustered, sampled
from sharpen.stats.errors import BadData

VALUES = [0.9, 0.7, 0.8, 0.2, 0.1, 0.4, 0.3, 1.0, 0.6, 0.9, 0.5, 0.0]
GROUPS = list("aaabbbbccdde")


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.floats(-5, 5), st.sampled_from("abcde")), min_size=2, max_size=25))
def test_the_error_is_the_root_of_millers_double_sum(items: list[tuple[float, str]]) -> None:
    values, groups = [v for v, _ in items], [g for _, g in items]
    if len(set(groups)) < 2:
        return
    mean = sum(values) / len(values)
    total = sum((v - mean) * (w - mean) for v, g in items for w, h in items if g == h)
    found = clustered(values, groups)
    assert found.error == pytest.approx(math.sqrt(max(0.0, total)) / len(values), abs=1e-7)


def test_it_is_the_clustered_error_of_statsmodels() -> None:
    # OLS on a constant, cov_type="cluster", use_correction=False, statsmodels 0.15.0.
    found = clustered(VALUES, GROUPS)
    assert found.error == pytest.approx(0.13448576041011345, rel=1e-9)
    # The default of statsmodels corrects for few groups, by sqrt(G / (G - 1) * (n - 1) / (n - 1)).
    assert found.error * math.sqrt(5 / 4) == pytest.approx(0.15035965114138183, rel=1e-9)
    assert found.naive == pytest.approx(float(np.std(VALUES, ddof=1)) / math.sqrt(12))
    assert found.error > found.naive


def test_groups_of_one_give_the_plain_error_with_n_in_place_of_n_less_one() -> None:
    found = clustered(VALUES, range(12))
    assert found.error == pytest.approx(found.naive * math.sqrt(11 / 12))


def test_copying_every_value_buys_nothing_when_copies_are_one_group() -> None:
    once, often = clustered(VALUES, range(12)), clustered(VALUES * 5, list(range(12)) * 5)
    assert often.error == pytest.approx(once.error)
    assert often.naive < once.naive / 2
    assert (often.groups, often.estimate.n) == (12, 60)


def test_few_groups_are_warned_of_and_one_is_refused() -> None:
    assert clustered(VALUES, GROUPS).warning.startswith("5 groups are few")
    assert clustered(list(range(60)), range(60)).warning == ""
    with pytest.raises(BadData, match="all values are of one group"):
        clustered(VALUES, ["a"] * 12)
    with pytest.raises(BadData, match="12 values, but 3 names of groups"):
        clustered(VALUES, "abc")


def test_the_variance_of_items_and_of_samples_is_told_apart() -> None:
    generator = np.random.Generator(np.random.PCG64(1))
    truth = generator.normal(0.5, 0.3, 2000)
    table = truth[:, None] + generator.normal(0, 0.2, (2000, 4))
    found = sampled(table.tolist())
    assert found.between == pytest.approx(0.09, rel=0.08)
    assert found.within == pytest.approx(0.04, rel=0.08)
    assert found.error_with(4) == pytest.approx(found.error)
    assert found.error_with(1) == pytest.approx(math.sqrt((0.09 + 0.04) / 2000), rel=0.05)
    assert found.error_with(10**9) == pytest.approx(math.sqrt(found.between / 2000))


def test_items_may_have_different_numbers_of_samples() -> None:
    found = sampled([[1.0, 0.0], [1.0], [0.0, 0.0, 0.0]])
    assert found.mean == pytest.approx(0.5)
    assert found.within == pytest.approx(0.5 / 3)
    with pytest.raises(BadData, match="0 samples of item 2"):
        sampled([[1.0], []])
    with pytest.raises(BadData, match="at least 1 sample"):
        found.error_with(0)
