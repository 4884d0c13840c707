"""Objectives: shares of a range, the weighted score, and what can't be one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharpen.core.objective import Objective, weighted

AIMS = {"accuracy": Objective("max", 3.0, (0.0, 1.0)), "seconds": Objective("min", 1.0, (2.0, 4.0))}


def test_the_better_end_of_a_range_is_one() -> None:
    assert [AIMS["accuracy"].share(value) for value in (0.0, 0.25, 1.0)] == [0.0, 0.25, 1.0]
    assert [AIMS["seconds"].share(value) for value in (2.0, 3.0, 4.0, 5.0)] == [1.0, 0.5, 0.0, -0.5]


def test_the_score_weighs_shares_that_are_cut_off() -> None:
    assert weighted(AIMS, {"accuracy": 0.5, "seconds": 2.0}) == pytest.approx((3 * 0.5 + 1) / 4)
    assert weighted(AIMS, {"accuracy": 1.0, "seconds": 100.0}) == 0.75
    assert weighted(AIMS, {"accuracy": 9.0, "seconds": -9.0}) == 1.0


@given(st.floats(-10, 10), st.floats(-10, 10))
def test_the_score_lies_in_its_scale(accuracy: float, seconds: float) -> None:
    assert 0.0 <= weighted(AIMS, {"accuracy": accuracy, "seconds": seconds}) <= 1.0


@pytest.mark.parametrize("objective", [*AIMS.values(), Objective()])
def test_an_objective_survives_being_told(objective: Objective) -> None:
    assert Objective.from_row(objective.row()) == objective


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"direction": "up"}, "max or min"),
        ({"weight": -1.0}, "at least 0"),
        ({"range": (1.0, 1.0)}, "smaller to a larger"),
    ],
)
def test_what_is_no_objective_is_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Objective(**wrong)
