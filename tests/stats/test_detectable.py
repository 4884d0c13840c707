"""The smallest effect that can be found, against gates that really decide."""

from __future__ import annotations

import pytest

from sharpen.core.rng import Stream
from sharpen.gates.base import Gate
from sharpen.gates.paired import Paired
from sharpen.gates.sequential import Sequential
from sharpen.stats.detectable import gains_needed, items_needed, noise, smallest_effect
from sharpen.testing.simulator import scenario, simulate_decisions


def test_noise_is_what_differs_between_attempts_at_the_same_item() -> None:
    found = noise([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    assert found is not None
    assert found.within == pytest.approx(1 / 6)
    assert found.flipping == 0.5
    assert found.standard_error(100) == pytest.approx((1 / 600) ** 0.5)


def test_items_attempted_once_tell_nothing_of_noise() -> None:
    assert noise([[1.0], [0.0], []]) is None


def test_five_gains_without_a_loss_are_needed_at_the_usual_level() -> None:
    assert gains_needed(0.05) == 5
    assert gains_needed(0.5) == 1


def test_too_few_items_can_show_nothing() -> None:
    assert smallest_effect(4, 0.0, 0.05) is None


@pytest.mark.parametrize("within", [0.0, 0.02, 0.2])
def test_more_items_show_less_and_items_needed_is_the_way_back(within: float) -> None:
    effects = [smallest_effect(n, within, 0.05) or 1.0 for n in (20, 50, 200, 1000)]
    assert effects == sorted(effects, reverse=True)
    assert all(0.0 < effect <= 1.0 for effect in effects)
    needed = items_needed(0.1, within, 0.05)
    assert needed is not None
    assert (smallest_effect(needed, within, 0.05) or 1.0) <= 0.1 < (smallest_effect(needed - 1, within, 0.05) or 1.0)


@pytest.mark.parametrize(
    ("gate", "items", "coins", "repeatable", "draws"),
    [
        (Sequential(), 53, 0.0, False, 1),
        (Paired(), 53, 0.0, False, 1),
        (Paired(), 80, 0.2, True, 1),
        (Sequential(), 80, 0.2, True, 3),
    ],
)
def test_a_gate_finds_the_smallest_effect_most_of_the_time_and_a_fifth_of_it_seldom(
    gate: Gate, items: int, coins: float, repeatable: bool, draws: int
) -> None:
    effect = smallest_effect(items, 0.25 * coins / draws, 0.05)
    assert effect is not None
    assert 0.68 <= _found(gate, items, effect, coins, repeatable) <= 0.98
    assert _found(gate, items, effect / 5, coins, repeatable) <= 0.45


def _found(gate: Gate, items: int, effect: float, coins: float, repeatable: bool, runs: int = 50) -> float:
    """How often a gate accepts a change that mends each item with probability `effect`."""
    accepted = 0
    for run in range(runs):
        stream = Stream(run, "gains")
        gains = sum(stream.random() < effect for _ in range(items))
        truth = scenario(items, gains=gains, coins=coins, base=0.3)
        accepted += simulate_decisions(gate, truth, runs=1, seed=run, repeatable=repeatable).accepted
    return accepted / runs
