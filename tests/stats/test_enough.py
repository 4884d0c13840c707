"""Enough runs: half-widths that shrink, a coefficient of variation that does not, and thresholds met for a reason."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sharpen.stats.enough import enough
from sharpen.stats.errors import BadData
from sharpen.stats.means import student_interval
from sharpen.stats.power import smallest_effect

RUNS = np.random.Generator(np.random.PCG64(1)).normal(10, 1, 15).tolist()


def test_the_row_of_all_runs_is_the_interval_of_their_mean() -> None:
    found = enough(RUNS)
    row = next(row for row in found.rows if row.runs == 15)
    interval = student_interval(RUNS)
    assert row.half_width.value == pytest.approx(interval.half_width / interval.value)
    assert row.half_width.low < row.half_width.value < row.half_width.high * 1.05
    effect = smallest_effect(15, found.spread, paired=False)
    assert effect is not None
    assert row.detectable is not None
    assert row.detectable.value == pytest.approx(effect / found.mean, rel=1e-6)


def test_half_widths_shrink_with_runs_and_the_coefficient_of_variation_does_not() -> None:
    rows = enough(RUNS, most=40).rows
    widths = [row.half_width.value for row in rows]
    assert widths == sorted(widths, reverse=True)
    assert rows[-1].variation == pytest.approx(rows[13].variation)
    assert rows[-1].half_width.value < rows[13].half_width.value


def test_the_first_that_meets_the_threshold_is_named() -> None:
    found = enough(RUNS, threshold=0.05, most=60)
    assert found.runs_needed is not None
    by_runs = {row.runs: row.half_width.value for row in found.rows}
    assert by_runs[found.runs_needed] <= 0.05 < by_runs[found.runs_needed - 1]
    assert enough(RUNS, threshold=1e-6).runs_needed is None


def test_units_do_not_matter() -> None:
    one, other = enough(RUNS), enough([1000 * x for x in RUNS])
    assert [r.half_width.value for r in one.rows] == pytest.approx([r.half_width.value for r in other.rows])


def test_a_mean_of_nought_has_no_relative_width() -> None:
    found = enough([-1.0, 1.0, -2.0, 2.0])
    assert math.isinf(found.rows[0].half_width.value)
    assert found.runs_needed is None


def test_one_run_says_nothing_about_spread() -> None:
    with pytest.raises(BadData, match="1 runs; at least 2"):
        enough([1.0])
    with pytest.raises(BadData, match="2 runs or more"):
        enough(RUNS, most=0)


def test_runs_that_are_all_alike_are_still_too_few_for_an_exact_test() -> None:
    assert enough([0.5] * 6).detectable_needed == 4
    assert enough([0.5] * 6, paired=True).detectable_needed == 6
    for paired, fewest in ((False, 4), (True, 6)):
        rows = enough(RUNS, paired=paired).rows
        assert [row.runs for row in rows if row.detectable is None] == list(range(2, fewest))
