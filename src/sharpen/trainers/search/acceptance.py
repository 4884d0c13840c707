"""Acceptance: which children of a step are worth measuring on val.

`always` lets all of them in. `minibatch` wants them to do better than their parent on the train items they were written
from, as GEPA does. The name of a gate puts each before that gate, against its parent, on all val items that decide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sharpen.core.digest import Json
from sharpen.core.item import Item
from sharpen.engine.evaluation import Evaluation, Group
from sharpen.engine.job import Job
from sharpen.engine.metric import Metric
from sharpen.gates import registry as gates
from sharpen.trainers.search.proposing import Child

ALWAYS, MINIBATCH = "always", "minibatch"


@dataclass(frozen=True)
class Admission:
    """One child, the scores that were compared, and whether it is let in. `tried` holds its outcomes on train items."""

    child: Child
    before: float | None
    after: float | None
    admitted: bool
    tried: Evaluation | None = None
    why: str = "let in untried"

    def record(self) -> list[Json]:
        return [self.child.candidate.digest, self.before, self.after, self.admitted]


class Acceptance(Protocol):
    @property
    def name(self) -> str: ...
    async def admit(self, job: Job, step: int, children: Sequence[Child]) -> list[Admission]: ...


@dataclass(frozen=True)
class Always:
    name: str = ALWAYS

    async def admit(self, job: Job, step: int, children: Sequence[Child]) -> list[Admission]:
        return [Admission(child, None, None, True) for child in children]


@dataclass(frozen=True)
class Minibatch:
    """Better than its parent by more than `threshold` on the train items both were tried on."""

    metric: Metric
    threshold: float = 0.0
    name: str = MINIBATCH

    async def admit(self, job: Job, step: int, children: Sequence[Child]) -> list[Admission]:
        if not children:
            return []
        groups = [Group(child.candidate, child.attempts.evaluation.items) for child in children]
        measured = await job.measure(groups, purpose="screen")
        return [self._admission(child, found) for child, found in zip(children, measured, strict=True)]

    def _admission(self, child: Child, found: Evaluation) -> Admission:
        values = zip(self.metric.values(child.attempts.evaluation), self.metric.values(found), strict=True)
        pairs = [(old, new) for old, new in values if old is not None and new is not None]
        if not pairs:
            return Admission(child, None, None, False, found, "no train item was scored for it and its parent")
        before, after = (sum(side) / len(pairs) for side in zip(*pairs, strict=True))
        why = f"{after:.3f} on {len(pairs)} train items, its parent {before:.3f}"
        return Admission(child, before, after, after > before + self.threshold, found, why)


@dataclass
class ByGate:
    """What passes the gate against its parent on val. `planned` is about how many verdicts there will be."""

    name: str
    params: Mapping[str, Json]
    metric: Metric
    items: Sequence[Item]
    planned: int
    _verdicts: int = field(default=0)

    def __post_init__(self) -> None:
        self._gate = gates.get(self.name, self.params)

    async def admit(self, job: Job, step: int, children: Sequence[Child]) -> list[Admission]:
        found = []
        for child in children:
            comparison = await job.compare(
                child.candidate, child.parent.candidate, self.items, self._gate,
                step=step, decision=self._verdicts, planned=max(self.planned, self._verdicts + 1), metric=self.metric,
            )  # fmt: skip
            self._verdicts += 1
            scores = (comparison.old_score, comparison.new_score)
            found.append(Admission(child, *scores, comparison.verdict.accepted, why=comparison.verdict.reason))
        return found
