"""What the doctor pays for: attempts at some val items, a few of them once more, and the judge's second opinion.

Two attempts are made one by one before the rest, so that what a single one takes is known, and with it how many are
really under way at once. Everything goes through the job's gateway or one beside it with the same budget; what it brings is
handed on as it is, and judged in `doctor_checks.py`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sharpen.bench import doctor_checks
from sharpen.bench.doctor_canned import TARGET, AsksNobody, say
from sharpen.bench.doctor_checks import Finding, Level, Marks
from sharpen.core.candidate import Candidate
from sharpen.core.errors import FATAL, ModelError
from sharpen.core.item import Item
from sharpen.core.outcome import Outcome
from sharpen.core.rng import Stream
from sharpen.core.task import Task
from sharpen.core.usage import NOTHING
from sharpen.engine.evaluation import Evaluation, Group
from sharpen.engine.executor import together
from sharpen.engine.gateway import Gateway
from sharpen.engine.job import Job
from sharpen.engine.rollouts import LiveAttempt, attempt_item
from sharpen.ledger.store import Ledger

NAME = "doctor"
_ALONE, _AGAIN, _JUDGED = 2, 3, 5
"""Items attempted one by one; items attempted again where a model says it is deterministic; right and empty answers that
are put before a judge."""
_UNHINDERED = 0.7
"""Attempts that got in each other's way less than this much were limited by nothing that could be seen."""


@dataclass(frozen=True)
class Wish:
    items: int = 20
    repeats: int = 3


@dataclass(frozen=True)
class Timing:
    """One attempt alone took `alone` seconds; `paid` calls for the others, side by side, took `seconds` in all."""

    alone: float | None
    paid: int
    seconds: float

    def side_by_side(self, calls: float, most: int) -> float:
        """How many attempts of so many calls each are worth having under way at once, `most` where nothing limits them."""
        attempts = self.paid / calls if calls else 0.0
        if self.alone is None or attempts < 1 or self.seconds <= 0:
            return most
        reached = attempts * self.alone / self.seconds
        return most if reached >= _UNHINDERED * min(attempts, most) else max(1.0, reached)


@dataclass(frozen=True)
class Seen:
    """The attempts, one evaluation per repeat, and how long they took."""

    attempts: list[Evaluation]
    timing: Timing

    @property
    def outcomes(self) -> list[Outcome]:
        every = [(e, n) for e in self.attempts for n, score in enumerate(e.hard) if score is not None]
        return [evaluation.outcome(number) for evaluation, number in every]


@dataclass(frozen=True)
class Again:
    """How many of some attempts ended differently the second time."""

    differing: int
    tried: int
    paid: int


async def attempt(job: Job, wish: Wish) -> Seen:
    """Attempt some val items with the skill training would start from, repeatedly where that tells something."""
    val = job.splits.val
    chosen = {item.id for item in Stream(0, NAME, "items").sample(val, wish.items)}
    items = tuple(item for item in val if item.id in chosen)
    draws = wish.repeats if job.repeatable else 1
    gateway, alone = job.runtime.gateway, None
    for item in items[:_ALONE]:
        began, before = time.monotonic(), gateway.paid_calls
        # One of one may fail; whether too many do is seen below.
        await job.measure([Group(job.initial, [item])], purpose=NAME, any_failures=True)
        alone = time.monotonic() - began if gateway.paid_calls > before else None
    began, before = time.monotonic(), gateway.paid_calls
    attempts = await job.measure([Group(job.initial, items, draw) for draw in range(draws)], purpose=NAME)
    return Seen(attempts, Timing(alone, gateway.paid_calls - before, time.monotonic() - began))


async def again(job: Job, first: Evaluation, kept: Path) -> Again:
    """Attempt a few items once more past the ledger, which would only repeat itself. The ledger `kept` is
    theirs alone, so that another look later costs nothing."""
    with Ledger(kept) as ledger:
        gateway = Gateway(job.runtime.gateway.models, ledger, job.budget)
        differing = tried = 0
        for number, item in enumerate(first.items[:_AGAIN]):
            if first.hard[number] is None:
                continue
            scope = (item.digest, first.candidate.digest, 0)
            attempt = LiveAttempt(gateway, job.sampling, job.spec.render, scope)
            outcome = await attempt_item(job.task, item, first.candidate, attempt)
            if outcome.failure is None:
                tried += 1
                differing += outcome.answer != first.outcome(number).answer
        return Again(differing, tried, gateway.paid_calls)


async def judge(job: Job, seen: Seen) -> list[Finding]:
    """Right and empty answers before the judge, and the attempts before it once more."""
    if not job.has_model("judge"):
        return [Finding("judge", Level.OK, "none: the task scores without a model")]
    gateway, items = job.runtime.gateway, Stream(0, NAME, "judged").sample(job.splits.val, _JUDGED)
    if not any("judge" in outcome.usage for outcome in seen.outcomes):
        what = "a judge is named, but the task did not ask it"
        return [Finding("judge", Level.WARN, what, (), "leave models.judge out, or use a task that scores with it")]
    given = doctor_checks.judge_marks(await marks(job.task, job.initial, job.spec.render, items, gateway))
    if gateway.model("judge").deterministic:
        same = Finding("judge", Level.OK, "answers the same every time: asking it again tells nothing")
        return [given, same]
    one = seen.attempts[0]
    scores = await together(*(_judged_again(job, one, n) for n, score in enumerate(one.hard) if score is not None))
    pairs = [pair for pair in scores if pair is not None]
    return [given, doctor_checks.agreement([first for first, _ in pairs], [second for _, second in pairs])]


async def _judged_again(job: Job, attempts: Evaluation, number: int) -> tuple[float, float] | None:
    """The score of an attempt, and what the judge says of the same attempt now. None where that can't be had."""
    item, outcome = attempts.items[number], attempts.outcome(number)
    said = [m.content for m in outcome.trajectory if m.role == "assistant"] or [outcome.answer]
    if len(said) != outcome.usage.get(TARGET, NOTHING).calls:
        return None
    try:
        now, _ = await say(
            job.task, item, job.initial, said, job.spec.render, job.runtime.gateway, ["again", item.digest]
        )
    except ModelError as error:
        if error.kind in FATAL:
            raise
        return None
    return outcome.hard or 0.0, now.hard or 0.0


async def marks(
    task: Task, start: Candidate, render: str, items: Sequence[Item], others: Gateway | None = None
) -> Marks:
    """What the scorer gives to the right and to the empty answer of each item. `AsksNobody` after the first rollout that
    asks no model: each of them may cost something that nobody counts."""
    right: dict[str, float] = {}
    wrong: dict[str, float] = {}
    cut = 0
    for item in items:
        empty, went = await say(task, item, start, [], render, others, ["empty", item.digest])
        if not went.asked:
            raise AsksNobody
        wrong[item.id] = empty.hard or 0.0
        example = task.example(item)
        if example is not None:
            outcome, went = await say(task, item, start, [example[1]], render, others, ["right", item.digest])
            right[item.id] = outcome.hard or 0.0
            cut += went.cut and right[item.id] < 1.0
    return Marks(right, wrong, cut)
