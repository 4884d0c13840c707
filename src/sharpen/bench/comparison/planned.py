"""What was done, held against what was planned: every deviation by name, and what is left of the promise.

Rows and verdicts outside of the planned family are exploratory, and keep what a comparison without a plan says of them. So
is everything where the plan was not locked, has changed, came after the runs, or where nobody planned to look now. The
others are judged as planned: Holm's rule over the family, and each of its steps at the bar of this look, for the error that
is left to that step; intervals are those of the look.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sharpen.bench.comparison.assembly import Compared, Wish, out_of_reach, row_verdict, verdict_of
from sharpen.bench.comparison.rows import ITEMS, SEEDS, Row
from sharpen.bench.evidence.nouns import Arm, Run
from sharpen.bench.plan import Lock, Plan, differing, when
from sharpen.stats.looks import Look
from sharpen.stats.multiple import holm

Test = tuple[str, str | None]
"""An arm, and a task; None for the verdict over all of them."""


@dataclass(frozen=True)
class Held:
    """The outcome. `look` is the one that was planned for now, None where none was. `unchecked` is what can't be known."""

    compared: tuple[Compared, ...]
    look: Look | None
    looks: int
    number: int
    deviations: tuple[str, ...]
    unchecked: tuple[str, ...]
    locked: Lock | None

    @property
    def as_planned(self) -> bool:
        return not self.deviations


def apart(plan: Plan, met: Sequence[tuple[Arm, Arm]]) -> list[tuple[Arm, Arm]]:
    """The pairs of arms with planned tasks and others apart, so that no verdict mixes them."""
    made = []
    for pair in met:
        for inside in (True, False):
            old, new = (
                replace(arm, runs=tuple(run for run in arm.runs if (run.task in plan.tasks) == inside)) for arm in pair
            )
            if set(old.tasks) & set(new.tasks):
                made.append((old, new))
    return made or list(met)


def seeds_of(plan: Plan, found: Sequence[Compared], met: Sequence[tuple[Arm, Arm]]) -> dict[Test, int]:
    """How many seeds stand behind each planned row."""
    made: dict[Test, int] = {}
    for one, (old, new) in zip(found, met, strict=True):
        for row in one.rows:
            if new.name in plan.arms and row.task in plan.tasks:
                many = min(len(old.on(row.task)), len(new.on(row.task)))
                made[new.name, row.task] = many if row.over == ITEMS else row.n
    return made


def look_of(plan: Plan, seeds: Mapping[Test, int]) -> Look | None:
    """The planned look that this is."""
    now = max(seeds.values(), default=0)
    return next((look for look in plan.bars(plan.alpha) if look.runs == now), None)


def hold(
    plan: Plan, lock: Lock | None, found: Sequence[Compared], met: Sequence[tuple[Arm, Arm]], wish: Wish,
    taken: Sequence[int] = (),
) -> Held:  # fmt: skip
    """Hold a comparison against its plan. `taken` are the numbers of seeds at which somebody looked before."""
    seeds = seeds_of(plan, found, met)
    look = look_of(plan, seeds)
    void = [*_of_lock(plan, lock, met), *_of_look(plan, look, seeds, found)]
    notes, unchecked = _of_contents(plan, found, seeds, look), _unchecked(met)
    notes += [
        f"somebody looked at {n} seeds before, which was not planned" for n in taken if n not in plan.planned_looks
    ]
    number = 0 if look is None else plan.planned_looks.index(look.runs)
    if void or look is None:
        marked = [_explored(one, lambda row: True, whole=True) for one in found]
    else:
        others = out_of_reach(
            found, wish
        )  # they speak of all that was found as one family, which is not the planned one
        own = [
            replace(one, warnings=tuple(said for said in one.warnings if said not in stale))
            for one, stale in zip(found, others, strict=True)
        ]
        marked = _judged(plan, own, wish, number, {test for test, n in seeds.items() if n == look.runs})
    return Held(tuple(marked), look, len(plan.planned_looks), number, (*void, *notes), tuple(unchecked), lock)


def _of_lock(plan: Plan, lock: Lock | None, met: Sequence[tuple[Arm, Arm]]) -> list[str]:
    if lock is None:
        return ["the plan was never locked: nothing says that it is older than the results (`sharpen plan` locks it)"]
    found = []
    if lock.digest != plan.digest:
        found.append(f"the plan has been changed since it was locked: {', '.join(differing(plan, lock))}")
    runs = _runs(met)
    early = [run.name for run in runs if run.began is not None and run.began < lock.at]
    if early:
        some = ", ".join(early[:3]) + (", ..." if len(early) > 3 else "")
        found.append(f"{len(early)} of {len(runs)} runs began before the plan was locked ({when(lock.at)}): {some}")
    return found


