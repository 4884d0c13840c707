"""The default gate: spends rollouts where they decide, and stops as soon as they have.

Items are judged in a random order that no outcome has a say in. Items the incumbent fails are screened first, out of turn:
only they can show a gain, so a candidate without one is found out and rejected at a fraction of a pass. Nothing is ever
accepted on such a peek. Acceptance rests on the items judged in turn, without a gap, and takes one of two proofs:

* by repetition, where draws can be repeated: large differences are drawn again, both arms afresh. Against "no item
  improved" the fresh pairs must win `2/alpha`: whatever made us choose an item, a fresh pair on it is fair game. And
  against "the changes over all items sum to nothing or less" the items judged so far must win `1/direction`: a
  candidate that repairs some items and breaks as many others does not pass.
* by signs, always: the first differences of the items judged so far must lean upwards more than fair coins would with
  probability `alpha/2` (`alpha` where draws can't be repeated: then it is the only proof). This is the way for gains
  that are spread thin over many noisy items, and once that shows, nothing more is spent on repetition.

So a candidate that changes nothing is accepted with probability at most `alpha`. `alpha_spending="run"` divides `alpha` over
the decisions of a whole run: nine tenths evenly over those planned, the last tenth over any beyond, the j-th of them getting
6/(pi j)^2 of it, so that the sum stays below `alpha` however long the run gets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sharpen.core.errors import UsageError
from sharpen.gates.base import Draw, Evidence, Need, Verdict
from sharpen.gates.betting import SignTest, SignWalk, TotalWalk, any_gain, mean_interval, sign_capital
from sharpen.gates.comparison import LARGE, Reading, fresh_pair, mean_difference, order_of, read, screen
from sharpen.gates.paired import sign_flip_p

_CONFIDENCE = 0.90
"""Of the interval beside the effect: two-sided, so that either end is as sure as a decision at the usual alpha of 0.05."""
_OPTIMISM = 1.28
"""Standard errors above the seen rate of gains that the futility rule still believes in."""
_ASSENT = 3.0
"""What the first differences must win against "they sum to nothing or less" where repetition carries the proof."""
_CRISP = 0.28
"""The share of gains that must come back when drawn again for it to pay to draw them again."""


def _setting(default: Any, description: str) -> Any:
    return field(default=default, metadata={"description": description})


@dataclass(frozen=True, slots=True)
class Sequential:
    """Accepts on evidence, spends rollouts where they decide, and stops as soon as they have."""

    alpha: float = _setting(0.05, "largest probability of accepting a candidate that changes nothing")
    alpha_spending: Literal["decision", "run"] = _setting("decision", "alpha is per decision, or spent over the run")
    direction: float = _setting(0.05, "the same for one that changes items for the better and the worse alike, roughly")
    worthwhile: float = _setting(0.03, "smallest gain in mean score worth looking for")
    block: int = _setting(0, "items screened at once; 0: a tenth of them, at least 5")
    confirmations: int = _setting(2, "fresh pairs that must show a large difference again")
    redraws: int = _setting(4, "most fresh pairs on one item")

    name = "sequential"

    def __post_init__(self) -> None:
        for name, level in (("alpha", self.alpha), ("direction", self.direction)):
            if not 0.0 < level < 1.0:
                raise UsageError(f"gate sequential: {name} must lie between 0 and 1, got {level}")
        if self.alpha_spending not in ("decision", "run"):
            raise UsageError(f"gate sequential: alpha_spending is 'decision' or 'run', got {self.alpha_spending!r}")
        if not 0.0 <= self.worthwhile < 1.0:
            raise UsageError(f"gate sequential: worthwhile must lie in 0..1, got {self.worthwhile}")
        if self.block < 0:
            raise UsageError(f"gate sequential: block must be 0 (automatic) or more, got {self.block}")
        if not 1 <= self.confirmations <= self.redraws:
            raise UsageError(
                f"gate sequential: confirmations must lie in 1..redraws, got {self.confirmations} and {self.redraws}"
            )

    def decide(self, evidence: Evidence) -> Verdict | Need:
        state = _State.of(self, evidence)
        if not state.order:
            return Verdict(False, "no item could be compared: every one failed in an arm", evidence=1.0)
        proof = state.proof()
        if proof:
            return state.verdict(True, proof)
        futile = state.futility()
        if futile:
            return state.verdict(False, futile)
        draws = state.wishes()
        if not draws:
            return state.verdict(False, f"not proven better after all {len(state.order)} items")
        return Need(tuple(draws))

    def level(self, decision: int, planned: int) -> float:
        """The probability of a false accept that this decision may spend."""
        if self.alpha_spending == "decision":
            return self.alpha
        planned = max(1, planned)
        if decision < planned:
            return 0.9 * self.alpha / planned
        return 0.1 * self.alpha * 6.0 / (math.pi * (decision - planned + 1)) ** 2


@dataclass(frozen=True, slots=True)
class _State:
    """Everything known at one call. `order` leaves out the items that failed in an arm; `turn` is how many of its items,
    counted from the front, were judged without a gap."""

    gate: Sequential
    evidence: Evidence
    readings: tuple[Reading, ...]
    order: list[int]
    turn: int
    level: float

    @classmethod
    def of(cls, gate: Sequential, evidence: Evidence) -> _State:
        readings = tuple(read(p, evidence.repeatable, gate.confirmations, gate.redraws) for p in evidence.pairs)
        order = [item for item in order_of(len(readings), evidence.decision) if readings[item].usable]
        turn = next((i for i, item in enumerate(order) if not readings[item].screened), len(order))
        return cls(gate, evidence, readings, order, turn, gate.level(evidence.decision, evidence.planned))

    # -- the two proofs

    @property
    def sign_test(self) -> SignTest:
        return SignTest(len(self.order), self.level / 2 if self.evidence.repeatable else self.level)

    @property
    def gain_capital(self) -> float:
        """Winnings against "no item improved"."""
        return any_gain(r.gain for r in self.readings if r.gain is not None)

    def proof(self) -> str:
        """Why the candidate is accepted; empty while it can't be."""
        firsts, signs = self._firsts(), self.signs()
        if self.sign_test.passes(signs):
            return f"better by signs: {_tally(firsts)}, e = {signs.capital:.3g}"
        if self.turn == len(self.order) and self.sign_test.passes_last(signs, lambda: sign_flip_p(firsts)):
            return f"better by signs over all items: {_tally(firsts)}, p = {sign_flip_p(firsts):.4f}"
        if not self.evidence.repeatable:
            return ""
        values = [self.readings[item].value for item in self.order[: self.turn]]
        gain = self.gain_capital
        if gain >= 2.0 / self.level and self._directed(self.turn):
            return f"better by repetition: {_tally(values)}, e = {gain:.3g} on fresh pairs"
        return ""

    def signs(self) -> SignWalk:
        """The bet on the first differences of the items judged in turn."""
        walk = SignWalk()
        for difference in self._firsts():
            walk.push(difference)
        return walk

    def _firsts(self) -> list[float]:
        return [self.readings[item].first for item in self.order[: self.turn]]

    @property
    def diffuse(self) -> bool:
        """Whether differences are mostly small or do not come back: then repeating them is dear, and signs must do."""
        if not self.evidence.repeatable:
            return False
        held = sum(r.held for r in self.readings)
        gone = sum(not r.held and not r.pending and r.first > 0.0 for r in self.readings)
        return _upper_rate(held, held + gone) < _CRISP

    def _directed(self, count: int, hopeful: bool = False) -> int:
        """After how many of the first `count` items in order their sum is proven positive; 0 if it is not. Confirmed values
        carry the proof. The first differences must go along with it, if with less certainty: losses that come and go do
        not survive confirmation, and would otherwise not be held against a candidate."""
        values = TotalWalk(len(self.order), self._leftover())
        firsts = TotalWalk(len(self.order))
        for number, item in enumerate(self.order[:count], 1):
            reading = self.readings[item]
            values.push(reading.hope if hopeful else reading.value)
            firsts.push(reading.first)
            if (
                values.capital >= 1.0 / self.gate.direction
                and firsts.capital >= _ASSENT
                and (hopeful or number == count)
            ):
                return number
        return 0

    def _leftover(self) -> float:
        """The sum that chance may leave in the values, as a standard deviation. An even coin survives a confirmation
        one time in four, so for each that did not survive, one in `4^confirmations - 1` is still there."""
        flips = sum(r.flipped for r in self.readings)
        return math.sqrt(flips / (4.0**self.gate.confirmations - 1.0))

    # -- when to give up

    def futility(self) -> str:
        """Why more rollouts would be wasted; empty while they may still decide."""
        if self.diffuse:
            return self._futile_by_signs()
        if self.turn == len(self.order) and sum(self._firsts()) <= 0.0:
            return f"no better on all {self.turn} items"
        seen = [self.readings[item] for item in self.order if self.readings[item].screened]
        wins = sum(self._expected(r) for r in seen)
        losses = -sum(r.value for r in seen if r.value < 0 and not r.pending)
        failing = sum(bool(r.failing) for r in seen)
        chances = self._chances()
        most = wins + _upper_rate(wins, failing) * chances if chances else sum(max(0.0, r.hope) for r in seen)
        wanted = self.gate.worthwhile * len(self.order) if chances else 0.0
        if most - losses <= wanted:
            return f"no gain worth finding is in sight after {len(seen)} of {len(self.order)} items"
        if not self.evidence.repeatable and not self._could_pass(most, losses):
            return f"the evidence can't suffice any more after {len(seen)} of {len(self.order)} items"
        return ""

    def _could_pass(self, wins: float, losses: float) -> bool:
        spread = math.sqrt(wins + losses)
        return (
            wins - losses >= self.sign_test.deviates * spread or sign_capital(wins, losses) >= self.sign_test.threshold
        )

    def _futile_by_signs(self) -> str:
        firsts = self._firsts()
        scale = len(self.order) / max(1, self.turn)
        reserve = _OPTIMISM * math.sqrt(sum(d * d for d in firsts)) if self.turn < len(self.order) else 0.0
        most = (sum(firsts) + reserve) * scale
        spread = math.sqrt(sum(d * d for d in firsts) * scale)
        if self.turn and (most <= self.gate.worthwhile * len(self.order) or most < self.sign_test.deviates * spread):
            return f"no gain worth finding is in sight after {self.turn} of {len(self.order)} items"
        return ""

    def _expected(self, reading: Reading) -> float:
        """The gain on an item: a pending one weighed by how far it got, one that was not confirmed by what came back."""
        if not reading.pending:
            return max(0.0, reading.echo if reading.flipped and reading.first > 0 else reading.value)
        return max(0.0, reading.hope) * (0.5 if reading.pairs == 0 else 0.8)

    def _chances(self) -> float:
        """How many items not yet screened could still show a gain."""
        unseen = [self.readings[item] for item in self.order if not self.readings[item].screened]
        known = [r.failing for r in self.readings if r.failing is not None]
        share = (sum(known) + 1) / (len(known) + 2)
        return sum(share if r.failing is None else float(r.failing) for r in unseen)

    # -- what to ask for

    def wishes(self) -> list[Draw]:
        """The next draws: fresh pairs on pending gains, and a block of the screen, or what else stands in the way."""
        pairs, readings = self.evidence.pairs, self.readings
        draws = [d for i in self.order if readings[i].pending and readings[i].hope > 0 for d in fresh_pair(i, pairs[i])]
        block = self.gate.block or max(5, math.ceil(len(self.order) / 10))
        if self.diffuse:
            return [d for i in self.order[self.turn :] if not readings[i].screened for d in screen(i, pairs[i])][:block]
        failing = [i for i in self.order if not readings[i].screened and readings[i].failing]
        target = self._target()
        if failing and not target:
            return draws + [d for i in failing[:block] for d in screen(i, pairs[i])]
        draws += [] if draws else self._more_proof()
        in_turn = self.order[: target or len(self.order)]
        gaps = [i for i in in_turn if not readings[i].screened][:block]
        losses = [] if gaps else [i for i in in_turn if readings[i].pending and readings[i].value < 0]
        draws += [d for i in gaps for d in screen(i, pairs[i])] + [d for i in losses for d in fresh_pair(i, pairs[i])]
        if not draws:
            beyond = [i for i in self.order if not readings[i].screened][:block]
            draws = [d for i in beyond for d in screen(i, pairs[i])]
        return draws

    def _target(self) -> int:
        """How many items must be judged in turn for a proof, if those not yet screened are no different and pending ones
        turn out well; 0 when too little was gained so far to go for it."""
        hopes = [self.readings[item].hope for item in self.order]
        if sum(hopes) < self.gate.worthwhile * len(hopes) or sum(hopes) <= 0:
            return 0
        if self.evidence.repeatable:
            return self._directed(len(hopes), hopeful=True)
        return _first_reaching(SignWalk(), hopes, self.sign_test.threshold)

    def _more_proof(self) -> list[Draw]:
        """One more fresh pair on each confirmed gain with the fewest so far, while fresh pairs have not won enough."""
        if not self.evidence.repeatable or self.gain_capital >= 2.0 / self.level:
            return []
        gains = {i: r.pairs for i, r in enumerate(self.readings) if r.value >= LARGE and r.pairs < self.gate.redraws}
        fewest = min(gains.values(), default=0)
        return [d for i, n in gains.items() if n == fewest for d in fresh_pair(i, self.evidence.pairs[i])]

    # -- the verdict

    def verdict(self, accepted: bool, reason: str) -> Verdict:
        """The decision, with the effect on the mean score as the items judged in turn show it: no outcome had a say in
        their order, so they stand for all. The interval holds wherever one stopped; there is none before the first."""
        strongest = max(self.signs().capital, self.gain_capital if self.evidence.repeatable else 0.0)
        judged = [mean_difference(self.evidence.pairs[item]) for item in self.order[: self.turn]]
        found = [difference for difference in judged if difference is not None]
        if not found:
            return Verdict(accepted, reason, evidence=strongest)
        low, high = mean_interval(found, _CONFIDENCE)
        return Verdict(accepted, reason, sum(found) / len(found), max(-1.0, low), min(1.0, high), strongest)


def _tally(values: Sequence[float]) -> str:
    better, worse = sum(v > 0 for v in values), sum(v < 0 for v in values)
    return f"{better} items better, {worse} worse of {len(values)} judged"


def _first_reaching(walk: SignWalk, values: Sequence[float], wanted: float) -> int:
    for count, value in enumerate(values, 1):
        walk.push(value)
        if walk.capital >= wanted:
            return count
    return 0


def _upper_rate(hits: float, trials: int) -> float:
    """An optimistic reading of a rate: the upper end of Wilson's interval."""
    if trials == 0:
        return 1.0
    square, rate = _OPTIMISM**2, min(1.0, hits / trials)
    spread = _OPTIMISM * math.sqrt(rate * (1.0 - rate) / trials + square / (4 * trials * trials))
    return (rate + square / (2 * trials) + spread) / (1.0 + square / trials)
