"""What the jobs of a study would take, reckoned before anything is paid for: calls, tokens, money and time.

Calls at most are a bound: of ReflACT from the doctor's estimator (`doctor_estimate.py`), of other trainers from what they
say of their settings (`Trainer.effort`), of all from the caps. `about` is what ReflACT usually comes to. Tokens and money
follow from the calls: by what the doctor once measured for the same task and model, else by the lengths of the questions as
they are now. Time is told where the doctor has timed the model, or where it is capped. What is not known is None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from glob import escape
from pathlib import Path
from statistics import fmean

from sharpen.bench import doctor_estimate
from sharpen.bench.config import BudgetConfig
from sharpen.bench.doctor import RECORD
from sharpen.bench.doctor_estimate import Asking, Cost, Pace
from sharpen.bench.layout import read_json
from sharpen.bench.matrix import Planned
from sharpen.core.digest import Json
from sharpen.engine.opening import Setup
from sharpen.gates import registry as gates
from sharpen.models.base import Model
from sharpen.models.prices import price_of
from sharpen.tasks.render import render
from sharpen.tasks.textual import TextTask
from sharpen.trainers.base import Ground
from sharpen.trainers.reflact.params import ReflACTParams

_LETTERS_PER_TOKEN = 4
_SAMPLE = 20
_HALFWAY = 0.5
"""The score a training is taken to start from: it decides how many failures there are to read."""
_QUESTION_LETTERS, _ATTEMPTS_SHOWN, _ANSWER_TOKENS = 2_500, 8, 600


@dataclass(frozen=True)
class Takes:
    """Amounts, each None where it is not known."""

    calls: float | None = None
    tokens: float | None = None
    money: float | None = None
    seconds: float | None = None

    def record(self) -> dict[str, Json]:
        return {name: None if value is None else round(value, 6) for name, value in asdict(self).items()}


@dataclass(frozen=True)
class Outlook:
    """What a job, or all together, would take: about, where that can be told, and at most. `capped` names the amounts that a
    budget keeps where they are."""

    about: Takes | None
    most: Takes
    capped: frozenset[str] = frozenset()

    def record(self) -> dict[str, Json]:
        about = None if self.about is None else self.about.record()
        return {"about": about, "most": self.most.record(), "capped": sorted(self.capped)}


@dataclass(frozen=True)
class _Rollout:
    """One rollout: its tokens and money, and how long one takes with how many side by side; None where not known."""

    tokens: float | None
    money: float | None
    seconds: float | None
    lanes: float
    letters: float


def of_job(job: Planned, looked: Path) -> Outlook:
    """What one job would take. `looked` is the folder where the doctor keeps what it saw."""
    setup, params = job.parts.setup, job.parts.trainer.params
    one, calls = _rollout(job, looked), setup.task.calls_per_rollout
    closing = job.parts.trainer.closing_rollouts(setup.splits, repeatable=_ground(job).repeatable)
    about: Takes | None = None
    if isinstance(params, ReflACTParams):
        found = _reflact(job, params, one, closing)
        about, most = _takes(found.about, one), _takes(found.most, one)
    else:
        effort = job.parts.trainer.effort(_ground(job))
        if effort is None:
            most = Takes()
        else:
            asked = _questions(setup, one, effort.questions)
            most = _takes(_cost(effort.rollouts + closing, calls, one) + asked, one)
    return _within(about, most, job.cell.config.budget)


def of_all(outlooks: Sequence[Outlook], total: BudgetConfig, parallel: int) -> Outlook:
    """All jobs together; the time is that of `parallel` at a time."""
    every = [one.most if one.about is None else one.about for one in outlooks]
    about = _sum(every, parallel) if any(one.about is not None for one in outlooks) else None
    found = _within(about, _sum([one.most for one in outlooks], parallel), total)
    kept = frozenset.intersection(*(one.capped for one in outlooks)) if outlooks else frozenset[str]()
    return Outlook(found.about, found.most, found.capped | kept)


def _reflact(job: Planned, params: ReflACTParams, one: _Rollout, closing: int) -> doctor_estimate.Estimate:
    setup, ground = job.parts.setup, _ground(job)
    calls = setup.task.calls_per_rollout
    pace = Pace(calls, one.tokens or 0.0, one.money, one.lanes, one.seconds)
    usual = 2 * len(setup.splits.test) + len(setup.splits.val)
    seen = doctor_estimate.Ground(ground.train, ground.deciding, _HALFWAY, ground.repeatable, (usual, closing))
    optimizer = setup.models.get("optimizer")
    asking = None
    if optimizer is not None:
        asking = Asking(setup.initial.length, round(one.letters), _price(optimizer))
    return doctor_estimate.estimate(params, gates.get(params.gate, params.gate_params), seen, pace, asking)


def _ground(job: Planned) -> Ground:
    setup = job.parts.setup
    repeatable, val = setup.sampling.seed is not None, len(setup.splits.val)
    deciding = val - job.parts.trainer.held_back(val)
    asks = "optimizer" in setup.models
    return Ground(len(setup.splits.train), deciding, len(setup.initial.parts), repeatable, asks)


def _rollout(job: Planned, looked: Path) -> _Rollout:
    setup = job.parts.setup
    target = setup.models.get("target")
    if target is None:  # a task that asks no model: what its rollouts take is time
        return _Rollout(0.0, 0.0, None, 1, 0.0)
    lanes = max(1, min(job.parts.how.workers, target.concurrency))
    tokens, answer, letters = _lengths(setup)
    price = _price(target)
    money = None if price is None or tokens is None else ((tokens - answer) * price[0] + answer * price[1]) / 1e6
    if price == (0.0, 0.0):
        money = 0.0
    seen = _measured(job, looked)
    if seen is None:
        return _Rollout(tokens, money, None, lanes, letters)
    if seen.money is None and price is not None and tokens is not None:  # the price has become known since
        money = seen.tokens * ((tokens - answer) * price[0] + answer * price[1]) / tokens / 1e6
    return _Rollout(
        seen.tokens, money if seen.money is None else seen.money, seen.seconds, min(lanes, seen.lanes), letters
    )


def _lengths(setup: Setup) -> tuple[float | None, float, float]:
    """Tokens of a rollout, those of its answer among them, and the letters of an attempt as an optimizer reads it. Questions
    of a task that is no text task only come about as it runs."""
    task, items = setup.task, setup.splits.val[:_SAMPLE]
    if not isinstance(task, TextTask) or not items:
        return None, 0.0, 0.0
    asked, answers, letters = [], [], []
    for item in items:
        question = task.ask(item)
        request = render(setup.spec.render, setup.initial, question, max_tokens=task.max_tokens, stop=task.stop)
        asked.append(len(request.prompt or "") + sum(len(message.content) for message in request.messages))
        example = task.example(item)
        answers.append(task.max_tokens if example is None else 1 + len(example[1]) / _LETTERS_PER_TOKEN)
        letters.append(len(question) + _LETTERS_PER_TOKEN * answers[-1])
    return fmean(asked) / _LETTERS_PER_TOKEN + fmean(answers), fmean(answers), fmean(letters)


def _measured(job: Planned, looked: Path) -> Pace | None:
    """What the doctor measured when it last looked at this task with this model."""
    for path in sorted(looked.glob(f"{escape(job.parts.setup.task.name)}-*/{RECORD}"), reverse=True):
        told = read_json(path)
        if told["model"] == job.cell.config.models.target and told["pace"] is not None:
            return Pace(**told["pace"])
    return None


def _price(model: Model) -> tuple[float, float] | None:
    """Dollars per million tokens that are read and written; None where nobody has told."""
    price = price_of(model)
    return None if price is None else (price.input, price.output)


def _questions(setup: Setup, one: _Rollout, count: int) -> Cost:
    optimizer = setup.models.get("optimizer")
    if optimizer is None or not count:
        return Cost(0, 0, 0.0, 0.0)
    asked = (_QUESTION_LETTERS + setup.initial.length + _ATTEMPTS_SHOWN * one.letters) / _LETTERS_PER_TOKEN
    price = _price(optimizer)
    money = None if price is None else count * (asked * price[0] + _ANSWER_TOKENS * price[1]) / 1e6
    return Cost(count, count * (asked + _ANSWER_TOKENS), money, 0.0)


def _cost(rollouts: int, calls: int, one: _Rollout) -> Cost:
    seconds = None if one.seconds is None else rollouts / one.lanes * one.seconds
    money = None if one.money is None else rollouts * one.money
    return Cost(rollouts * calls, rollouts * (one.tokens or 0.0), money, seconds)


def _takes(cost: Cost, one: _Rollout) -> Takes:
    return Takes(cost.calls, None if one.tokens is None else cost.tokens, cost.money, cost.seconds)


def _within(about: Takes | None, most: Takes, budget: BudgetConfig) -> Outlook:
    """The amounts, none above its cap."""
    caps = {name: cap for name, cap in budget.model_dump().items() if cap is not None}
    capped = frozenset(name for name, cap in caps.items() if (found := getattr(most, name)) is None or found >= cap)
    return Outlook(None if about is None else _cut(about, caps), _cut(most, caps, also_unknown=True), capped)


def _cut(takes: Takes, caps: Mapping[str, float], *, also_unknown: bool = False) -> Takes:
    found: dict[str, float | None] = {}
    for name, value in asdict(takes).items():
        cap = caps.get(name)
        if value is None:
            found[name] = cap if also_unknown else None
        else:
            found[name] = value if cap is None else min(value, cap)
    return Takes(**found)


def _sum(every: Sequence[Takes], parallel: int) -> Takes:
    found: dict[str, float | None] = {}
    for name in ("calls", "tokens", "money", "seconds"):
        values = [getattr(one, name) for one in every]
        found[name] = None if None in values else sum(values) / (parallel if name == "seconds" else 1)
    return Takes(**found)
