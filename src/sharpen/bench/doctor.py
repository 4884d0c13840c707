"""Looking at a task before money is spent on training: is it sane, can it be measured, what would it take.

What is free comes first: the scorer on answers that are known, the splits, the skill to start from. Where that says
stop, nothing is paid. Then some val items are attempted with the skill to start from, through the engine and within the
budget, as `bench/evaluate.py` does; what the ledger of earlier looks holds is not paid for again. The decisions are
pure and stand in `doctor_checks.py` and `doctor_estimate.py`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from glob import escape
from math import isfinite
from pathlib import Path
from statistics import fmean
from typing import Any

from sharpen.bench import artifacts, doctor_checks, doctor_estimate, doctor_overlap, doctor_probe, uncounted
from sharpen.bench.artifacts import MOST_CUT_OFF
from sharpen.bench.doctor_canned import AsksNobody, AsksOthers
from sharpen.bench.doctor_checks import Contest, Finding, Level
from sharpen.bench.doctor_estimate import Asking, Estimate, Ground, Pace
from sharpen.bench.doctor_probe import NAME, Again, Seen, Wish, marks
from sharpen.bench.evaluate import Files
from sharpen.bench.layout import folder_name, read_json
from sharpen.bench.runner import Parts, tell_start
from sharpen.core.candidate import Candidate
from sharpen.core.digest import Json
from sharpen.core.errors import UsageError
from sharpen.core.item import Item, groups_of
from sharpen.core.rng import Stream
from sharpen.core.task import SPLITS
from sharpen.core.usage import NOTHING
from sharpen.engine.events import SCHEMA_VERSION, Event, JobEnded
from sharpen.engine.job import Job
from sharpen.engine.metric import HARD, Metric
from sharpen.engine.opening import Setup, open_job
from sharpen.files import write_json
from sharpen.gates import registry as gates
from sharpen.gates.base import Gate
from sharpen.gates.sequential import Sequential
from sharpen.models.base import Model
from sharpen.models.prices import price_of
from sharpen.skill.leaks import LeakIndex
from sharpen.stats.detectable import noise
from sharpen.tasks.textual import CUT_OFF, TextTask
from sharpen.trainers.reflact.params import ReflACTParams

RECORD = "doctor.json"
_CHEAP, _DEAR = 1000, 60
"""Items whose right and empty answers are scored: by a built-in metric, and by code of the task's own."""


@dataclass(frozen=True)
class Examined(Event):
    """What the doctor found, without what depends on the clock."""

    go: bool
    findings: list[Json]


@dataclass(frozen=True)
class Diagnosis:
    findings: tuple[Finding, ...]
    estimate: Estimate | None = None
    pace: Pace | None = None
    paid_calls: int = 0
    """Calls that were made now; the rest was in the ledger."""

    @property
    def go(self) -> bool:
        return all(finding.level != Level.STOP for finding in self.findings)


async def examine(parts: Parts, wish: Wish, files: Files, on_start: Callable[[Job], None] | None = None) -> Diagnosis:
    """Look at everything, pay for what has to be measured, and leave the story and a record in the folder."""
    setup = parts.setup
    found = [await _scorer(setup), *_uncounted(uncounted.warning(parts.config, setup.task)), *_data(setup)]
    if any(finding.level == Level.STOP for finding in found):
        what = "none were made and nothing was paid: what is above comes first"
        diagnosis = Diagnosis(
            (*found, doctor_checks.balance(_judging(setup), None), Finding("attempts", Level.OK, what))
        )
    else:
        diagnosis = await _measured(parts, wish, files, found, on_start)
    write_json(files.folder / RECORD, record(parts, diagnosis))
    return diagnosis


def record(parts: Parts, diagnosis: Diagnosis) -> dict[str, Json]:
    """The diagnosis as one JSON object."""
    return {
        "schema_version": SCHEMA_VERSION,
        "go": diagnosis.go,
        "task": parts.setup.task.name,
        "model": parts.config.models.target,
        "workers": parts.config.workers,
        "findings": [finding.record() for finding in diagnosis.findings],
        "estimate": None if diagnosis.estimate is None else diagnosis.estimate.record(),
        "pace": None if diagnosis.pace is None else dataclasses.asdict(diagnosis.pace),
        "paid_calls": diagnosis.paid_calls,
    }


# -- what is free


async def _scorer(setup: Setup) -> Finding:
    """The scorer on right and on empty answers; by a judge only later, when one may be paid."""
    task = setup.task
    if not task.calls_per_rollout:
        return Finding("scorer", Level.OK, "the task calls no model, so there are no answers to try it with")
    cheap = isinstance(task, TextTask) and not task.scorer.own
    items = _spread(setup, _CHEAP if cheap else _DEAR)
    try:
        return doctor_checks.scorer(await marks(task, setup.initial, setup.spec.render, items))
    except AsksNobody:
        what = f"a rollout asked no model, though the task says calls_per_rollout = {task.calls_per_rollout}"
        return Finding("scorer", Level.WARN, f"{what}; known answers can't be tried", (), uncounted.REMEDY)
    except AsksOthers:
        return Finding("scorer", Level.OK, "asks a judge; see below")
    except UsageError as error:
        return Finding("scorer", Level.STOP, "the scorer can't score", (), f"mend the metric or the data: {error}")


