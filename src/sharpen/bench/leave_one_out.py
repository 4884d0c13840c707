"""What each block of a trained skill does: the skill without it, on the val items that decided, in pairs with the whole one.

Rollouts that the run's ledger holds are used as they are; fresh ones are made within an allowance of calls, in a job
without a trainer that has a story of its own. A shorter skill leaves out every block whose loss is shown to be smaller than
a margin, and is then held against the whole skill: what does nothing alone may do something together. While the sum loses,
the most valuable block is put back.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sharpen.bench import artifacts
from sharpen.bench.evaluate import Files
from sharpen.bench.runner import tell_start
from sharpen.core.candidate import Candidate
from sharpen.core.errors import BudgetExhausted
from sharpen.core.item import Item, groups_of
from sharpen.engine.evaluation import Group
from sharpen.engine.events import JobEnded
from sharpen.engine.job import Job
from sharpen.engine.metric import Metric
from sharpen.engine.opening import How, Setup, open_job
from sharpen.ledger.keys import RolloutKeys
from sharpen.ledger.store import Ledger
from sharpen.skill.blocks import Block, without
from sharpen.stats.paired import Interval, paired_difference

NAME = "explain"

Scores = Mapping[str, float]
"""By item id."""


@dataclass(frozen=True)
class Subject:
    """A trained skill, the blocks in question, and the items on which they are weighed. `keys` are those of the stored
    rollouts."""

    keys: RolloutKeys
    skill: Candidate
    blocks: Sequence[Block]
    items: Sequence[Item]
    metric: Metric


def stored_keys(lines: Sequence[Mapping[str, Any]]) -> RolloutKeys:
    """The keys of a job's rollouts, from its events."""
    started = lines[0]
    models = {role: identity for role, identity in started["models"].items() if role != "optimizer"}
    seed = started["seed"] if started["repeatable"] else None
    repeat = next((line["repeat"] for line in lines if line["type"] == "repeat_stated"), 0)
    return RolloutKeys(started["task"], started["task_version"], models, started["render"], seed, repeat=repeat)


@dataclass(frozen=True)
class Weighed:
    """A block's removal: the skill without it minus the whole skill. None where no item has both scores. `missing` is how
    many rollouts a full measurement would still take."""

    block: Block
    effect: Interval | None
    missing: int


@dataclass(frozen=True)
class Pruned:
    """The shorter skill, what it left out, what had to be put back, and how it did against the whole one. `skill` is None
    where nothing can go; `why` says so."""

    skill: Candidate | None
    gone: tuple[Block, ...]
    put_back: tuple[Block, ...]
    effect: Interval | None
    why: str = ""


@dataclass(frozen=True)
class Result:
    weighed: tuple[Weighed, ...]
    missing: int
    """Rollouts that a full measurement of everything would still take, those of the whole skill included."""
    pruned: Pruned | None = None
    paid_calls: int = 0


def deciding(lines: Sequence[Mapping[str, Any]], val: Sequence[Item]) -> list[Item]:
    """The val items on which candidates were told apart. Those on which the best was confirmed are left alone; where the
    story does not come to the confirmation, so are all that were not measured."""
    ids = {item.id for item in val}
    seen: dict[bool, set[str]] = {True: set(), False: set()}
    for line in lines:
        if line["type"] == "measured" and line["purpose"] != "test":
            for group in line["groups"]:
                whole = group["items"] == "val"
                named = ids if whole else set() if isinstance(group["items"], str) else ids & set(group["items"])
                seen[line["purpose"] == "confirm"] |= named
    decided, confirmed = seen[False], seen[True]
    if confirmed and confirmed != ids:
        return [item for item in val if item.id not in confirmed]
    if decided and not any(line["type"] == "best_confirmed" for line in lines):
        return [item for item in val if item.id in decided]
    return list(val)


def known(subject: Subject, ledger: Ledger) -> Result:
    """What the ledger alone tells."""
    whole = _stored(subject, subject.skill, ledger)
    rows = []
    for block in subject.blocks:
        scores = {} if block.stays else _stored(subject, without(subject.skill, [block]), ledger)
        missing = 0 if block.stays else len(subject.items) - len(scores)
        rows.append(Weighed(block, _effect(subject.items, scores, whole), missing))
    return Result(tuple(rows), len(subject.items) - len(whole) + sum(row.missing for row in rows))


