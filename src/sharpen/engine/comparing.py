"""Between a gate, which is pure, and the job, which pays: fetch what the gate asks for until it decides.

What this job has measured before is shown to the gate from the start and costs nothing: the incumbent's stored outcomes
above all. Failed draws are shown as None, so that the gate can do without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sharpen.core.candidate import Candidate
from sharpen.core.item import Item
from sharpen.engine.evaluation import Group
from sharpen.engine.events import Decided
from sharpen.engine.job import Job
from sharpen.gates.base import Draw, Evidence, Gate, Pair, Verdict

NEW, OLD = "new", "old"
_FEW = 8
"""More samples of one item than this are not looked for in what is known; gates start from the first ones."""


@dataclass(frozen=True)
class Comparison:
    verdict: Verdict
    new_score: float | None
    old_score: float | None
    """Means of the first draw over the items on which it is known for that arm."""
    rollouts: int


class _Arms:
    """The draws of both arms so far, by item number and sample number."""

    def __init__(self, job: Job, new: Candidate, old: Candidate, items: Sequence[Item]) -> None:
        self.candidates = {NEW: new, OLD: old}
        self.items = items
        self.draws: dict[str, list[list[float | None]]] = {}
        for arm, candidate in self.candidates.items():
            self.draws[arm] = [_known_draws(job, candidate, item) for item in items]

    def pairs(self) -> tuple[Pair, ...]:
        return tuple(Pair(tuple(new), tuple(old)) for new, old in zip(self.draws[NEW], self.draws[OLD], strict=True))

    def groups(self, wanted: Sequence[Draw]) -> list[tuple[str, list[int], Group]]:
        """The gate's wishes as measurements: one group per arm and sample number."""
        sorted_by_kind: dict[tuple[str, int], list[int]] = {}
        for draw in wanted:
            if draw.sample < len(self.draws[draw.arm][draw.item]):
                raise ValueError(f"the gate asked for {draw}, which it has been given")
            sorted_by_kind.setdefault((draw.arm, draw.sample), []).append(draw.item)
        return [
            (arm, indices, Group(self.candidates[arm], [self.items[i] for i in indices], sample))
            for (arm, sample), indices in sorted(sorted_by_kind.items())
        ]

    def first_mean(self, arm: str) -> float | None:
        known = [draws[0] for draws in self.draws[arm] if draws and draws[0] is not None]
        return sum(known) / len(known) if known else None


async def compare(
    job: Job, new: Candidate, old: Candidate, items: Sequence[Item], gate: Gate, *, step: int, planned: int
) -> Comparison:
    """Ask the gate, fetch what it needs, ask again; emit its verdict. Steps count from 1, and each decides once at most."""
    arms = _Arms(job, new, old, items)
    rollouts = 0
    while True:
        decision = gate.decide(Evidence(arms.pairs(), job.repeatable, decision=step - 1, planned=planned))
        if isinstance(decision, Verdict):
            break
        groups = arms.groups(decision.draws)
        measured = await job.measure([group for _, _, group in groups], purpose="gate")
        for (arm, indices, _), evaluation in zip(groups, measured, strict=True):
            for index, score in zip(indices, evaluation.hard, strict=True):
                arms.draws[arm][index].append(score)
        rollouts += len(decision.draws)
    verdict = decision
    job.emit(
        Decided(
            step, gate.name, new.digest, old.digest, verdict.accepted, verdict.reason, verdict.effect, verdict.low,
            verdict.high, verdict.evidence, rollouts, len(items),
        )
    )  # fmt: skip
    return Comparison(verdict, arms.first_mean(NEW), arms.first_mean(OLD), rollouts)


def _known_draws(job: Job, candidate: Candidate, item: Item) -> list[float | None]:
    draws: list[float | None] = []
    for sample in range(_FEW if job.repeatable else 1):
        score = job.known_score(candidate, item, sample)
        if score is None:
            break
        draws.append(score)
    return draws
