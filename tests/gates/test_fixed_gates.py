"""The gates that look once: strict, force and paired."""

from __future__ import annotations

import pytest

from sharpen.gates.base import Draw, Evidence, Gate, Need, Pair, Verdict
from sharpen.gates.force import Force
from sharpen.gates.paired import Paired
from sharpen.gates.strict import Strict
from sharpen.testing.simulator import scenario, simulate_decisions


def decided(gate: Gate, new: list[float | None], old: list[float | None]) -> Verdict:
    answer = gate.decide(Evidence(tuple(Pair((n,), (o,)) for n, o in zip(new, old, strict=True)), True))
    assert isinstance(answer, Verdict)
    return answer


def test_they_ask_for_the_whole_pass_at_once_and_reuse_what_is_stored() -> None:
    answer = Strict().decide(Evidence((Pair((), (1.0,)), Pair((0.0,), (1.0,)), Pair()), True))
    assert answer == Need((Draw(0, "new", 0), Draw(2, "new", 0), Draw(2, "old", 0)))


def test_strict_wants_more_and_takes_no_tie() -> None:
    assert decided(Strict(), [1.0, 0.0, 1.0], [1.0, 0.0, 0.0]).accepted
    assert not decided(Strict(), [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]).accepted


def test_strict_compares_only_items_that_have_both_scores() -> None:
    verdict = decided(Strict(), [1.0, None, 0.5], [0.0, 1.0, 0.5])
    assert verdict.accepted
    assert verdict.effect == pytest.approx(0.5)


def test_force_accepts_what_is_worse() -> None:
    verdict = decided(Force(), [0.0, 0.0], [1.0, 1.0])
    assert verdict.accepted
    assert verdict.effect == -1.0


def test_paired_takes_five_wins_without_a_loss_and_not_four() -> None:
    assert decided(Paired(), [1.0] * 5 + [0.0] * 9, [0.0] * 14).accepted
    assert not decided(Paired(), [1.0] * 4 + [0.0] * 9, [0.0] * 13).accepted


def test_paired_reports_its_p_value() -> None:
    assert decided(Paired(), [1.0] * 5, [0.0] * 5).evidence == pytest.approx(1 / 32)


def test_paired_keeps_its_level_and_strict_does_not() -> None:
    assert simulate_decisions(Paired(), scenario(), runs=300).rate <= 0.075
    assert simulate_decisions(Strict(), scenario(), runs=300).rate >= 0.3
