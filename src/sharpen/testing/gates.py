"""What every gate must hold to, as a suite that a plugin's tests inherit.

    class TestMyGate(GateContract):
        def make(self) -> Gate:
            return MyGate()

A gate that is meant to accept whatever it is shown says so with `tests = False`, and is spared the last two demands.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sharpen.core.rng import Stream
from sharpen.gates.base import Draw, Evidence, Gate, Need, Pair, Verdict
from sharpen.testing.simulator import Played, Scenario, play, scenario, simulate_decisions


class GateContract:
    """Inherit, and give `make`."""

    tests = True
    """Whether the gate claims to turn down candidates that are no better."""
    most_passes = 12.0
    """The most rollouts one decision may take, in passes over the items, both arms counted."""

    def make(self) -> Gate:
        raise NotImplementedError

    def test_it_has_a_name(self) -> None:
        assert self.make().name

    def test_the_same_evidence_brings_the_same_answer(self) -> None:
        gate = self.make()
        for evidence, answer in self._stories():
            assert gate.decide(evidence) == answer
            assert self.make().decide(evidence) == answer

    def test_it_never_asks_for_a_draw_it_has_been_given(self) -> None:
        for evidence, answer in self._stories():
            if isinstance(answer, Need):
                assert answer.draws
                assert len(set(answer.draws)) == len(answer.draws)
                for draw in answer.draws:
                    pair = evidence.pairs[draw.item]
                    assert draw.arm in ("new", "old")
                    assert draw.sample >= len(pair.new if draw.arm == "new" else pair.old)

    def test_every_decision_comes_to_an_end(self) -> None:
        for seed in range(6):
            for items in (1, 2, 7, 30):
                played = self._play(_mixed(items), seed)
                assert played.rollouts <= self.most_passes * 2 * items

    def test_it_starts_without_stored_outcomes_too(self) -> None:
        evidence = Evidence(tuple(Pair() for _ in range(20)), True)
        truth = scenario(20, gains=4)
        stream = Stream(0, "contract")
        play(self.make(), lambda draw: truth.draw(draw.arm, draw.item, stream), evidence)

    def test_verdicts_are_in_range(self) -> None:
        for seed in range(6):
            for truth in (_mixed(30), scenario(40, gains=10), Scenario((0.6,) * 20, (0.5,) * 20, spread=0.3)):
                verdict = self._play(truth, seed).verdict
                assert verdict.reason
                for value in (verdict.effect, verdict.low, verdict.high):
                    assert value is None or -1.0 <= value <= 1.0
                if verdict.effect is not None and verdict.low is not None and verdict.high is not None:
                    assert verdict.low <= verdict.effect <= verdict.high
                assert verdict.evidence is None or verdict.evidence >= 0.0

    @pytest.mark.parametrize("items", [1, 12])
    def test_draws_that_fail_are_done_without(self, items: int) -> None:
        truth = scenario(items) if items > 1 else Scenario((1.0,), (0.0,))
        for share in (0.3, 1.0):
            stream = Stream(3, "contract", items)

            def fetch(draw: Draw, share: float = share, stream: Stream = stream) -> float | None:
                return None if stream.random() < share else truth.draw(draw.arm, draw.item, stream)

            for repeatable in (True, False):
                stored = tuple(Pair((), (truth.draw("old", i, stream),)) for i in range(items))
                played = play(self.make(), fetch, Evidence(stored, repeatable))
                assert played.rollouts <= self.most_passes * 2 * items
                assert share < 1.0 or not played.verdict.accepted

    def test_it_draws_once_where_repeating_tells_nothing(self) -> None:
        simulate_decisions(self.make(), _mixed(30), runs=5, repeatable=False)

    def test_it_never_accepts_a_candidate_with_identical_outcomes(self) -> None:
        if self.tests:
            for items in (1, 5, 40):
                truth = Scenario((1.0, 0.0) * items, (1.0, 0.0) * items)
                assert simulate_decisions(self.make(), truth, runs=3, repeatable=False).accepted == 0
                assert simulate_decisions(self.make(), truth, runs=3).accepted == 0

    def test_it_accepts_a_candidate_that_repairs_everything(self) -> None:
        truth = Scenario((1.0,) * 40, (0.0,) * 40)
        for repeatable in (True, False):
            assert simulate_decisions(self.make(), truth, runs=3, repeatable=repeatable).rate == 1.0

    def _play(self, truth: Scenario, seed: int, repeatable: bool = True) -> Played:
        stream = Stream(seed, "contract", len(truth.new))
        stored = tuple(Pair((), (truth.draw("old", i, stream),)) for i in range(len(truth.old)))
        return play(
            self.make(), lambda d: truth.draw(d.arm, d.item, stream), Evidence(stored, repeatable, decision=seed)
        )

    def _stories(self) -> Iterator[tuple[Evidence, Verdict | Need]]:
        """Every question and answer of a few decisions."""
        for seed, repeatable in ((0, True), (1, True), (2, False)):
            stories: list[tuple[Evidence, Verdict | Need]] = []
            gate = _Listening(self.make(), stories)
            truth, stream = _mixed(25), Stream(seed, "contract")
            stored = tuple(Pair((), (truth.draw("old", i, stream),)) for i in range(25))

            def fetch(draw: Draw, truth: Scenario = truth, stream: Stream = stream) -> float:
                return truth.draw(draw.arm, draw.item, stream)

            play(gate, fetch, Evidence(stored, repeatable, decision=seed))
            yield from stories


class _Listening:
    """A gate that keeps what was said."""

    def __init__(self, gate: Gate, stories: list[tuple[Evidence, Verdict | Need]]) -> None:
        self.gate = gate
        self.stories = stories

    @property
    def name(self) -> str:
        return self.gate.name

    def decide(self, evidence: Evidence) -> Verdict | Need:
        answer = self.gate.decide(evidence)
        self.stories.append((evidence, answer))
        return answer


def _mixed(items: int) -> Scenario:
    """Gains, losses and coin flips, as many as fit."""
    if items < 10:
        return Scenario((0.5,) * items, (0.5,) * items)
    return scenario(items, gains=items // 6, losses=items // 10)
