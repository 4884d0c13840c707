"""The simulator's truth is the truth: scores computed and scores measured agree."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sharpen.core.candidate import Candidate
from sharpen.core.chat import Reply, Request
from sharpen.core.rng import Stream
from sharpen.gates.base import Draw, Evidence, Need, Pair, Verdict
from sharpen.gates.strict import Strict
from sharpen.testing.simulator import RuleTask, Scenario, play, scenario, simulate_decisions


class Outside:
    """An attempt that counts calls."""

    render = "system"
    scratch = Path()

    def __init__(self, stream: Stream) -> None:
        self.rng = stream
        self.calls = 0

    async def complete(self, request: Request, *, role: str = "target") -> Reply:
        self.calls += 1
        return Reply("done")


def measured(task: RuleTask, candidate: Candidate, repeats: int) -> float:
    total = 0.0
    items = task.splits().val
    for repeat in range(repeats):
        for item in items:
            outside = Outside(Stream(repeat, item.id))
            outcome = asyncio.run(task.rollout(item, candidate, outside))
            assert outside.calls == 1
            total += outcome.hard or 0.0
    return total / repeats / len(items)


def test_a_known_share_succeeds_from_the_start() -> None:
    task = RuleTask(items=50, coins=0.2, base=0.5)
    assert task.true_score(task.seed()) == pytest.approx((20 + 10 * 0.5) / 50)


def test_lines_repair_and_break_items_and_later_lines_win() -> None:
    task = RuleTask(items=20, coins=0.0, base=0.5)
    everything = Candidate("# Rules\nBe careful.\nfix: 0-19\n")
    assert task.true_score(everything) == 1.0
    assert task.true_score(Candidate(everything.text + "break: 3 5-7\n")) == 0.8
    assert task.true_score(Candidate("# Rules\nbreak: 0-19\nfix: 4\n")) == 0.05


def test_coins_are_coins_whatever_the_skill_says() -> None:
    task = RuleTask(items=20, coins=1.0)
    assert task.true_score(Candidate("fix: 0-19")) == 0.5


def test_lines_that_only_look_like_rules_have_no_effect() -> None:
    task = RuleTask(items=10)
    assert task.true_score(Candidate("fix: all\nplease fix: 3\nbreak 4\n")) == task.true_score(task.seed())


def test_rollouts_measure_the_true_score() -> None:
    task = RuleTask(items=30, coins=0.4, base=0.5)
    candidate = Candidate("fix: 0-9")
    assert measured(task, candidate, 10) == pytest.approx(task.true_score(candidate), abs=0.06)


def test_a_failed_item_names_the_line_that_would_repair_it() -> None:
    task = RuleTask(items=4, coins=0.0, base=0.0)
    item = task.splits().train[2]
    outcome = asyncio.run(task.rollout(item, task.seed(), Outside(Stream(0))))
    assert "fix: 2" in outcome.feedback


def test_a_scenario_has_the_effect_it_was_asked_for() -> None:
    assert scenario(100, gains=15, losses=5).effect == pytest.approx(0.1)
    assert scenario(40, luck=0.2).effect == 0.0
    with pytest.raises(ValueError, match="there are 40 failing"):
        scenario(100, gains=41)


def test_strict_passes_a_no_op_as_often_as_arithmetic_says() -> None:
    # 100 items, a fifth coins: P(new > old) = 0.44
    assert simulate_decisions(Strict(), scenario(), runs=400).rate == pytest.approx(0.44, abs=0.06)


def test_simulations_repeat() -> None:
    first, second = (simulate_decisions(Strict(), scenario(30), runs=20, seed=4) for _ in range(2))
    assert first == second


class Greedy:
    """A gate that asks for the same draw again."""

    name = "greedy"

    def decide(self, evidence: Evidence) -> Verdict | Need:
        return Need((Draw(0, "new", 0),))


def test_a_gate_that_asks_for_what_it_has_is_caught() -> None:
    with pytest.raises(AssertionError, match="asked for while 1 draws"):
        play(Greedy(), lambda draw: 1.0, Evidence((Pair(),), True))


def test_continuous_scenarios_stay_in_range() -> None:
    truth = Scenario((0.9,) * 5, (0.1,) * 5, spread=0.3)
    stream = Stream(0)
    draws = [truth.draw(arm, 0, stream) for arm in ("new", "old") for _ in range(200)]
    assert min(draws) >= 0.0 and max(draws) <= 1.0
