"""What all algorithm tasks have in common: instances from a seed, programs run in the sandbox, and how they are scored.

An item names an instance by its seed; a rollout makes the instance and plays it here, in our own process, decision by
decision. The candidate's `program.py` is in the sandbox, in a process that holds no instance: it is asked about one decision
at a time, with what may be known at that moment, and gives back plain numbers. Validity and value are computed here, too.
The score is the value beside a reference that was computed beforehand (`references.json`), at most 1; raw values are kept
as measures. A program that crashes, takes too long, answers nonsense or is against the rules, which are there to give an
early message, scores 0, with the reason as feedback. No model is called, so neither calls nor tokens bound a training: steps
and seconds do.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from sharpen.core.candidate import Candidate
from sharpen.core.digest import Json
from sharpen.core.errors import UsageError
from sharpen.core.item import Item
from sharpen.core.outcome import Outcome, scored
from sharpen.core.rng import Stream
from sharpen.core.task import Attempt, Brief, Requirements, Splits, Task
from sharpen.sandbox import Conversation, Limits, Mode, NoAnswer, Order, missing, open_conversations
from sharpen.tasks.algorithms import rules
from sharpen.tasks.splitting import Deal

PART = "program.py"
Instance = Mapping[str, Any]
Game = Generator[Sequence[tuple[Any, ...]], list[Json], Json]
"""How an instance is played: it yields the calls of a decision, gets what each returned, and ends with the answer."""

_LONGEST = 300
_REASONS: dict[str, str] = {
    "time": "took too long",
    "cpu": "took too long",
    "memory": "needed too much memory",
    "processes": "started other processes",
    "files": "wrote too much",
    "output": "printed or answered too much",
    "killed": "was killed",
}


class Invalid(Exception):
    """An answer that is no answer; the message says why."""


class AlgorithmTask(Task):
    """A task of this family gives what is declared here, `instance`, `play` and `value`."""

    version = "3"
    """Goes up with the rules, too: what is against them now must not keep the score it had."""
    calls_per_rollout = 0
    signature: ClassVar[str]
    """The function a program must have, such as `pack(n, seed)`."""
    start: ClassVar[str]
    """The program training starts from: valid and mediocre."""
    play: ClassVar[Callable[[Instance], Game]]
    measure: ClassVar[str]
    """What is counted, as it is called among the measures."""
    maximise: ClassVar[bool] = False
    sizes: ClassVar[tuple[int, int, int]] = (12, 18, 24)
    cpu_seconds: ClassVar[int] = 5
    about: ClassVar[str]
    rules_of_play: ClassVar[tuple[str, ...]] = ()

    def __init__(self, deal: Deal | None = None, sandbox: str = "bubblewrap") -> None:
        self.deal = Deal() if deal is None else deal
        if sandbox not in list(Mode):
            raise UsageError(f"sandbox must be {' or '.join(Mode)}, got {sandbox!r}")
        self.mode = Mode(sandbox)
        if self.mode is Mode.BUBBLEWRAP:
            self.requirements = Requirements(checks=(missing,))
        self.brief = Brief(self.about, (f"Give the function {self.signature}.", *self.rules_of_play))

    @property
    def entry(self) -> str:
        return self.signature.partition("(")[0]

    def instance(self, seed: int) -> Instance:
        """The instance of a seed, the same on every machine."""
        raise NotImplementedError

    def value(self, instance: Instance, answer: Json) -> float:
        """What a valid answer comes to; `Invalid` where it is not valid. The answer may be anything JSON can hold."""
        raise NotImplementedError

    def splits(self) -> Splits:
        known = references()[self.name]
        items = [Item(f"{self.name}-{seed:02}", {"seed": seed}, known[seed]) for seed in range(sum(self.sizes))]
        return self.deal.splits(items, self.sizes)

    def seed(self) -> Candidate:
        return Candidate({PART: self.start})

    async def rollout(self, item: Item, candidate: Candidate, attempt: Attempt) -> Outcome:
        source = candidate.parts.get(PART)
        if source is None:
            return scored(item.id, 0.0, feedback=f"there is no part {PART}")
        against = rules.complaint(source, self.entry, self.signature)
        if against is not None:
            return scored(item.id, 0.0, feedback=against)
        seed = int(str(item.inputs["seed"]))
        instance = self.instance(seed)
        try:
            value = self.value(instance, await self._answer(source, instance))
        except Invalid as error:
            return scored(item.id, 0.0, feedback=str(error))
        return self._outcome(item, value)

    async def _answer(self, source: str, instance: Instance) -> Json:
        """What a program comes to on an instance; `Invalid` says why it comes to nothing."""
        clock = 4.0 * self.cpu_seconds  # a busy machine must not change a score; what ends a program is processor time
        limits = Limits(2 * clock, self.cpu_seconds, memory_mb=512, processes=1, output_kb=256, call_seconds=clock)
        files = {"main.py": _harness(), PART: source}
        try:
            async with open_conversations(Order(files, ("python", "main.py"), b"", limits, self.mode, ())) as (
                program,
            ):
                _values(await program.ask(self.entry), 1)
                return await _played(type(self).play(instance), program)
        except NoAnswer as error:
            raise Invalid(f"the program {_REASONS[error.reason]}" if error.reason else str(error)) from None

    def answers(self, item: Item) -> tuple[str, ...]:
        return ()

    def example(self, item: Item) -> None:
        return None

    def score(self, value: float, reference: float) -> float:
        """How near a value is to the reference, 0 to 1."""
        if value <= 0.0:
            return 0.0
        return min(1.0, value / reference if self.maximise else reference / value)

    def _outcome(self, item: Item, value: float) -> Outcome:
        reference = float(str(item.reference))
        score = self.score(value, reference)
        told = f"{self.measure.replace('_', ' ')} {value:.6g}, the reference has {reference:.6g}"
        return scored(item.id, score, answer=f"{value:.6g}", feedback=told, measures={self.measure: value})


@cache
def references() -> dict[str, list[float]]:
    """By task: the reference value of each instance, by seed. Made by `benchmarks/algorithm_references.py`."""
    found: dict[str, list[float]] = json.loads(Path(__file__).with_name("references.json").read_text(encoding="utf-8"))
    return found


def drawn(seed: int, name: str) -> Stream:
    """The randomness an instance is made of."""
    return Stream(seed, "instance", name)


def choices(answer: Json, count: int, below: int, what: str) -> list[int]:
    """The answer as `count` whole numbers in [0, below)."""
    if not isinstance(answer, list) or len(answer) != count:
        raise Invalid(f"an answer must be {count} {what}")
    for number in answer:
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < below:
            raise Invalid(f"{number!r} is none of the {what}, which are 0 to {below - 1}")
    return list(answer)


def finite(value: object, what: str) -> float:
    """The value as a number one can compute with."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not abs(value) < 1e300
        or not math.isfinite(value)
    ):
        raise Invalid(f"{what} must be a finite number, got {str(value)[:60]!r}")
    return float(value)


