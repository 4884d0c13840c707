"""The time left: from nothing to go by, over steps, to the last measurement."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sharpen.cli.pace import Pace, Reading


def reading(step: int, calls: int, **changes: object) -> Reading:
    values: dict[str, object] = {
        "step": step, "steps": 4, "stage": "gate", "calls": calls, "paid": calls, "elapsed": calls / 10, "open_items": 0
    }  # fmt: skip
    return Reading(**{**values, **changes})  # type: ignore[arg-type]


def test_nothing_is_claimed_during_the_first_step() -> None:
    pace = Pace(closing_calls=50)
    assert pace.left(reading(0, 0)) is None
    assert pace.left(reading(1, 40)) is None


def test_finished_steps_and_the_closing_measurement_are_counted() -> None:
    pace = Pace(closing_calls=50)
    pace.left(reading(1, 0))
    # 100 calls a step at 10 a second, three steps and 50 calls to come.
    assert pace.left(reading(2, 100)) == 35.0
    assert pace.left(reading(2, 150)) == 30.0


def test_a_step_that_takes_longer_than_those_before_counts_as_nearly_done() -> None:
    pace = Pace(closing_calls=0)
    pace.left(reading(2, 100))
    assert pace.left(reading(2, 500)) == 20.0


def test_the_budget_bounds_the_estimate() -> None:
    pace = Pace(closing_calls=50, cap=120)
    assert pace.left(reading(2, 100)) == 2.0


def test_in_the_last_measurement_only_its_open_items_are_left() -> None:
    pace = Pace(closing_calls=50)
    assert pace.left(reading(4, 400, stage="test", open_items=20)) == 2.0


@given(st.integers(0, 9), st.integers(0, 5000), st.integers(0, 5000), st.sampled_from(["rollout", "confirm", "test"]))
def test_the_estimate_is_never_negative(step: int, calls: int, paid: int, stage: str) -> None:
    left = Pace(closing_calls=10, cap=900).left(reading(step, calls, paid=paid, stage=stage, elapsed=3.0))
    assert left is None or left >= 0
