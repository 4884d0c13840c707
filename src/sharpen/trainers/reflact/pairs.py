"""Longitudinal pairs: the same train items attempted with last epoch's candidate and with today's.

Each pair is improved, regressed, a persistent failure or a stable success. A policy says which are shown: all of a sample
(mixed), or those that changed or did not, for which more of the train split is tried until the sample is full.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sharpen.core.candidate import Candidate
from sharpen.core.digest import Json
from sharpen.core.item import Item
from sharpen.core.outcome import Outcome
from sharpen.engine.evaluation import Evaluation, Group
from sharpen.engine.job import Job
from sharpen.trainers.reflact.reflect import shown_attempt
from sharpen.trainers.reflact.rollout import FULL_MARKS, Attempted

IMPROVED, REGRESSED, PERSISTENT, STABLE = "improved", "regressed", "persistent_failure", "stable_success"
CATEGORIES = (REGRESSED, PERSISTENT, IMPROVED, STABLE)
"""In the order in which they are shown: what was lost first."""

_WANTED = {"mixed": CATEGORIES, "changed": (REGRESSED, IMPROVED), "unchanged": (PERSISTENT, STABLE)}


@dataclass(frozen=True)
class LongPair:
    """One item, and how it went with the previous candidate and with today's."""

    item: Item
    before: Outcome
    after: Outcome

    @property
    def category(self) -> str:
        was, now = (_right(outcome) for outcome in (self.before, self.after))
        if was:
            return STABLE if now else REGRESSED
        return IMPROVED if now else PERSISTENT

    def row(self) -> list[Json]:
        return [self.item.id, self.category, self.before.hard, self.after.hard]

    def shown(self) -> dict[str, Json]:
        """The pair as the optimizer sees it; what went well both times is told in short."""
        now = shown_attempt(Attempted(self.item, self.after))
        if self.category == STABLE:
            return {"category": STABLE, "item": self.item.id, "input": self.item.text}
        was = shown_attempt(Attempted(self.item, self.before))
        kept = ("answer", "score", "feedback", "trajectory")
        return {"category": self.category, **now, "before": {name: was[name] for name in kept}}


@dataclass(frozen=True)
class LongView:
    pairs: tuple[LongPair, ...]
    tried: int

    def counts(self) -> dict[str, int]:
        return {name: sum(pair.category == name for pair in self.pairs) for name in CATEGORIES}


async def look_back(
    job: Job, epoch: int, previous: Candidate, current: Candidate, *, samples: int, policy: str
) -> LongView:
    """Attempt train items with both candidates until the policy has its sample, or the split ends."""
    order = job.rng("longitudinal", epoch).shuffled(job.splits.train)
    found: list[LongPair] = []
    tried = 0
    while len(found) < samples and tried < len(order):
        items = order[tried : tried + samples]
        tried += len(items)
        groups = [Group(candidate, items) for candidate in (previous, current)]
        before, after = await job.measure(groups, purpose="slow-update")
        found += [pair for pair in _paired(items, before, after) if pair.category in _WANTED[policy]]
        if policy == "mixed":
            break
    ranked = sorted(found[:samples], key=lambda pair: CATEGORIES.index(pair.category))
    return LongView(tuple(ranked), tried)


def _paired(items: Sequence[Item], before: Evaluation, after: Evaluation) -> list[LongPair]:
    """Items on which both were scored."""
    return [
        LongPair(item, before.outcome(index), after.outcome(index))
        for index, item in enumerate(items)
        if before.hard[index] is not None and after.hard[index] is not None
    ]


def _right(outcome: Outcome) -> bool:
    return outcome.hard is not None and outcome.hard >= FULL_MARKS
