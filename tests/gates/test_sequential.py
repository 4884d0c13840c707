"""What the default gate promises, on decisions whose truth is known. All simulations are seeded."""

from __future__ import annotations

import pytest

from sharpen.gates.base import Evidence, Need, Pair, Verdict
from sharpen.gates.sequential import Sequential
from sharpen.testing.simulator import Scenario, scenario, simulate_decisions

GATE = Sequential()


def steady(new: list[float], old: list[float], spread: float | None = None) -> Scenario:
    return Scenario(tuple(new), tuple(old), spread)


def test_it_meets_its_figures_with_a_fifth_of_coin_flips() -> None:
    nothing = simulate_decisions(GATE, scenario(), runs=400)
    ten = simulate_decisions(GATE, scenario(gains=10), runs=400)
    assert nothing.rate <= 0.05
    assert ten.rate >= 0.85
    assert (nothing.passes + ten.passes) / 2 <= 0.8
    assert simulate_decisions(GATE, scenario(gains=5), runs=400).rate >= 0.40


@pytest.mark.parametrize(
    "truth",
    [
        scenario(40),
        scenario(200),
        scenario(coins=0.0),
        scenario(coins=0.5),
        scenario(coins=1.0),
        scenario(coins=0.5, luck=0.2),
        steady([0.3] * 60, [0.3] * 60),
        steady([0.2 + 0.006 * i for i in range(100)], [0.2 + 0.006 * i for i in range(100)], spread=0.3),
    ],
    ids=["40 items", "200 items", "no noise", "half", "all coins", "uneven coins", "all at 0.3", "continuous"],
)
def test_a_candidate_that_changes_nothing_is_rarely_accepted(truth: Scenario) -> None:
    # 0.05 and two standard errors of 150 decisions
    assert simulate_decisions(GATE, truth, runs=150, seed=1).rate <= 0.085


@pytest.mark.parametrize("items", [30, 40, 60])
@pytest.mark.parametrize("share", [0.5, 1.0])
def test_symmetric_changes_are_rarely_accepted_where_draws_cannot_be_repeated(items: int, share: float) -> None:
    truth = scenario(items, coins=share)
    assert simulate_decisions(GATE, truth, runs=300, seed=2, repeatable=False).rate <= 0.075


@pytest.mark.parametrize(
    "truth",
    [
        scenario(losses=5),
        scenario(losses=10),
        scenario(gains=5, losses=10),
        scenario(gains=10, losses=15),
        scenario(gains=10, losses=20),
        steady([0.5] * 20 + [0.0] * 80, [0.0] * 20 + [1.0] * 15 + [0.0] * 65),
        steady([0.45] * 100, [0.5] * 100),
    ],
    ids=["-5", "-10", "5/10", "10/15", "10/20", "flaky gains", "all a little worse"],
)
def test_a_harmful_candidate_is_hardly_ever_accepted(truth: Scenario) -> None:
    assert truth.effect < 0
    assert simulate_decisions(GATE, truth, runs=100, seed=3).rate <= 0.02


def test_losses_that_come_and_go_are_held_against_a_candidate() -> None:
    truth = steady([1.0] * 10 + [0.5] * 30 + [0.0] * 60, [0.0] * 10 + [1.0] * 30 + [0.0] * 60)
    assert simulate_decisions(GATE, truth, runs=150, seed=3).rate <= 0.07


def test_as_many_repaired_as_broken_is_rarely_accepted() -> None:
    for changed in (5, 10):
        assert simulate_decisions(GATE, scenario(gains=changed, losses=changed), runs=100, seed=4).rate <= 0.12


@pytest.mark.parametrize(
    ("truth", "least"),
    [
        (scenario(gains=15, losses=5), 0.9),
        (scenario(50, gains=5), 0.85),
        (scenario(200, gains=20), 0.95),
        (scenario(coins=0.5, gains=10), 0.8),
        (steady([0.6] * 100, [0.3] * 100), 0.9),
        (steady([0.4 + 0.004 * i for i in range(100)], [0.3 + 0.004 * i for i in range(100)], spread=0.2), 0.85),
    ],
    ids=["15/5", "50 items", "200 items", "half coins", "spread thin", "continuous"],
)
def test_real_gains_of_other_shapes_are_found_too(truth: Scenario, least: float) -> None:
    assert simulate_decisions(GATE, truth, runs=60, seed=5).rate >= least