def _data(setup: Setup) -> list[Finding]:
    leaks = LeakIndex(setup.splits, setup.task.answers).find(Candidate(""), setup.initial)
    return [
        doctor_checks.overlap(doctor_overlap.find(setup.splits), setup.splits),
        doctor_checks.leaks(leaks, setup.splits),
    ]


def _uncounted(said: str) -> list[Finding]:
    what, _, advice = said.partition("; ")
    return [Finding("calls", Level.WARN, what, (), advice)] if said else []


def _judging(setup: Setup) -> list[Item]:
    return [*setup.splits.val, *setup.splits.test]


def _spread(setup: Setup, most: int) -> list[Item]:
    """Up to `most` items from all splits, the same ones every time."""
    stream = Stream(0, NAME, "scorer")
    return stream.sample([item for name in SPLITS for item in setup.splits[name]], most)


# -- what is paid for


async def _measured(
    parts: Parts, wish: Wish, files: Files, found: list[Finding], on_start: Callable[[Job], None] | None
) -> Diagnosis:
    setup = parts.setup
    params: dict[str, Json] = dataclasses.asdict(wish)
    spec = dataclasses.replace(setup.spec, trainer=NAME, trainer_version="1", params=params)
    async with open_job(dataclasses.replace(setup, spec=spec), files.folder, files.ledger, parts.how) as job:
        if on_start is not None:
            on_start(job)
        tell_start(job)
        with job.stage(0, NAME):
            seen = await doctor_probe.attempt(job, wish)
            kept = files.ledger.with_name("again.db")
            again = None if job.repeatable else await doctor_probe.again(job, seen.attempts[0], kept)
            judged = await doctor_probe.judge(job, seen)
        diagnosis = _conclude(parts, seen, [*found, *judged], again, files)
        paid = job.runtime.gateway.paid_calls + (0 if again is None else again.paid)
        told = [f.record() for f in diagnosis.findings if f.check not in ("estimate", "budget")]
        job.emit(Examined(diagnosis.go, told))
        job.emit(JobEnded("done", "", job.meter.table()))
    artifacts.write(files.folder)
    return dataclasses.replace(diagnosis, paid_calls=paid)


# -- what follows from it


def _conclude(parts: Parts, seen: Seen, found: list[Finding], again: Again | None, files: Files) -> Diagnosis:
    setup, trainer = parts.setup, parts.trainer
    metric = _metric(trainer.params)
    by_item = _by_item([metric.values(evaluation) for evaluation in seen.attempts])
    known = [fmean(scores) for scores in by_item if scores]
    soft = [score for evaluation in seen.attempts for score in evaluation.soft if score is not None]
    failed = sum(len(evaluation.failures) for evaluation in seen.attempts)
    bounded = isfinite(setup.task.score_range[1])
    ceiling, none = doctor_checks.headroom, doctor_checks.without_ceiling
    scored = [item for item, scores in zip(seen.attempts[0].items, by_item, strict=True) if scores]
    groups = groups_of(scored)
    room = ceiling(known, soft or [0.0], failed, groups) if bounded else none(known, failed, groups)
    score = fmean(known) if known else 0.0
    measured = noise(by_item)
    if again is not None:
        within, chance = 0.0, doctor_checks.same_again(again.differing, again.tried)
    else:
        within = score * (1.0 - score) if measured is None else measured.within
        chance = doctor_checks.chance(measured, known or [0.0], len(setup.splits.val))
    findings = [
        *found,
        *_calls(parts, seen),
        *_length(setup, seen),
        doctor_checks.balance(_judging(setup), score),
        room,
        chance,
    ]
    if bounded and room.level != Level.STOP:
        findings += [doctor_checks.detectable(contest, within, 1.0 - score) for contest in _contests(parts)]
    if isinstance(trainer.params, ReflACTParams):
        findings += doctor_checks.proof(trainer.params.gate)
    pace = _pace(parts, seen, files)
    if pace is None or not isinstance(trainer.params, ReflACTParams):
        what = f"trainer {trainer.name} does not tell what a step takes"
        return Diagnosis((*findings, Finding("estimate", Level.OK, what)), pace=pace)
    repeatable = setup.sampling.seed is not None
    val, test = len(setup.splits.val), len(setup.splits.test)
    closing = (2 * test + val, trainer.closing_rollouts(setup.splits, repeatable=repeatable))
    ground = Ground(len(setup.splits.train), _deciding(parts), score, repeatable, closing)
    made = doctor_estimate.estimate(trainer.params, _gate(trainer.params), ground, pace, _asking(setup, seen))
    findings += [doctor_estimate.cost(made, _without_price(setup)), doctor_estimate.fits(made, parts.how.caps)]
    return Diagnosis(tuple(findings), made, pace)


