"""A decision with many looks errs as often as it may, over every path of a fair walk."""

from __future__ import annotations

import math

import pytest

from sharpen.core.rng import Stream
from sharpen.gates.bounded_mean import binomial_tail
from sharpen.gates.spending import FairWalk


def crossing(looks: list[int], alpha: float, futile: float | None, runs: int = 4000) -> float:
    """How often a fair walk is accepted at one of the looks."""
    stream = Stream(7, "walk", len(looks))
    accepted = 0
    for _ in range(runs):
        walk, heads, steps = FairWalk(), 0, 0
        for number, look in enumerate(looks, 1):
            heads += sum(stream.random() < 0.5 for _ in range(look - steps))
            steps = look
            level = walk.look(steps, alpha * number / len(looks), futile, unit=True)
            if binomial_tail(steps, heads) <= level:
                accepted += 1
                break
            if futile is not None and (2 * heads - steps) < futile * math.sqrt(steps):
                break
    return accepted / runs


@pytest.mark.parametrize("looks", [[60], [5, 10, 20, 40], list(range(3, 61, 3))])
@pytest.mark.parametrize("futile", [None, 0.0])
def test_all_looks_together_keep_alpha(looks: list[int], futile: float | None) -> None:
    assert 0.02 <= crossing(looks, 0.05, futile) <= 0.05 + 2.5 * math.sqrt(0.05 * 0.95 / 4000)


def test_a_single_look_is_the_plain_test() -> None:
    assert binomial_tail(60, 37) <= FairWalk().look(60, 0.05, None, unit=True) < binomial_tail(60, 36)


def test_too_few_steps_accept_nothing() -> None:
    assert FairWalk().look(4, 0.05, None, unit=True) == 0.0


def test_what_a_look_could_not_spend_is_left_to_the_next() -> None:
    walk = FairWalk()
    assert walk.look(3, 0.04, None, unit=True) == 0.0
    assert walk.look(5, 0.05, None, unit=True) >= binomial_tail(5, 5)