def test_an_incumbent_with_lucky_outcomes_can_still_be_replaced() -> None:
    assert simulate_decisions(GATE, scenario(gains=10), runs=80, lucky=5, seed=6).rate >= 0.9


def test_a_big_gain_is_accepted_after_few_items_where_draws_cannot_be_repeated() -> None:
    found = simulate_decisions(GATE, steady([0.5] * 40, [0.02] * 40), runs=100, seed=7, repeatable=False)
    assert found.rate >= 0.98
    assert found.passes * 40 <= 18


def test_identical_outcomes_are_turned_down_early() -> None:
    found = simulate_decisions(GATE, scenario(60, coins=0.0), runs=10, repeatable=False)
    assert found.accepted == 0
    assert found.passes <= 0.35


def test_alpha_spent_over_a_run_adds_up_to_no_more_than_alpha() -> None:
    gate = Sequential(alpha=0.05, alpha_spending="run")
    for planned in (1, 7, 40):
        levels = [gate.level(decision, planned) for decision in range(5000)]
        assert 0.045 <= sum(levels) <= 0.05
        assert min(levels) > 0.0
    assert Sequential().level(99, 10) == 0.05


def test_a_run_level_asks_for_more_evidence() -> None:
    per_decision = simulate_decisions(Sequential(), scenario(gains=5), runs=60, seed=8)
    per_run = simulate_decisions(Sequential(alpha=0.001), scenario(gains=5), runs=60, seed=8)
    assert per_run.accepted <= per_decision.accepted
    assert per_run.passes >= per_decision.passes


def test_fresh_pairs_alone_are_bet_on_whatever_was_stored() -> None:
    """An incumbent stored at its very worst makes coins look like gains; drawing again must undo that."""
    accepted = 0
    for decision in range(60):
        accepted += _against_the_worst_stored(decision).accepted
    assert accepted <= 6


def _against_the_worst_stored(decision: int) -> Verdict:
    from sharpen.core.rng import Stream
    from sharpen.testing.simulator import play

    stream = Stream(decision, "worst")
    # Ten coins that all came up 0 when the incumbent was stored; everything else never changes.
    coins = frozenset(stream.sample(range(100), 10))
    stored = tuple(Pair((), (0.0 if i in coins else float(i % 2),)) for i in range(100))
    played = play(
        GATE,
        lambda d: float(stream.random() < 0.5) if d.item in coins else float(d.item % 2),
        Evidence(stored, True, decision=decision),
    )
    return played.verdict


def test_items_the_incumbent_fails_are_screened_first() -> None:
    pairs = tuple(Pair((), (float(i % 2),)) for i in range(40))
    answer = GATE.decide(Evidence(pairs, True))
    assert isinstance(answer, Need)
    assert {draw.item % 2 for draw in answer.draws} == {0}
    assert {draw.arm for draw in answer.draws} == {"new"}


def test_nothing_is_accepted_on_failures_alone() -> None:
    """Wins on every failing item say nothing about the others, which may all be broken."""
    pairs = tuple(Pair((1.0,) * 5, (0.0,) * 5) if i % 2 else Pair((), (1.0,)) for i in range(100))
    for repeatable in (True, False):
        assert isinstance(GATE.decide(Evidence(pairs, repeatable)), Need)


def test_the_effect_is_near_the_truth_and_its_interval_holds_it() -> None:
    truth = scenario(gains=20)
    verdicts = simulate_decisions(GATE, truth, runs=60, seed=9).verdicts
    held = sum(v.low <= truth.effect <= v.high for v in verdicts if v.low is not None and v.high is not None)
    effects = [v.effect for v in verdicts if v.effect is not None]
    assert held >= 57
    assert abs(sum(effects) / len(effects) - truth.effect) <= 0.04


def test_the_order_is_another_one_at_every_decision() -> None:
    pairs = tuple(Pair((), (0.0,)) for _ in range(60))
    asked = [GATE.decide(Evidence(pairs, True, decision=k)) for k in range(3)]
    assert len({answer.draws for answer in asked if isinstance(answer, Need)}) == 3