def _calls(parts: Parts, seen: Seen) -> list[Finding]:
    """Whether the attempts that were made asked the model; nothing to say where they did."""
    stated = parts.setup.task.calls_per_rollout
    if not stated or not seen.outcomes or any(outcome.total.calls for outcome in seen.outcomes):
        return []
    return _uncounted(
        f"no attempt asked the model, though the task says calls_per_rollout = {stated}; {uncounted.REMEDY}"
    )


def _length(setup: Setup, seen: Seen) -> list[Finding]:
    """How long answers may be, and how many were cut off there."""
    if not isinstance(setup.task, TextTask) or not seen.outcomes:
        return []
    cut = sum(CUT_OFF in outcome.measures for outcome in seen.outcomes)
    what = f"{cut} of {len(seen.outcomes)} answers were cut off after {setup.task.max_tokens} tokens, the most there may be"
    if cut <= MOST_CUT_OFF * len(seen.outcomes):
        return [Finding("length", Level.OK, what)]
    advice = (
        "raise task.max_tokens, or have the skill ask for shorter answers: what is cut off scores as if it were wrong"
    )
    return [Finding("length", Level.WARN, what, (), advice)]


def _without_price(setup: Setup) -> list[str]:
    return [model.name for model in setup.models.values() if price_of(model) is None]


def _metric(params: object) -> Metric:
    """The score that decisions go by."""
    return Metric(params.gate_metric, params.gate_mixed_weight) if isinstance(params, ReflACTParams) else HARD


def _by_item(repeats: Sequence[Sequence[float | None]]) -> list[list[float]]:
    return [[score for score in scores if score is not None] for scores in zip(*repeats, strict=True)]


def _contests(parts: Parts) -> list[Contest]:
    """The comparisons a training makes: the gate's on val, and the final one on test."""
    params: Any = parts.trainer.params
    gate = _gate(params) if isinstance(params, ReflACTParams) else None
    level, draws = float(getattr(gate, "alpha", 0.05)), 1
    if isinstance(gate, Sequential):
        level = gate.level(0, doctor_estimate.planned(params, len(parts.setup.splits.train)).steps)
        draws = int(gate.most_pairs(parts.setup.sampling.seed is not None))
    # The last word is a two-sided interval of 95 %.
    return [Contest("val", _deciding(parts), level, draws), Contest("test", len(parts.setup.splits.test), 0.025)]


def _deciding(parts: Parts) -> int:
    val = len(parts.setup.splits.val)
    return val - parts.trainer.held_back(val)


def _gate(params: ReflACTParams) -> Gate:
    return gates.get(params.gate, params.gate_params)


def _pace(parts: Parts, seen: Seen, files: Files) -> Pace | None:
    """What a rollout takes, from those that were measured; the time, if none was paid now, from an earlier look."""
    used = [outcome.total for outcome in seen.outcomes]
    if not used:
        return None
    total = sum(used, NOTHING)
    calls, tokens = total.calls / len(used), total.tokens / len(used)
    money = _money(parts.setup, seen)
    target = parts.setup.models.get("target")
    lanes = max(1, parts.how.workers if target is None else min(parts.how.workers, target.concurrency))
    if seen.timing.alone is not None:
        return Pace(calls, tokens, money, seen.timing.side_by_side(calls, lanes), seen.timing.alone)
    return Pace(calls, tokens, money, *(_remembered(parts, files.folder.parent) or (lanes, None)))


def _money(setup: Setup, seen: Seen) -> float | None:
    """What a rollout costs. What was paid when nobody knew the price is in the ledger without one; it may be known now."""
    whole = 0.0
    for role, usage in ((role, usage) for outcome in seen.outcomes for role, usage in outcome.usage.items()):
        model = setup.models.get(role)
        price = None if usage.money is not None or model is None else price_of(model)
        if usage.money is None and price is None:
            return None
        cost = 0.0 if price is None else price.cost(usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens)
        whole += cost if usage.money is None else usage.money
    return whole / len(seen.outcomes)


def _remembered(parts: Parts, folder: Path) -> tuple[float, float] | None:
    """How many at once, and how long one took, when somebody last looked and had to pay."""
    for path in sorted(folder.glob(f"{escape(folder_name(parts.setup.task.name))}-*/{RECORD}"), reverse=True):
        told = read_json(path)
        same = told["model"] == parts.config.models.target and told["workers"] == parts.config.workers
        if same and told["pace"] is not None and told["pace"]["seconds"] is not None:
            return float(told["pace"]["lanes"]), float(told["pace"]["seconds"])
    return None


def _asking(setup: Setup, seen: Seen) -> Asking | None:
    model: Model | None = setup.models.get("optimizer")
    if model is None:
        return None
    told = [len(o.answer) + len(o.feedback) + sum(len(m.content) for m in o.trajectory) for o in seen.outcomes]
    price = price_of(model)
    known = None if price is None else (price.input, price.output)
    return Asking(setup.initial.length, round(fmean(told)) if told else 0, known)
