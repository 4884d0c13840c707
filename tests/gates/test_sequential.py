"""What the default gate promises, on decisions whose truth is known. All simulations are seeded."""

from __future__ import annotations

import pytest

from sharpen.core.rng import Stream
from sharpen.gates.base import Draw, Evidence, Need, Pair, Verdict
from sharpen.gates.sequential import Sequential
from sharpen.testing.simulator import Awkward, Scenario, play, scenario, simulate_decisions

GATE = Sequential()


def steady(new: list[float], old: list[float], spread: float | None = None) -> Scenario:
    return Scenario(tuple(new), tuple(old), spread)


def noisy(right: int, wrong: int, noise: float, mended: int = 0, broken: int = 0) -> Scenario:
    """Items that succeed or fail but for some noise, of which some are mended and some broken."""
    new = [noise] * broken + [1.0 - noise] * (right - broken + mended) + [noise] * (wrong - mended)
    return steady(new, [1.0 - noise] * right + [noise] * wrong)


class RareLosses(Scenario):
    """The new arm does a little better nearly always, and loses everything now and then: on the mean, nothing is gained."""

    def draw(self, arm: str, item: int, stream: Stream, shift: float = 0.0, luck: float | None = None) -> float:
        if arm == "old":
            return self.old[item]
        return 0.0 if stream.random() < 0.05 else self.old[item] / 0.95


CRISP_MENDS = steady([1.0] * 5 + [0.4] * 25 + [0.0, 1.0] * 15, [0.0] * 5 + [0.6] * 25 + [0.0, 1.0] * 15)
CRISP_BREAKS = steady([0.0] * 5 + [0.6] * 25 + [0.0, 1.0] * 15, [1.0] * 5 + [0.4] * 25 + [0.0, 1.0] * 15)
EVEN, SWAPPED = noisy(30, 30, 0.1), noisy(30, 30, 0.1, 10, 10)
NULLS = {
    "no-op, noise .3": (noisy(30, 30, 0.3), Awkward()),
    "10 mended, 10 broken": (SWAPPED, Awkward()),
    "10 mended, 11 broken": (noisy(30, 30, 0.1, 10, 11), Awkward()),
    "10 mended, 10 broken, noise .3": (noisy(30, 30, 0.3, 10, 10), Awkward()),
    "5 crisp mends, 25 weak breaks": (CRISP_MENDS, Awkward()),
    "5 crisp breaks, 25 weak mends": (CRISP_BREAKS, Awkward()),
    "a little worse": (steady([0.48] * 60, [0.5] * 60), Awkward()),
    "graded, rare losses": (RareLosses((0.9,) * 60, (0.9,) * 60), Awkward()),
    "lucky incumbent": (EVEN, Awkward(lucky=8)),
    "stale incumbent": (EVEN, Awkward(stale=0.3)),
    "drift down": (steady([0.5] * 60, [0.5] * 60), Awkward(drift=-0.1)),
    "drift up": (SWAPPED, Awkward(stale=0.1, drift=0.1)),
    "declared groups": (steady([0.5] * 60, [0.5] * 60), Awkward(group=4)),
}


@pytest.mark.parametrize("name", NULLS)
def test_no_candidate_without_a_true_gain_is_accepted_more_often_than_alpha(name: str) -> None:
    truth, awkward = NULLS[name]
    outcome = simulate_decisions(GATE, truth, runs=60, seed=10, awkward=awkward)
    assert outcome.rate <= 0.05 + 2.5 * (0.05 * 0.95 / 60) ** 0.5
    assert all(verdict.low is not None and verdict.low > 0.0 for verdict in outcome.verdicts if verdict.accepted)


@pytest.mark.slow
@pytest.mark.parametrize("name", NULLS)
def test_the_same_over_many_decisions(name: str) -> None:
    truth, awkward = NULLS[name]
    assert simulate_decisions(GATE, truth, runs=1000, seed=11, awkward=awkward).rate <= 0.05 + 2 * 0.0069


