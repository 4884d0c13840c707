"""Stage 3, aggregate: many patches become few alternatives.

What analysts propose is meant to be combined: their patches are merged level by level, failures and successes apart and
then together, by the optimizer where it answers, else by uniting edits that do the same. What proposers without a model
propose are rival ideas: each stays an alternative of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TypeAlias

from sharpen.core.digest import Json
from sharpen.engine.executor import together
from sharpen.trainers.reflact.answers import Changes
from sharpen.trainers.reflact.desk import Desk
from sharpen.trainers.reflact.modes import Mode
from sharpen.trainers.reflact.params import ProposalParams
from sharpen.trainers.reflact.patches import Patch, unite
from sharpen.trainers.reflact.reflect import Reflections

FIRST_STEP_MORE = 2
"""Times as many alternatives at the first step: all that comes later is built on its winner."""
_RIVALS_OF_ANALYSTS = 2
"""Where analysts have read the failures, trying more than this many ideas of others costs more than they bring."""

Shown: TypeAlias = dict[str, Json]
Scope: TypeAlias = tuple[str | int, ...]


async def merge(
    desk: Desk, mode: Mode, step: int, patches: Sequence[Patch], data: Shown, *, size: int, label: str
) -> Patch | None:
    """One patch out of many: chunks of `size` are merged side by side, then the results, until one is left."""
    level, current = 0, [patch for patch in patches if patch.edits]
    while len(current) > 1:
        chunks = [current[start : start + size] for start in range(0, len(current), size)]
        scopes: list[Scope] = [("merge", step, label, level, n) for n in range(len(chunks))]
        current = list(
            await together(*(_merge_chunk(desk, mode, c, data, scope) for c, scope in zip(chunks, scopes, strict=True)))
        )
        level += 1
    return current[0] if current else None


async def _merge_chunk(desk: Desk, mode: Mode, chunk: Sequence[Patch], data: Shown, scope: Scope) -> Patch:
    if len(chunk) == 1:
        return chunk[0]
    asked = {"stage": "merge", "mode": mode.name, **data, "patches": [patch.record() for patch in chunk]}
    answer = await desk.ask(["merge", mode.how_to_answer], asked, mode.merge, scope)
    total = sum(patch.support for patch in chunk)
    if answer.error is not None:
        edits = unite([edit for patch in chunk for edit in patch.edits])
        return Patch(edits, chunk[0].source, "united without the optimizer", total)
    merged: Changes = answer.value
    return Patch(unite(merged.changes(chunk[0].source, total)), chunk[0].source, merged.summary, total)


async def merge_all(
    desk: Desk, mode: Mode, step: int, ideas: Reflections, data: Shown, params: ProposalParams
) -> Patch | None:
    """What analysts proposed as one patch: failures and successes apart, then together."""
    size = params.merge_batch_size
    kinds = ("failures", "successes")
    found = [await merge(desk, mode, step, ideas.patches(kind), data, size=size, label=kind) for kind in kinds]
    both = [patch for patch in found if patch is not None]
    return await merge(desk, mode, step, both, data, size=size, label="both")


def rivals_of(firsts: Sequence[Patch], rivals: Sequence[Patch], step: int) -> list[Patch]:
    """The rival ideas that are tried: all of them, or where analysts came to something a few, others at each step."""
    if not firsts or not rivals:
        return list(rivals)
    start = (step - 1) * _RIVALS_OF_ANALYSTS % len(rivals)
    return [*rivals[start:], *rivals[:start]][:_RIVALS_OF_ANALYSTS]


def alternatives(firsts: Sequence[Patch], rivals: Sequence[Patch], *, most: int, budget: int | None) -> list[Patch]:
    """What analysts came to first, then the rivals, then pairs of rivals from different sources that fit the edit budget
    together; without repeats and up to `most`, of which pairs get at least a quarter where there are any."""
    pairs = _pairs(rivals, budget)
    singles = [*firsts, *rivals]
    room = most - min(len(pairs), most // 4)
    found: dict[tuple[str, ...], Patch] = {}
    for patch in (*singles[:room], *pairs, *singles[room:]):
        if patch.edits:
            found.setdefault(patch.key, patch)
    return list(found.values())[:most]


def _pairs(rivals: Sequence[Patch], budget: int | None) -> list[Patch]:
    """The first idea of each source with the first of each other, the second with the second, and so on."""
    by_source: dict[str, list[Patch]] = {}
    for patch in rivals:
        by_source.setdefault(patch.source, []).append(patch)
    found = []
    for one, other in combinations(by_source.values(), 2):
        for first, second in zip(one, other, strict=False):
            edits = unite([*first.edits, *second.edits])
            if budget is None or len(edits) <= budget:
                source, reason = f"{first.source}+{second.source}", f"{first.reason}; {second.reason}"
                found.append(Patch(edits, source, reason, max(first.support, second.support)))
    return found