async def measure(
    setup: Setup, subject: Subject, files: Files, how: How, *, calls: float, margin: float | None = None,
    on_start: Callable[[Job], None] | None = None,
) -> Result:  # fmt: skip
    """Measure what `calls` fresh calls allow for, block by block in their order; with a margin, look for a shorter skill."""
    with Ledger(files.ledger) as ledger:
        before = known(subject, ledger)
    per = setup.task.calls_per_rollout
    left = calls - per * (before.missing - sum(row.missing for row in before.weighed))
    chosen: list[Block] = []
    for row in before.weighed:
        if not row.block.stays and per * row.missing <= left:
            chosen.append(row.block)
            left -= per * row.missing
    if not chosen:
        nothing = Pruned(None, (), (), None, "no block could be weighed")
        return dataclasses.replace(before, pruned=None if margin is None else nothing)
    params = {"blocks": len(chosen), "margin": margin}
    spec = dataclasses.replace(setup.spec, trainer=NAME, trainer_version="1", params=params)
    async with open_job(dataclasses.replace(setup, spec=spec), files.folder, files.ledger, how) as job:
        if on_start is not None:
            on_start(job)
        tell_start(job)
        with job.stage(0, NAME):
            scores = await _scores(job, subject, [subject.skill, *(without(subject.skill, [b]) for b in chosen)])
            whole = scores[0]
            found = {block: _effect(subject.items, own, whole) for block, own in zip(chosen, scores[1:], strict=True)}
            pruned = None if margin is None else await _prune(_Trial(job, subject, whole, margin, left), found)
        job.emit(JobEnded("done", "", job.meter.table()))
        paid = job.runtime.gateway.paid_calls
    artifacts.write(files.folder)
    rows = tuple(Weighed(row.block, found[row.block], 0) if row.block in found else row for row in before.weighed)
    return Result(rows, sum(row.missing for row in rows), pruned, paid)


async def _prune(trial: _Trial, found: Mapping[Block, Interval | None]) -> Pruned:
    """Leave out all that can go alone; put the most valuable back until the sum is good; then try those again that were put
    back before the one that mattered."""
    margin = trial.margin
    free = {block: effect for block, effect in found.items() if effect is not None and effect.low > -margin}
    gone = sorted(free, key=lambda block: (free[block].mean, free[block].low))
    back: list[Block] = []
    if not gone:
        return Pruned(
            None, (), (), None, too_few(trial.whole, margin) or "the loss of no block is shown to be that small"
        )
    try:
        while (effect := await trial.passes(gone)) is None:
            back.append(gone.pop(0))
            if not gone:
                return Pruned(None, (), tuple(back), None, "each can go alone, but not together with any other")
    except BudgetExhausted as error:
        return Pruned(None, (), tuple(back), None, str(error))
    with suppress(BudgetExhausted):  # what passed is good, if not the shortest
        for block in back[:-1]:
            better = await trial.passes([*gone, block])
            if better is not None:
                effect, gone = better, [*gone, block]
                back = [one for one in back if one is not block]
    return Pruned(without(trial.subject.skill, gone), tuple(gone), tuple(back), effect)


@dataclass
class _Trial:
    """Checks of shorter skills against the whole one, while calls are left."""

    job: Job
    subject: Subject
    whole: Scores
    margin: float
    left: float

    async def passes(self, gone: Sequence[Block]) -> Interval | None:
        """The shorter skill against the whole one where it loses less than the margin, else None. A skill has to say
        something."""
        shorter = without(self.subject.skill, gone)
        if not any(text.strip() for text in shorter.parts.values()):
            return None
        stored = _stored(self.subject, shorter, self.job.runtime.ledger)
        cost = self.job.task.calls_per_rollout * (len(self.subject.items) - len(stored))
        if cost > self.left:
            raise BudgetExhausted(f"checking a shorter skill takes {cost} calls, and {self.left:.0f} are left")
        self.left -= cost
        (scores,) = await _scores(self.job, self.subject, [shorter])
        effect = _effect(self.subject.items, scores, self.whole)
        return effect if effect is not None and effect.low > -self.margin else None


def too_few(whole: Scores, margin: float) -> str:
    """Why a margin can't be shown, whatever the rollouts say; empty where it can."""
    values = list(whole.values())
    least = -paired_difference(values, values).low
    if least < margin:
        return ""
    return (
        f"{len(values)} items can't show a loss below {margin:g}: even a skill that does the same on all of them is known "
        f"to ±{least:.3f} only; a --margin above that can be shown"
    )


async def _scores(job: Job, subject: Subject, candidates: Sequence[Candidate]) -> list[Scores]:
    measured = await job.measure([Group(one, subject.items) for one in candidates], purpose=NAME)
    return [
        {
            item.id: value
            for item, value in zip(found.items, subject.metric.values(found), strict=True)
            if value is not None
        }
        for found in measured
    ]


def _stored(subject: Subject, candidate: Candidate, ledger: Ledger) -> Scores:
    by_key = {subject.keys.key(candidate, item, 0): item.id for item in subject.items}
    found = ledger.scores(by_key)
    return {by_key[key]: subject.metric.of(score.hard, score.soft) for key, score in found.items()}


def _effect(items: Sequence[Item], scores: Scores, whole: Scores) -> Interval | None:
    both = [item for item in items if item.id in whole and item.id in scores]
    if not both:
        return None
    groups = groups_of(both)
    return paired_difference([scores[item.id] for item in both], [whole[item.id] for item in both], groups=groups)