def test_groups_that_nobody_declared_would_be_taken_for_proof() -> None:
    """What declaring them is for: with eight items that share their luck, as if they were independent, chance looks like
    evidence."""
    truth = steady([0.5] * 64, [0.5] * 64)
    stream = Stream(0, "undeclared")
    accepted = 0
    for decision in range(60):
        lucks: dict[tuple[str, int, int], float] = {}

        def fetch(draw: Draw, lucks: dict[tuple[str, int, int], float] = lucks) -> float:
            key = (draw.arm, draw.item // 8, draw.sample)
            return truth.draw(draw.arm, draw.item, stream, 0.0, lucks.setdefault(key, stream.random()))

        stored = tuple(Pair((), (float(stream.random() < 0.5),)) for _ in range(64))
        accepted += play(GATE, fetch, Evidence(stored, True, decision=decision)).verdict.accepted
    assert accepted >= 8


def test_every_acceptance_comes_with_an_interval_above_zero() -> None:
    for truth in (noisy(30, 30, 0.1, 12), steady([0.7] * 60, [0.5] * 60), steady([0.7] * 60, [0.5] * 60, spread=0.3)):
        for repeatable in (True, False):
            outcome = simulate_decisions(GATE, truth, runs=15, seed=12, repeatable=repeatable)
            accepted = [verdict for verdict in outcome.verdicts if verdict.accepted]
            assert accepted
            assert all(verdict.low is not None and 0.0 < verdict.low <= (verdict.effect or 0.0) for verdict in accepted)


def test_a_no_op_costs_little_and_real_gains_are_found() -> None:
    assert simulate_decisions(GATE, EVEN, runs=150).passes <= 0.72
    assert simulate_decisions(GATE, noisy(30, 30, 0.1, 12), runs=60).rate >= 0.85
    assert simulate_decisions(GATE, noisy(30, 30, 0.0, 6), runs=40).rate >= 0.95
    assert simulate_decisions(GATE, steady([0.7] * 60, [0.5] * 60), runs=60).rate >= 0.75
    assert simulate_decisions(GATE, noisy(30, 30, 0.1, 6), runs=60).rate >= 0.36


def test_stored_draws_prove_nothing() -> None:
    """However good the new arm looks against stored outcomes, and however many there are, fresh draws of both decide."""
    stored = tuple(Pair((1.0,) * 3, (0.0,) * 3, stored_new=3, stored_old=3) for _ in range(60))
    played = play(GATE, lambda draw: 1.0, Evidence(stored, True))
    assert not played.verdict.accepted and played.rollouts > 0


def test_arms_take_turns_at_being_drawn_first() -> None:
    stored = tuple(Pair((), (0.5,)) for _ in range(60))  # nothing fails clearly: the proof begins at once
    need = GATE.decide(Evidence(stored, True))
    assert isinstance(need, Need)
    firsts = [need.draws[place].arm for place in range(0, len(need.draws), 2)]
    seconds = [need.draws[place].arm for place in range(1, len(need.draws), 2)]
    assert {"new", "old"} == set(firsts) and all(a != b for a, b in zip(firsts, seconds, strict=True))


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
    # 0.05 and two and a half standard errors of 60 decisions
    assert simulate_decisions(GATE, truth, runs=60, seed=1).rate <= 0.12


@pytest.mark.parametrize("items", [30, 40, 60])
@pytest.mark.parametrize("share", [0.5, 1.0])
def test_symmetric_changes_are_rarely_accepted_where_draws_cannot_be_repeated(items: int, share: float) -> None:
    truth = scenario(items, coins=share)
    assert simulate_decisions(GATE, truth, runs=100, seed=2, repeatable=False).rate <= 0.105


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
    assert simulate_decisions(GATE, truth, runs=50, seed=3).rate <= 0.04


def test_losses_that_come_and_go_are_held_against_a_candidate() -> None:
    truth = steady([1.0] * 10 + [0.5] * 30 + [0.0] * 60, [0.0] * 10 + [1.0] * 30 + [0.0] * 60)
    assert simulate_decisions(GATE, truth, runs=60, seed=3).rate <= 0.07


@pytest.mark.parametrize(
    ("truth", "least"),
    [
        (scenario(gains=15, losses=5), 0.9),
        (scenario(50, gains=5), 0.65),
        (scenario(200, gains=20), 0.95),
        (scenario(coins=0.5, gains=10), 0.8),
        (steady([0.6] * 100, [0.3] * 100), 0.9),
        (steady([0.4 + 0.004 * i for i in range(100)], [0.3 + 0.004 * i for i in range(100)], spread=0.2), 0.85),
    ],
    ids=["15/5", "50 items", "200 items", "half coins", "spread thin", "continuous"],
)
def test_real_gains_of_other_shapes_are_found_too(truth: Scenario, least: float) -> None:
    assert simulate_decisions(GATE, truth, runs=40, seed=5).rate >= least - 0.05


def test_an_incumbent_with_lucky_outcomes_can_still_be_replaced() -> None:
    assert simulate_decisions(GATE, scenario(gains=10), runs=40, lucky=5, seed=6).rate >= 0.85


def test_a_big_gain_is_accepted_after_few_items_where_draws_cannot_be_repeated() -> None:
    found = simulate_decisions(GATE, steady([0.5] * 40, [0.02] * 40), runs=100, seed=7, repeatable=False)
    assert found.rate >= 0.98
    assert found.passes * 40 <= 20


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
    per_decision = simulate_decisions(Sequential(), scenario(gains=5), runs=25, seed=8)
    per_run = simulate_decisions(Sequential(alpha=0.001), scenario(gains=5), runs=25, seed=8)
    assert per_run.accepted <= per_decision.accepted
    assert per_run.passes >= per_decision.passes


def test_fresh_pairs_alone_decide_whatever_was_stored() -> None:
    """An incumbent stored at its very worst makes coins look like gains; drawing again must undo that."""
    accepted = 0
    for decision in range(60):
        accepted += _against_the_worst_stored(decision).accepted
    assert accepted <= 6


def _against_the_worst_stored(decision: int) -> Verdict:
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
    verdicts = simulate_decisions(GATE, truth, runs=30, seed=9).verdicts
    held = sum(v.low <= truth.effect <= v.high for v in verdicts if v.low is not None and v.high is not None)
    effects = [v.effect for v in verdicts if v.effect is not None]
    assert held >= 27
    assert abs(sum(effects) / len(effects) - truth.effect) <= 0.04


def test_the_order_is_another_one_at_every_decision() -> None:
    pairs = tuple(Pair((), (0.0,)) for _ in range(60))
    asked = [GATE.decide(Evidence(pairs, True, decision=k)) for k in range(3)]
    assert len({answer.draws for answer in asked if isinstance(answer, Need)}) == 3
