"""Stage 4, select: clip a patch to the edit budget.

The edits are ranked by the optimizer where there is one, else by their support. Where several alternatives are left, they
then compete on train items (`screen.py`).
"""

from __future__ import annotations

from dataclasses import replace

from sharpen.engine.job import Job
from sharpen.trainers.reflact.answers import Ranked
from sharpen.trainers.reflact.patches import Patch
from sharpen.trainers.reflact.prompts import question


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
