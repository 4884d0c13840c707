"""Known truth: a task, and single gate decisions, whose true scores can be computed.

`RuleTask` is a whole task for engine and trainers: its skill text is made of lines that repair or break numbered items,
every other line has no effect, some items are coin flips whatever the skill says, and `true_score` is exact. The second half
needs no engine: a `Scenario` gives both arms' true means item by item, `play` carries one decision of a gate through with
draws from it, and `simulate_decisions` many, counting accepts and rollouts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from sharpen.core.candidate import Candidate
from sharpen.core.chat import Message, Request
from sharpen.core.item import Item
from sharpen.core.outcome import Outcome, scored
from sharpen.core.rng import Stream
from sharpen.core.task import Attempt, Brief, Splits, Task
from sharpen.gates.base import Draw, Evidence, Gate, Need, Pair, Verdict

_LINE = re.compile(r"^(?P<verb>fix|break): *(?P<items>\d+(?:-\d+)?(?: +\d+(?:-\d+)?)*) *$", re.MULTILINE)
_MOST_ROUNDS = 10_000


class RuleTask(Task):
    """`fix: 3 5 8-12` makes items with those numbers succeed, `break: 4` fail; later lines win. Item number k means the
    same in all three splits. A `coins` share of the items succeeds by chance alone; of the others a `base` share
    succeeds from the start. Every rollout calls the target once, so that budgets and usage are real."""

    name = "simulated-rules"
    stochastic = True
    brief = Brief("Items that lines of the skill repair or break.", ("Lines read 'fix: NUMBERS' or 'break: NUMBERS'.",))

    def __init__(self, items: int = 100, coins: float = 0.2, base: float = 0.5, seed: int = 0) -> None:
        numbers = Stream(seed, "simulated-rules").shuffled(range(items))
        chance = round(items * coins)
        right = round((items - chance) * base)
        self.items = items
        self.coins = frozenset(numbers[:chance])
        self.right = frozenset(numbers[chance : chance + right])
        self.wrong = frozenset(numbers[chance + right :])

    def splits(self) -> Splits:
        def items(split: str) -> tuple[Item, ...]:
            return tuple(
                Item(f"{split}-{k}", {"input": f"{split} case {k}", "number": k}, "done") for k in range(self.items)
            )

        return Splits(items("train"), items("val"), items("test"))

    def seed(self) -> Candidate:
        return Candidate("# Rules\n")

    def probability(self, candidate: Candidate, item: Item) -> float:
        """The probability that a rollout of `item` with `candidate` succeeds."""
        number = int(item.inputs["number"])
        if number in self.coins:
            return 0.5
        succeeds = number in self.right
        for verb, numbers in _rules(candidate.text):
            if number in numbers:
                succeeds = verb == "fix"
        return float(succeeds)

    def true_score(self, candidate: Candidate, split: str = "val") -> float:
        """The expected mean score of `candidate` on a split, exactly."""
        items = self.splits()[split]
        return sum(self.probability(candidate, item) for item in items) / len(items)

    async def rollout(self, item: Item, candidate: Candidate, attempt: Attempt) -> Outcome:
        request = Request(messages=(Message("system", candidate.text), Message("user", item.text)), max_tokens=1)
        reply = await attempt.complete(request)
        success = attempt.rng.random() < self.probability(candidate, item)
        feedback = "" if success else f"the line 'fix: {item.inputs['number']}' is missing"
        trajectory = (*request.messages, Message("assistant", reply.text))
        return scored(item.id, success, answer="done" if success else "", feedback=feedback, trajectory=trajectory)

    def answers(self, item: Item) -> tuple[str, ...]:
        """None: the reference is the same word everywhere and gives nothing away."""
        return ()


def _rules(text: str) -> list[tuple[str, frozenset[int]]]:
    rules = []
    for match in _LINE.finditer(text):
        numbers: set[int] = set()
        for part in match["items"].split():
            first, _, last = part.partition("-")
            numbers.update(range(int(first), int(last or first) + 1))
        rules.append((match["verb"], frozenset(numbers)))
    return rules


@dataclass(frozen=True, slots=True)
class Scenario:
    """The true mean score of both arms, item by item. Draws are 0 or 1, or, with `spread`, the mean plus an even error
    of up to so much, cut to 0..1."""

    new: tuple[float, ...]
    old: tuple[float, ...]
    spread: float | None = None

    @property
    def effect(self) -> float:
        return (sum(self.new) - sum(self.old)) / len(self.new)

    def draw(self, arm: str, item: int, stream: Stream, shift: float = 0.0, luck: float | None = None) -> float:
        """One draw. `shift` is added to the mean: what has become of the endpoint since. `luck`, in 0..1, takes the place of
        a random number where several items share it."""
        mean = (self.new if arm == "new" else self.old)[item] + shift
        luck = stream.random() if luck is None else luck
        if self.spread is None:
            return float(luck < mean)
        return max(0.0, min(1.0, mean + self.spread * (2.0 * luck - 1.0)))


def scenario(
    items: int = 100, *, gains: int = 0, losses: int = 0, coins: float = 0.2, base: float = 0.5, luck: float = 0.5
) -> Scenario:
    """Items that always succeed, always fail, or (a `coins` share) succeed with probability `luck`, every second one with
    1 - `luck`; the new arm repairs `gains` failing items for good and breaks `losses` of the others."""
    chance = round(items * coins)
    right = round((items - chance) * base)
    wrong = items - chance - right
    if gains > wrong or losses > right:
        raise ValueError(f"there are {wrong} failing and {right} succeeding items, not {gains} and {losses}")
    flips = [luck if i % 2 else 1.0 - luck for i in range(chance)]
    old = [1.0] * right + [0.0] * wrong + flips
    new = [0.0] * losses + [1.0] * (right - losses) + [1.0] * gains + [0.0] * (wrong - gains) + flips
    return Scenario(tuple(new), tuple(old))


@dataclass(frozen=True, slots=True)
class Played:
    """One decision carried through: the verdict, every draw of both arms, and what it took."""

    verdict: Verdict
    pairs: tuple[Pair, ...]
    rollouts: int
    rounds: int


def play(
    gate: Gate,
    fetch: Callable[[Draw], float | None],
    evidence: Evidence,
) -> Played:
    """Ask `gate` again and again, fetching what it needs, until it gives a verdict. Every fetched draw is a rollout."""
    new = [list(pair.new) for pair in evidence.pairs]
    old = [list(pair.old) for pair in evidence.pairs]
    rollouts = 0
    for rounds in range(_MOST_ROUNDS):
        rows = zip(new, old, evidence.pairs, strict=True)
        pairs = tuple(replace(pair, new=tuple(n), old=tuple(o)) for n, o, pair in rows)
        answer = gate.decide(replace(evidence, pairs=pairs))
        if isinstance(answer, Verdict):
            return Played(answer, pairs, rollouts, rounds)
        _serve(answer, fetch, new, old)
        rollouts += len(answer.draws)
    raise AssertionError(f"gate {gate.name} gave no verdict in {_MOST_ROUNDS} rounds")


def _serve(
    need: Need,
    fetch: Callable[[Draw], float | None],
    new: Sequence[list[float | None]],
    old: Sequence[list[float | None]],
) -> None:
    if not need.draws:
        raise AssertionError("a gate that needs something must say what")
    for draw in need.draws:
        known = (new if draw.arm == "new" else old)[draw.item]
        if draw.sample != len(known):
            raise AssertionError(f"{draw} asked for while {len(known)} draws of that arm are known")
        known.append(fetch(draw))


@dataclass(frozen=True, slots=True)
class Decisions:
    """Many decisions in the same scenario."""

    accepted: int
    runs: int
    passes: float
    """Rollouts per decision, in full passes over the items."""
    rounds: float
    verdicts: tuple[Verdict, ...] = field(repr=False, default=())

    @property
    def rate(self) -> float:
        return self.accepted / self.runs


@dataclass(frozen=True, slots=True)
class Awkward:
    """What makes a decision harder than fresh draws of a steady endpoint. The incumbent's stored outcomes are the best of
    `lucky` passes, as they are when it was chosen for them, and date from a time when every mean was `stale` lower; every
    mean moves by `drift` per pass of draws. Items of a group, `group` in a row, share their luck in every draw; the gate is
    told of the groups."""

    lucky: int = 1
    stale: float = 0.0
    drift: float = 0.0
    group: int = 1


def simulate_decisions(
    gate: Gate,
    truth: Scenario,
    *,
    runs: int = 400,
    seed: int = 0,
    repeatable: bool = True,
    lucky: int = 1,
    awkward: Awkward | None = None,
) -> Decisions:
    """How often `gate` accepts and what it spends. The incumbent's outcomes are stored once per decision. Where draws can't
    be repeated, an item has one outcome per arm, and `truth` says how those outcomes came about."""
    rollouts = rounds = accepted = 0
    verdicts = []
    for run in range(runs):
        played = _decision(gate, truth, Stream(seed, "decision", run), repeatable, awkward or Awkward(lucky))
        accepted += played.verdict.accepted
        rollouts += played.rollouts
        rounds += played.rounds
        verdicts.append(played.verdict)
    return Decisions(accepted, runs, rollouts / runs / len(truth.new), rounds / runs, tuple(verdicts))


def _decision(gate: Gate, truth: Scenario, stream: Stream, repeatable: bool, awkward: Awkward) -> Played:
    # The order of items must mean nothing, since a gate's own order is the same in every run.
    items = len(truth.new)
    places = stream.shuffled(range(items))
    shared: dict[tuple[str, int, int], float] = {}
    drawn = 0

    def luck(arm: str, item: int, sample: int) -> float | None:
        if awkward.group == 1:
            return None
        key = (arm, item // awkward.group, sample)
        return shared.setdefault(key, stream.random())

    def fetch(draw: Draw) -> float:
        nonlocal drawn
        if draw.sample > 0 and not repeatable:
            raise AssertionError(f"{draw} repeats a draw where that tells nothing")
        drawn += 1
        shift = awkward.drift * drawn / items
        item = places[draw.item]
        return truth.draw(draw.arm, item, stream, shift, luck(draw.arm, item, draw.sample))

    def stored(number: int) -> list[float]:
        return [truth.draw("old", i, stream, -awkward.stale, luck("old", i, -number)) for i in places]

    best = max((stored(number) for number in range(1, awkward.lucky + 1)), key=sum)
    groups = None if awkward.group == 1 else tuple(str(place // awkward.group) for place in places)
    return play(gate, fetch, Evidence(tuple(Pair((), (score,)) for score in best), repeatable, groups=groups))
