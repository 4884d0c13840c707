"""Between a gate, which is pure, and the job, which pays: fetch what the gate asks for until it decides.

What this job has measured before is shown to the gate from the start, as stored, and costs nothing: the incumbent's outcomes
above all. Failed draws are shown as None, so that the gate can do without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sharpen.core.candidate import Candidate
from sharpen.core.item import Item, groups_of
from sharpen.engine.evaluation import Group
from sharpen.engine.events import Decided
from sharpen.engine.job import Job
from sharpen.engine.metric import HARD, Metric, mean_of
from sharpen.gates.base import Draw, Evidence, Gate, Pair, Verdict

NEW, OLD = "new", "old"


@dataclass(frozen=True)
class Comparison:
    verdict: Verdict
    new_score: float | None
    old_score: float | None
    """Means of the first draw over the items on which it is known for that arm."""
    rollouts: int


class _Arms:
    """The draws of both arms so far, by item number and sample number."""

    def __init__(self, job: Job, new: Candidate, old: Candidate, items: Sequence[Item], metric: Metric) -> None:
        self.candidates = {NEW: new, OLD: old}
        self.items = items
        self.draws: dict[str, list[list[float | None]]] = {}
        for arm, candidate in self.candidates.items():
            self.draws[arm] = [_known_draws(job, candidate, item, metric) for item in items]
        # Outcomes the incumbent does not have yet are drawn first of all, and are stored ones from then on.
        self.stored = [(len(new), max(1, len(old))) for new, old in zip(self.draws[NEW], self.draws[OLD], strict=True)]

    def pairs(self) -> tuple[Pair, ...]:
        rows = zip(self.draws[NEW], self.draws[OLD], self.stored, strict=True)
        return tuple(Pair(tuple(new), tuple(old), *stored) for new, old, stored in rows)

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
        return mean_of([draws[0] for draws in self.draws[arm] if draws])


async def compare(
    job: Job,
    new: Candidate,
    old: Candidate,
    items: Sequence[Item],
    gate: Gate,
    *,
    step: int,
    decision: int | None = None,
    planned: int = 1,
    metric: Metric = HARD,
) -> Comparison:
    """Ask the gate, fetch what it needs, ask again; emit its verdict. `decision` counts the job's verdicts before this one;
    left out, every step (counted from 1) is taken to decide once."""
    decision = step - 1 if decision is None else decision
    arms = _Arms(job, new, old, items, metric)
    shared = groups_of(items)
    clusters = None if shared is None else tuple(shared)
    rollouts = 0
    while True:
        said = gate.decide(Evidence(arms.pairs(), job.repeatable, decision, planned, clusters))
        if isinstance(said, Verdict):
            verdict = said
            break
        groups = arms.groups(said.draws)
        measured = await job.measure([group for _, _, group in groups], purpose="gate")
        for (arm, indices, _), evaluation in zip(groups, measured, strict=True):
            for index, score in zip(indices, metric.values(evaluation), strict=True):
                arms.draws[arm][index].append(score)
        rollouts += len(said.draws)
    job.emit(
        Decided(
            step, gate.name, new.digest, old.digest, verdict.accepted, verdict.reason, verdict.effect, verdict.low,
            verdict.high, verdict.evidence, rollouts, len(items),
        )
    )  # fmt: skip
    return Comparison(verdict, arms.first_mean(NEW), arms.first_mean(OLD), rollouts)


def _known_draws(job: Job, candidate: Candidate, item: Item, metric: Metric) -> list[float | None]:
    draws: list[float | None] = []
    while job.repeatable or not draws:
        known = job.known(candidate, item, len(draws))
        if known is None:
            break
        draws.append(metric.of(*known))
    return draws
