"""Looking early: the textbook's bounds, and error rates that hold however often somebody looks."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sharpen.stats import looks, student
from sharpen.stats.errors import BadData

TRIALS, MOST = 6_000, 30


def _false_findings(runs: list[int], factors: list[float]) -> float:
    samples = np.random.Generator(np.random.PCG64(1)).normal(size=(TRIALS, MOST))
    beyond = np.zeros(TRIALS, bool)
    for n, factor in zip(runs, factors, strict=True):
        part = samples[:, :n]
        beyond |= np.abs(part.mean(axis=1)) > factor * part.std(axis=1, ddof=1)
    return float(beyond.mean())


def _t(n: int, level: float) -> float:
    return student.critical(1 - level, n - 1) / math.sqrt(n)


def test_three_equal_looks_come_close_to_pococks_constant() -> None:
    found = looks.bounds([5, 10, 15])
    assert [look.level for look in found] == pytest.approx([0.0221] * 3, abs=0.0015)
    assert found[-1].spent == pytest.approx(0.05)


def test_obrien_fleming_keeps_almost_all_for_the_end() -> None:
    # Lan and DeMets: 3.710, 2.511, 1.993 for three equal looks.
    found = looks.bounds([10, 20, 30], spending="obrien-fleming")
    assert [look.z for look in found] == pytest.approx([3.710, 2.511, 1.993], abs=0.003)
    assert found[0].stops(1e-4) and not found[0].stops(0.001)


def test_one_look_is_the_plain_test() -> None:
    for spending in looks.SPENDING:
        (only,) = looks.bounds([12], spending=spending)
        assert (only.z, only.level) == pytest.approx((1.95996, 0.05), abs=1e-4)


@pytest.mark.parametrize("spending", looks.SPENDING)
def test_planned_looks_hold_their_level_with_t_tests(spending: str) -> None:
    plan = [6, 12, 18, 24, 30]
    found = looks.bounds(plan, spending=spending)
    assert _false_findings(plan, [_t(look.runs, look.level) for look in found]) == pytest.approx(0.05, abs=0.012)
    assert _false_findings(plan, [_t(n, 0.05) for n in plan]) > 0.12


def test_bounds_cross_as_often_as_they_say_for_a_normal_statistic() -> None:
    plan = [4, 5, 18, 30]
    sums = np.random.Generator(np.random.PCG64(2)).normal(size=(40_000, MOST)).cumsum(axis=1)
    crossed = np.zeros(40_000, bool)
    for look in looks.bounds(plan):
        crossed |= np.abs(sums[:, look.runs - 1]) / math.sqrt(look.runs) > look.z
        assert crossed.mean() == pytest.approx(look.spent, abs=0.004)


def test_the_any_time_interval_holds_under_peeking_after_every_run() -> None:
    runs = list(range(looks.LEAST_RUNS, MOST + 1))
    sample = np.arange(MOST, dtype=float)
    factors = [looks.anytime(sample[:n].tolist()).half_width / float(sample[:n].std(ddof=1)) for n in runs]
    assert _false_findings(runs, factors) < 0.05
    assert _false_findings(runs, [_t(n, 0.05) for n in runs]) > 0.15


def test_the_any_time_interval_is_wider_than_t_and_shrinks() -> None:
    values = [0.1, 0.5, 0.2, 0.8, 0.4, 0.3] * 8
    early, late = looks.anytime(values[:12]), looks.anytime(values)
    assert early.half_width > late.half_width
    from sharpen.stats.means import student_interval

    assert 1.2 < late.half_width / student_interval(values).half_width < 2.0
    assert late.low < late.value < late.high


def test_looks_that_make_no_plan_are_refused() -> None:
    for plan in ([], [5, 5], [10, 5], [1, 2]):
        with pytest.raises(BadData, match="looks must be rising numbers of runs from 2 on"):
            looks.bounds(plan)
    with pytest.raises(BadData, match="no way of spending 'freely'; there are pocock, obrien-fleming"):
        looks.bounds([5, 10], spending="freely")
    with pytest.raises(BadData, match="5 runs, to be looked at as they come; at least 6"):
        looks.anytime([1.0, 2.0, 3.0, 4.0, 5.0])
    with pytest.raises(BadData, match="plan for at least 6 runs"):
        looks.anytime([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], planned=2)
