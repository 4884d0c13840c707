"""Stage 4, select: clip every alternative to the edit budget, then let them compete on train items.

Within an alternative the edits are ranked by the optimizer where there is one, else by their support. Alternatives
compete by halving: all are tried on a few items, the better half on more, until one is left. The items are train items
that none of the alternatives shows as an example. Whoever wins has only been chosen to be put before the gate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sharpen.core.candidate import Candidate
from sharpen.core.item import Item
from sharpen.engine.evaluation import Group
from sharpen.engine.job import Job
from sharpen.skill import examples
from sharpen.trainers.reflact.answers import Ranked
from sharpen.trainers.reflact.patches import Patch
from sharpen.trainers.reflact.prompts import question
from sharpen.trainers.reflact.update import Update

_FIRST_ROUND = 8


@dataclass(frozen=True)
class Trial:
    """How far an alternative came: its mean over the items it was tried on, and that of the current candidate there."""

    number: int
    score: float | None
    items: int
    current: float | None = None

    @property
    def promising(self) -> bool:
        """Whether it did better than the current candidate on the items both were tried on, or was not tried."""
        return self.score is None or self.current is None or self.score > self.current


async def clip(job: Job, step: int, patch: Patch, *, budget: int, skill: str) -> Patch:
    """The patch with at most `budget` edits, the best ones."""
    if len(patch.edits) <= budget:
        return patch
    order = list(range(len(patch.edits)))
    order.sort(key=lambda number: -patch.edits[number].support)
    if job.has_model("optimizer") and patch.source == "analysts":
        data = {
            "stage": "rank",
            "skill": skill,
            "budget": budget,
            "edits": [{"number": n, **edit.record()} for n, edit in enumerate(patch.edits)],
        }
        answer = await job.ask("optimizer", question("rank", data), schema=Ranked, scope=("rank", step))
        if answer.error is None:
            ranked: Ranked = answer.value
            valid = [number for number in dict.fromkeys(ranked.order) if 0 <= number < len(patch.edits)]
            order = valid or order
    kept = sorted(order[:budget])
    return replace(patch, edits=tuple(patch.edits[number] for number in kept))


async def compete(
    job: Job, step: int, current: Candidate, updates: Sequence[Update], batch: Sequence[Item], most: int
) -> list[Trial]:
    """Try the updates that may go on against each other, halving the field from round to round. The winner comes first.

    The items of the batch are tried first: how the current candidate did on them is known. An update that would be
    refused can't win, unless there is no other: then it is shown, and refused, in its place.
    """
    field = [number for number, made in enumerate(updates) if made.refusal is None]
    if not field:
        return [Trial(number, None, 0) for number in range(len(updates))]
    items = _train_items(job, step, [updates[number] for number in field], batch, most)
    scores: dict[int, list[float]] = {number: [] for number in field}
    before: list[float] = []
    standing: dict[int, float | None] = {}
    start, size = 0, _FIRST_ROUND
    while start < len(items):
        chunk = items[start : start + size]
        groups = [Group(candidate, chunk) for candidate in (current, *(updates[n].candidate for n in field))]
        known, *measured = await job.measure(groups, purpose="screen")
        before.extend(known.scored)
        for number, evaluation in zip(field, measured, strict=True):
            scores[number].extend(evaluation.scored)
            standing[number] = _mean(before)
        start, size = start + size, size * 2
        field.sort(key=lambda number: _rank(number, scores[number], updates[number].candidate))
        field = field[: max(2, (len(field) + 1) // 2)]
    trials = [Trial(n, _mean(s), len(s), standing.get(n)) for n, s in scores.items()]
    return sorted(trials, key=lambda trial: (trial.number != field[0], -trial.items, -(trial.score or 0.0)))


def _train_items(job: Job, step: int, updates: Sequence[Update], batch: Sequence[Item], most: int) -> list[Item]:
    """Train items to try updates on, the batch's first; none that an update shows as an example."""
    shown = {
        (example.input, example.output)
        for made in updates
        for text in made.candidate.parts.values()
        for example in examples.parse(text).examples
    }
    rng = job.rng("screen", step)
    order = {item.id: item for item in (*rng.shuffled(batch), *rng.shuffled(job.splits.train))}
    return [item for item in order.values() if job.task.example(item) not in shown][:most]


def _mean(scores: Sequence[float]) -> float | None:
    return sum(scores) / len(scores) if scores else None


def _rank(number: int, scores: Sequence[float], candidate: Candidate) -> tuple[float, int, int]:
    """Best mean first; of equals the shorter text, then the one proposed first."""
    return (-(_mean(scores) or 0.0), candidate.length, number)
