"""Stage 4, select: how many changes a step makes, and which.

The edit budget comes from the schedule, from the optimizer (autonomous), or from nobody (none: no limit). A patch with more
changes is clipped to the best ones, as the optimizer ranks them where there is one, else by their support. Where several
alternatives are left, they then compete on train items (`screen.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sharpen.core.digest import Json
from sharpen.trainers.reflact.answers import BudgetAnswer, Ranked
from sharpen.trainers.reflact.desk import Desk
from sharpen.trainers.reflact.events import BudgetChosen
from sharpen.trainers.reflact.patches import Change, Patch


async def choose_budget(desk: Desk, step: int, pool: Patch, scheduled: int, shown: dict[str, Json]) -> int:
    """The optimizer's decision on how many changes of the pool to make; the scheduled number where it can't be used."""
    data = {"stage": "budget", **shown, "edits": _numbered(pool.edits)}
    answer = await desk.ask(["budget"], data, BudgetAnswer, ("budget", step))
    chosen: BudgetAnswer = BudgetAnswer(budget=scheduled) if answer.error is not None else answer.value
    budget = min(chosen.budget, len(pool.edits))
    told = (chosen.reasons, chosen.confidence, chosen.risks)
    desk.job.emit(BudgetChosen(step, budget, len(pool.edits), answer.error is None, *told))
    return budget


async def clip(desk: Desk, step: int, patch: Patch, *, budget: int | None, shown: dict[str, Json]) -> Patch:
    """The patch with at most `budget` changes, the best ones."""
    if budget is None or len(patch.edits) <= budget:
        return patch
    order = list(range(len(patch.edits)))
    order.sort(key=lambda number: -patch.edits[number].support)
    if desk.open and patch.source == "analysts" and budget > 0:
        data = {"stage": "rank", **shown, "budget": budget, "edits": _numbered(patch.edits)}
        answer = await desk.ask(["rank"], data, Ranked, ("rank", step))
        if answer.error is None:
            ranked: Ranked = answer.value
            valid = [number for number in dict.fromkeys(ranked.order) if 0 <= number < len(patch.edits)]
            order = valid or order
    kept = sorted(order[:budget])
    return replace(patch, edits=tuple(patch.edits[number] for number in kept))


def _numbered(changes: Sequence[Change]) -> list[Json]:
    return [{"number": number, **change.record()} for number, change in enumerate(changes)]