def _of_look(plan: Plan, look: Look | None, seeds: Mapping[Test, int], found: Sequence[Compared]) -> list[str]:
    notes = []
    if not seeds:
        notes.append("nothing that was planned is here")
    elif look is None:
        wanted = ", ".join(map(str, plan.planned_looks))
        notes.append(f"a look at {max(seeds.values())} seeds was not planned; planned: {wanted}")
    wanted_over = ITEMS if plan.over == ITEMS else SEEDS
    if any(row.over != wanted_over for one in found for row in one.rows):
        notes.append(f"compared over {ITEMS if wanted_over == SEEDS else SEEDS}, and not over {wanted_over}")
    return notes


def _of_contents(plan: Plan, found: Sequence[Compared], seeds: Mapping[Test, int], look: Look | None) -> list[str]:
    arms = [one.new for one in found]
    tasks = list(dict.fromkeys(row.task for one in found for row in one.rows))
    notes = [f"the arm {arm} was planned and is not here" for arm in plan.arms if arm not in arms]
    notes += [f"the arm {arm} was not planned" for arm in arms if arm not in plan.arms]
    notes += [f"the task {task} was planned and is not here" for task in plan.tasks if task not in tasks]
    notes += [f"the task {task} was not planned" for task in tasks if task not in plan.tasks]
    if look is not None:
        notes += [
            f"{arm}{f' on {task}' if task else ''} has {n} seeds, and not {look.runs}"
            for (arm, task), n in seeds.items()
            if n != look.runs
        ]
    return notes


def _unchecked(met: Sequence[tuple[Arm, Arm]]) -> list[str]:
    runs = _runs(met)
    unknown = sum(run.began is None for run in runs)
    if not unknown:
        return []
    return [f"when {unknown} of {len(runs)} runs began is not known, so not whether the plan is older"]


def _runs(met: Sequence[tuple[Arm, Arm]]) -> list[Run]:
    """Every run once. The rows of a table have the names of their seeds, which are the same in all arms and tasks."""
    return list({id(run): run for pair in met for arm in pair for run in arm.runs}.values())


def _explored(one: Compared, explored: Callable[[Row], bool], *, whole: bool) -> Compared:
    rows = tuple(replace(row, exploratory=True) if explored(row) else row for row in one.rows)
    return replace(one, rows=rows, exploratory=whole)


def _judged(plan: Plan, found: Sequence[Compared], wish: Wish, number: int, good: set[Test]) -> list[Compared]:
    """The comparisons judged by the plan at its look `number`. `good` are the planned rows with as many seeds as planned."""
    verdicts: dict[Test, float] = {}
    single: dict[Test, float] = {}
    for one in found:
        own = [row for row in one.rows if (one.new, row.task) in good]
        for row in own:
            if row.p is not None and plan.covers(one.new, row.task):
                single[one.new, row.task] = row.p
        if _is_whole(plan, one, good) and one.p is not None and plan.decides(one.new):
            verdicts[one.new, None] = one.p
    if plan.listed is None or plan.one_task:
        passed = {**_steps(plan, verdicts, plan.tests, number), **_steps(plan, single, plan.row_tests, number)}
    else:
        passed = _steps(plan, {**verdicts, **single}, plan.tests, number)
    made = []
    for one in found:
        rows = tuple(
            replace(
                row,
                adjusted=passed[one.new, row.task][0],
                verdict=row_verdict(row, wish, found=passed[one.new, row.task][1]),
            )
            if (one.new, row.task) in passed
            else replace(row, exploratory=True)
            for row in one.rows
        )
        if (one.new, None) not in passed or not _is_whole(plan, one, good):
            made.append(replace(one, rows=rows, exploratory=True))
            continue
        adjusted, found_it = passed[one.new, None]
        judged = replace(one, rows=rows, adjusted=adjusted, tests=plan.tests, row_tests=plan.row_tests)
        made.append(replace(judged, verdict=verdict_of(judged, wish, found=found_it)))
    return made


def _is_whole(plan: Plan, one: Compared, good: set[Test]) -> bool:
    """Whether a comparison rests on the planned tasks, all of them, and on nothing else."""
    return len(one.rows) == len(plan.tasks) and all((one.new, row.task) in good for row in one.rows)


def _steps(plan: Plan, tests: Mapping[Test, float], size: int, number: int) -> dict[Test, tuple[float, bool]]:
    """Of each test its p adjusted by Holm's rule, and whether it passes: the smallest p is held against the bar of this look
    for alpha over the size of the family, the next against that for alpha over one less, until one fails. A planned test
    that is not here counts as one that found nothing."""
    rising = sorted(tests, key=lambda test: tests[test])
    adjusted = holm([*(tests[test] for test in rising), *[1.0] * (size - len(rising))])
    made, good = {}, True
    for place, test in enumerate(rising):
        good = good and plan.bars(plan.alpha / (size - place))[number].stops(tests[test])
        made[test] = adjusted[place], good
    return made
