"""Stage 3, aggregate: many patches become few alternatives.

What analysts propose is meant to be combined: their patches are merged level by level, failures and successes apart and
then together, by the optimizer where it answers, else by uniting edits that do the same. What proposers without a model
propose are rival ideas: each stays an alternative of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from sharpen.engine.executor import together
from sharpen.engine.job import Job
from sharpen.trainers.reflact.answers import Merged
from sharpen.trainers.reflact.patches import Patch, unite
from sharpen.trainers.reflact.prompts import question


async def merge(job: Job, step: int, patches: Sequence[Patch], *, skill: str, size: int, label: str) -> Patch | None:
    """One patch out of many: chunks of `size` are merged side by side, then the results, until one is left."""
    level, current = 0, [patch for patch in patches if patch.edits]
    while len(current) > 1:
        chunks = [current[start : start + size] for start in range(0, len(current), size)]
        current = list(
            await together(
                *(_merge_chunk(job, chunk, skill, ("merge", step, label, level, n)) for n, chunk in enumerate(chunks))
            )
        )
        level += 1
    return current[0] if current else None


async def _merge_chunk(job: Job, chunk: Sequence[Patch], skill: str, scope: tuple[str | int, ...]) -> Patch:
    if len(chunk) == 1:
        return chunk[0]
    data = {"stage": "merge", "skill": skill, "patches": [patch.record() for patch in chunk]}
    answer = await job.ask("optimizer", question("merge", data), schema=Merged, scope=scope)
    total = sum(patch.support for patch in chunk)
    if answer.error is not None:
        edits = unite([edit for patch in chunk for edit in patch.edits])
        return Patch(edits, chunk[0].source, "united without the optimizer", total)
    merged: Merged = answer.value
    edits = unite([edit.edit(chunk[0].source, most=total) for edit in merged.edits])
    return Patch(edits, chunk[0].source, merged.summary, total)


def alternatives(merged: Patch | None, rivals: Sequence[Patch], *, most: int, budget: int) -> list[Patch]:
    """The merged patch first, then the rivals, then pairs of rivals from different sources that fit the edit budget
    together; without repeats and up to `most`, of which pairs get at least a quarter where there are any."""
    pairs = _pairs(rivals, budget)
    singles = ([merged] if merged else []) + list(rivals)
    room = most - min(len(pairs), most // 4)
    found: dict[tuple[str, ...], Patch] = {}
    for patch in (*singles[:room], *pairs, *singles[room:]):
        if patch.edits:
            found.setdefault(patch.key, patch)
    return list(found.values())[:most]


def _pairs(rivals: Sequence[Patch], budget: int) -> list[Patch]:
    """The first idea of each source with the first of each other, the second with the second, and so on."""
    by_source: dict[str, list[Patch]] = {}
    for patch in rivals:
        by_source.setdefault(patch.source, []).append(patch)
    found = []
    for one, other in combinations(by_source.values(), 2):
        for first, second in zip(one, other, strict=False):
            edits = unite([*first.edits, *second.edits])
            if len(edits) <= budget:
                source, reason = f"{first.source}+{second.source}", f"{first.reason}; {second.reason}"
                found.append(Patch(edits, source, reason, max(first.support, second.support)))
    return found
