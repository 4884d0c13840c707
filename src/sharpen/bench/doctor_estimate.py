"""What a training with the present settings would take: calls, tokens, money and time, per step and in all.

Rollouts are reckoned from what the measured ones used. `about` takes every step to come before the gate and the gate to need
one pass over the deciding items; `most` is what the settings allow at the utmost. Neither knows how the skill will grow,
which makes prompts longer. What an optimizer model reads and writes is guessed from the lengths of the texts. Pure.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sharpen.bench.doctor_checks import Finding, Level
from sharpen.core.digest import Json
from sharpen.engine.budget import Caps
from sharpen.gates.base import Gate
from sharpen.gates.sequential import Sequential
from sharpen.models import prices
from sharpen.trainers.reflact.params import ReflACTParams
from sharpen.trainers.reflact.rollout import steps_per_epoch

_LETTERS_PER_TOKEN = 4
_PROMPT_LETTERS = 2_500
_ANSWER_TOKENS = 600
_SCREENS = (12, 16)
"""Items of the first rounds in which a step's alternatives compete; the rest follow in one round."""
_GATE_ROUNDS = 10


@dataclass(frozen=True)
class Pace:
    """What a measured rollout took; `seconds` is for one alone, and `lanes` of them go side by side in the same time."""

    calls: float
    tokens: float
    money: float | None
    lanes: float
    seconds: float | None


@dataclass(frozen=True)
class Ground:
    """What a training works on. `closing` counts rollouts: as the closing measurement usually needs, and at most."""

    train: int
    deciding: int
    score: float
    repeatable: bool
    closing: tuple[int, int]


@dataclass(frozen=True)
class Asking:
    """The optimizer, where there is one: letters of the skill and of an attempt, and dollars per million tokens."""

    skill: int
    attempt: int
    price: tuple[float, float] | None


@dataclass(frozen=True)
class Cost:
    """`money` is None where a price is not known, `seconds` where no call was made that could be timed."""

    calls: float
    tokens: float
    money: float | None
    seconds: float | None

    def __add__(self, other: Cost) -> Cost:
        money = None if self.money is None or other.money is None else self.money + other.money
        seconds = None if self.seconds is None or other.seconds is None else self.seconds + other.seconds
        return Cost(self.calls + other.calls, self.tokens + other.tokens, money, seconds)

    def times(self, number: int) -> Cost:
        return Cost(
            self.calls * number,
            self.tokens * number,
            None if self.money is None else self.money * number,
            None if self.seconds is None else self.seconds * number,
        )


@dataclass(frozen=True)
class Estimate:
    steps: int
    step: Cost
    once: Cost
    """The current skill on the deciding items, before the first decision."""
    closing: Cost
    about: Cost
    most: Cost
    asking: bool
    """Whether an optimizer is asked, whose share is a guess and whose time is left out."""

    def record(self) -> dict[str, Json]:
        return dataclasses.asdict(self)


def estimate(params: ReflACTParams, gate: Gate, ground: Ground, pace: Pace, asking: Asking | None) -> Estimate:
    """What ReflACT with these settings would take."""
    plan = planned(params, ground.train)
    screens = list(_screens(params, min(params.screen_items, ground.train)))
    rounds = _GATE_ROUNDS if isinstance(gate, Sequential) else 1
    gating = [math.ceil(ground.deciding / rounds)] * rounds
    deepest = _most_passes(gate, ground)
    step = _rollouts([plan.items, *screens, *gating], pace)
    utmost = _rollouts([plan.items, *screens, *(gating * deepest)], pace)
    epoch = epoch_most = _rollouts([], pace)
    if asking is not None and params.analysts:
        step += _reading(params, plan.items, ground.score, asking)
        utmost += _reading(params, plan.items, 0.5, asking).times(2)
        epoch += _long_view(params, gating, pace, asking)
        epoch_most += _long_view(params, gating * deepest, pace, asking).times(2)
    once, closing = _rollouts([ground.deciding], pace), _rollouts([ground.closing[0]], pace)
    promote = _rollouts([ground.deciding] * (2 + deepest), pace)
    about = step.times(plan.steps) + epoch.times(plan.epochs - 1) + once + closing
    most = utmost.times(plan.steps) + epoch_most.times(plan.epochs) + once + promote
    most += _rollouts([ground.closing[1]], pace)
    return Estimate(plan.steps, step, once, closing, about, most, asking is not None)


def _most_passes(gate: Gate, ground: Ground) -> int:
    """Passes over the deciding items that one decision takes at most."""
    if not isinstance(gate, Sequential) or not ground.repeatable:
        return 1
    return math.ceil(2 * gate.most_pairs(True)) + 1


@dataclass(frozen=True)
class Plan:
    steps: int
    epochs: int
    items: int
    """Train items attempted per step."""


def planned(params: ReflACTParams, train: int) -> Plan:
    """How often what is done, from the settings and the number of train items."""
    items = params.batch_size * params.accumulation
    per_epoch = steps_per_epoch(train, items)
    steps = min(params.epochs * per_epoch, params.max_steps or params.epochs * per_epoch)
    return Plan(steps, math.ceil(steps / per_epoch), min(items, train))


