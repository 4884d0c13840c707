"""Plans for people: what was fixed, what was done against it, and what changed in the code in the meantime."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from rich.text import Text

from sharpen.bench.changes import Changes
from sharpen.bench.comparison.planned import Held
from sharpen.bench.plan import Lock, Plan, when
from sharpen.core.digest import Json
from sharpen.report import text
from sharpen.report.closing import Block, heading, table
from sharpen.stats.exact import pairs_needed

_SHORT = 12


def fixed(plan: Plan, lock: Lock, fresh: bool) -> Iterator[Block]:
    """A plan that has just been locked, or was before."""
    word = "Locked" if fresh else "Locked before,"
    revision = "" if lock.revision is None else f", at git commit {lock.revision[:_SHORT]}"
    yield Text(f"{word} {when(lock.at)}, digest {lock.digest[:_SHORT]}{revision}.")
    tasks = ", ".join(task for task in plan.tasks if task) or "a single one without a name"
    family = "all" if plan.listed is None else ", ".join(plan.listed)
    yield Text(
        f"{', '.join(plan.arms)} against {plan.baseline}; tasks: {tasks}; {plan.metric}, summary {plan.summary}; "
        f"family: {family} ({text.plural(plan.tests, 'test')})."
    )
    made = table("look", "seeds", "p must be at most", "of alpha spent", left=1)
    for number, look in enumerate(plan.bars(plan.alpha / plan.tests), start=1):
        made.add_row(str(number), str(look.runs), f"{look.level:.3g}", f"{look.spent * plan.tests:.3g}")
    yield made
    if plan.tests > 1:
        yield Text("For the smallest p of the family; the others have higher bars, by Holm's rule.", style="dim")
    yield from (Text(warning, style="yellow") for warning in warnings(plan))
    yield Text("Whether results exist already can't be known here; `sharpen compare --plan` checks when runs began.")


def warnings(plan: Plan) -> list[str]:
    """Looks at which nothing can be found, whatever the runs show: a seed counts once, on one task or on several."""
    if plan.pairs == "none" or plan.over == "items":
        return []
    exact = plan.tests if plan.one_task or plan.listed is None else max(1, _exact_tests(plan))
    where = "" if plan.one_task or plan.listed is None else " on a single task"
    found = []
    for look in plan.bars(plan.alpha / exact):  # at best the verdicts over all tasks have passed before
        least = pairs_needed(look.level)
        if look.runs < least:
            found.append(
                f"at {look.runs} seeds nothing can be found{where}: so few pairs can't come to p = {look.level:.3g}; that "
                f"takes {least}"
            )
    return found


def _exact_tests(plan: Plan) -> int:
    """How many tests of the family that decides are of one task, by turning the signs of its pairs."""
    if plan.one_task or plan.listed is None:
        return plan.tests if plan.one_task else 0
    return sum(plan.covers(arm, task) for arm in plan.arms for task in plan.tasks)


def held(found: Held) -> Iterator[Block]:
    """What was done against what was planned."""
    yield heading("Plan")
    if found.locked is not None:
        yield Text(f"Locked {when(found.locked.at)}, digest {found.locked.digest[:_SHORT]}.")
    if found.look is not None:
        yield Text(
            f"Look {found.number + 1} of {found.looks}, at {text.plural(found.look.runs, 'seed')}: a single test passes at "
            f"p ≤ {found.look.level:.3g}."
        )
    if found.deviations:
        yield Text("Not as planned:")
    else:
        yield Text(f"{'As far as can be told, w' if found.unchecked else 'W'}hat was done is what was planned.")
    yield from (Text(f"  {deviation}", style="yellow") for deviation in found.deviations)
    yield from (Text(f"  Can't be checked: {note}", style="yellow") for note in found.unchecked)
    if any(one.exploratory or any(row.exploratory for row in one.rows) for one in found.compared):
        yield Text("What is exploratory was not planned: it may suggest a new plan, and proves nothing.")


def held_as_json(found: Held) -> dict[str, Json]:
    return {
        "as_planned": found.as_planned, "deviations": list(found.deviations), "unchecked": list(found.unchecked),
        "look": None if found.look is None else {"number": found.number + 1, **dataclasses.asdict(found.look)},
        "looks": found.looks, "digest": None if found.locked is None else found.locked.digest,
        "locked_at": None if found.locked is None else found.locked.at,
    }  # fmt: skip


def changes(found: Sequence[Changes]) -> Iterator[Block]:
    """What changed in the trainers' code."""
    for one in found:
        yield heading(f"Changes in {one.trainer} ({one.code})")
        if not one.any:
            yield Text("none")
        yield from (Text(f"  {commit}") for commit in one.commits)
        yield from (Text(line) for line in one.stat)
        yield from (Text(f" {name} | not in git yet") for name in one.untracked)
        if one.elsewhere:
            yield Text(f"{text.plural(one.elsewhere, 'other file')} of the same package changed.", style="dim")


def changes_as_json(found: Sequence[Changes]) -> list[Json]:
    return [dataclasses.asdict(one) for one in found]
