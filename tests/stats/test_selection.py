"""Winner's luck: the expected maximum, and a correction that is right on average where the truth is known."""

from __future__ import annotations

import numpy as np
import pytest

from sharpen.stats.errors import BadData
from sharpen.stats.selection import corrected, expected_maximum, luck


@pytest.mark.parametrize(
    ("k", "expected"), [(1, 0.0), (2, 0.56419), (5, 1.16296), (10, 1.53875), (20, 1.86748), (50, 2.24907)]
)
def test_the_expected_maximum_is_the_textbooks(k: int, expected: float) -> None:
    assert expected_maximum(k) == pytest.approx(expected, abs=1e-5)
    assert luck(k, 0.5) == pytest.approx(expected / 2, abs=1e-5)


def test_among_equals_the_correction_takes_all_the_luck_and_no_more() -> None:
    generator = np.random.Generator(np.random.PCG64(1))
    found = [corrected(generator.normal(size=(10, 30)), resamples=60, seed=k) for k in range(120)]
    error = 1 / np.sqrt(30)
    assert np.mean([one.seen for one in found]) == pytest.approx(luck(10, error), abs=0.25 * error)
    assert np.mean([one.value for one in found]) == pytest.approx(0.0, abs=0.3 * error)


def test_one_that_is_truly_better_keeps_its_score() -> None:
    table = np.random.Generator(np.random.PCG64(2)).normal(size=(8, 50)) * 0.1
    table[3] += 2.0
    found = corrected(table)
    assert found.value == pytest.approx(found.seen, abs=0.02)
    assert found.candidates == 8


def test_without_a_choice_there_is_no_luck() -> None:
    found = corrected([[0.0, 1.0, 1.0]])
    assert (found.seen, found.luck) == (pytest.approx(2 / 3), 0.0)


def test_a_correction_never_adds_and_repeats_itself() -> None:
    table = np.random.Generator(np.random.PCG64(3)).random((5, 12))
    assert corrected(table, seed=1) == corrected(table, seed=1)
    assert corrected(table).value <= corrected(table).seen


def test_tables_that_are_none_are_refused() -> None:
    with pytest.raises(BadData, match="a table of candidates by items"):
        corrected([0.5, 0.6])
    with pytest.raises(BadData, match="a table of candidates by items"):
        corrected([[0.5, 0.6], [0.5]])
    with pytest.raises(BadData, match="finite score on every item"):
        corrected([[0.5, float("nan")]])
    with pytest.raises(BadData, match="give at least 1"):
        expected_maximum(0)