def numbers(values: Sequence[Json]) -> list[float]:
    """Values as numbers that can be compared, infinite ones among them; False counts as 0, True as 1."""
    for value in values:
        if not isinstance(value, int | float) or value != value:
            raise Invalid(f"the function must return a number, got {str(value)[:60]!r}")
    return [value + 0 for value in values]


def comparable(values: Sequence[Json]) -> list[Any]:
    """Values that can be put in order: all numbers, or all of them tuples of numbers."""
    if not all(isinstance(value, list) for value in values):
        return numbers(values)
    return [numbers(value) for value in values]


def distances(points: Sequence[Sequence[float]]) -> list[list[float]]:
    return [[math.dist(a, b) for b in points] for a in points]


@cache
def _harness() -> str:
    return Path(__file__).with_name("inside.py").read_text(encoding="utf-8")


async def _played(game: Game, program: Conversation) -> Json:
    """Play a game to its end, asking the program for every decision."""
    calls = next(game)
    while True:
        values = _values(await program.ask(calls), len(calls))
        try:
            calls = game.send(values)
        except StopIteration as end:
            return end.value


def _values(reply: Json, count: int) -> list[Json]:
    """What the program returned for each of `count` calls; `Invalid` with the program's own error where it raised one."""
    if isinstance(reply, dict) and "error" in reply:
        line = reply.get("line")
        raise Invalid(
            f"line {line}: {reply['error']}"[:_LONGEST] if type(line) is int else str(reply["error"])[:_LONGEST]
        )
    if not isinstance(reply, list) or len(reply) != count:
        raise Invalid(f"the program must answer {count} calls with as many values")
    return reply