def cost(found: Estimate, without_price: Sequence[str] = ()) -> Finding:
    """The estimate in words. `without_price` are the models whose price is not known."""
    what = f"about {_words(found.about)}"
    detail = [
        f"{found.steps} step{'' if found.steps == 1 else 's'} of about {_words(found.step)} each",
        f"the start on val, then the closing measurement: about {_words(found.once + found.closing)}",
        f"at most {_words(found.most)}",
        "with the skill as long as it is now; prompts grow with it",
    ]
    if found.asking:
        detail.append("tokens and money of the optimizer are a guess, and its time is not in it")
    if found.about.seconds is None:
        detail.append("no time is given: every answer was known already, so nothing could be timed")
    if found.about.money is None:
        return Finding("estimate", Level.WARN, what, tuple(detail), prices.advice(without_price))
    return Finding("estimate", Level.OK, what, tuple(detail))


def fits(found: Estimate, caps: Caps) -> Finding:
    """Whether the caps leave room for the training."""
    short: list[tuple[str, float, int]] = []
    for name in ("calls", "tokens", "money", "seconds"):
        cap, about = getattr(caps, name), getattr(found.about, name)
        if cap is not None and about is not None and about > cap:
            room = cap - getattr(found.once, name) - getattr(found.closing, name)
            short.append((name, cap, max(0, int(room / max(1e-12, getattr(found.step, name))))))
    if caps == Caps():
        return Finding("budget", Level.OK, "no caps are set; a training ends after its last step")
    if not short:
        return Finding("budget", Level.OK, "the caps leave room for every step")
    name, cap, steps = min(short, key=lambda entry: entry[2])
    needed = getattr(found.about, name)
    advice = (
        f"raise budget.{name} to about {_amount(needed)}, or lower trainer.params.max_steps, batch_size or screen_items"
    )
    if steps == 0:
        what = f"budget.{name}={cap:g} leaves no room for a whole step beside the closing measurement"
        return Finding("budget", Level.STOP, what, (), advice)
    what = f"budget.{name}={cap:g} will end the training after about {steps} of {found.steps} steps"
    return Finding("budget", Level.WARN, what, (), advice)


def _rollouts(rounds: list[int], pace: Pace) -> Cost:
    """The cost of rollouts, round after round; within one, side by side."""
    count = sum(rounds)
    waves = sum(max(1.0, number / pace.lanes) for number in rounds if number)
    return Cost(
        count * pace.calls,
        count * pace.tokens,
        None if pace.money is None else count * pace.money,
        None if pace.seconds is None else waves * pace.seconds,
    )


def _screens(params: ReflACTParams, items: int) -> Iterator[int]:
    """Rollouts in each round of the competition between alternatives, the current skill included."""
    field, left = params.alternatives, items
    for size in (*_SCREENS, items):
        if left <= 0:
            return
        yield (field + 1) * min(size, left)
        left -= size
        field = max(2, (field + 1) // 2) if field > 1 else field


def _reading(params: ReflACTParams, items: int, score: float, asking: Asking) -> Cost:
    """The optimizer's part of a step: reading the attempts, merging what came of it, ranking."""
    failing = math.ceil(items * (1.0 - score) / params.minibatch_size)
    working = 0 if params.failure_only else math.ceil(items * score / params.minibatch_size)
    merging = _merges(failing, params.merge_batch_size) + _merges(working, params.merge_batch_size)
    merging += int(failing > 0 and working > 0) + 1
    return _asked(failing + working, asking, params.minibatch_size) + _asked(merging, asking, 0)


def _long_view(params: ReflACTParams, gating: list[int], pace: Pace, asking: Asking) -> Cost:
    """What the optimizer does at the end of an epoch: guidance that must pass the gate, and its notebook."""
    if not (params.slow_update or params.meta_skill):
        return _rollouts([], pace)
    asked = _asked(int(params.slow_update) + int(params.meta_skill), asking, params.slow_update_samples)
    tried = [2 * params.slow_update_samples, *(gating if params.slow_update and params.slow_update_gate else [])]
    return asked + _rollouts(tried, pace)


def _asked(questions: int, asking: Asking, attempts: int) -> Cost:
    """The cost of questions to the optimizer that show it so many attempts each."""
    letters = questions * (_PROMPT_LETTERS + asking.skill + attempts * asking.attempt)
    prompt, answers = letters / _LETTERS_PER_TOKEN, questions * _ANSWER_TOKENS
    money = None if asking.price is None else (prompt * asking.price[0] + answers * asking.price[1]) / 1e6
    return Cost(questions, prompt + answers, money, 0.0)


def _merges(patches: int, size: int) -> int:
    if patches <= 1:
        return 0
    chunks = math.ceil(patches / size)
    return chunks + _merges(chunks, size)


def _words(spent: Cost) -> str:
    money = "unknown money" if spent.money is None else "free" if spent.money == 0 else f"{spent.money:.2g} dollars"
    parts = [f"{_amount(spent.calls)} calls", f"{_amount(spent.tokens)} tokens", money]
    if spent.seconds is not None:
        parts.append(_time(spent.seconds))
    return ", ".join(parts)


def _time(seconds: float) -> str:
    if seconds < 1:
        return "under 1 s"
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:,.0f} min"


def _amount(number: float) -> str:
    """Two or three digits are all that an estimate has."""
    if number < 1000:
        return f"{number:,.2g}" if number < 1 else f"{number:,.0f}"
    return f"{round(number, 2 - int(math.log10(number))):,.0f}"
