"""A whole comparison: a row per task, one over all tasks, the verdict, and p-values adjusted over what was tested.

Two families are declared. The one that decides has one test for each pair of arms: the task's own where there is one task,
else that of the mean difference over tasks, normalised where every task has a reference. The other has every task of
every pair of arms. Both are adjusted by Holm's rule. Margins are held at alpha over the number of comparisons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from sharpen.bench.comparison import differences, joint, rows
from sharpen.bench.comparison.differences import ArmCost, Flips, Setting
from sharpen.bench.comparison.matchups import able
from sharpen.bench.comparison.measure import Measure, check_sizes, looked_over, told
from sharpen.bench.comparison.pairing import BY_SEED, Pairing, paired
from sharpen.bench.comparison.pooling import Pooled, pooled
from sharpen.bench.comparison.references import Given, normalised, references
from sharpen.bench.comparison.rows import Row
from sharpen.bench.evidence.nouns import Arm, Run
from sharpen.core.errors import UsageError
from sharpen.stats.arms import Margin
from sharpen.stats.curves import common, divergence
from sharpen.stats.errors import BadData
from sharpen.stats.exact import RESAMPLES, Test
from sharpen.stats.multiple import holm
from sharpen.stats.normalise import Reference

FEW_PAIRS = 6
BOTH, BETTER, WORSE = SIDES = ("both", "better", "worse")
_UNLIKE = 20.0


class Verdict(StrEnum):
    BETTER = "better"
    WORSE = "worse"
    SAME = "same"
    NOT_WORSE = "not worse"
    OPEN = "can't tell"


@dataclass(frozen=True)
class Wish:
    """How to compare. `over` is auto, seeds or items; `margin` is a difference that would not matter, fixed beforehand, in
    units of what decides: normalised ones where several tasks all have references."""

    measure: Measure
    pairing: Pairing = BY_SEED
    over: str = "auto"
    alpha: float = 0.05
    margin: float | None = None
    normalise: Given | None = None
    side: str = BOTH
    """both, or better or worse, where only that is asked for: p is one-sided then, and intervals are those of both sides at
    twice alpha, which leave 0 out exactly where p is at most alpha."""
    method: str = "auto"
    resamples: int = RESAMPLES
    adjust: str = joint.HOLM

    @property
    def level(self) -> float:
        """The level of the intervals that go with the tests."""
        return 1 - (self.alpha if self.side == BOTH else 2 * self.alpha)

    @property
    def direction(self) -> int:
        """The sign of the effect that is asked for; 0 for both."""
        return {BOTH: 0, BETTER: 1, WORSE: -1}[self.side] * int(self.measure.sign)

    @property
    def testing(self) -> rows.Testing:
        return rows.Testing(self.level, self.margin, self.direction, self.method, self.resamples)

    @property
    def direction_normalised(self) -> int:
        """The same on a scale of references, where more is always better."""
        return {BOTH: 0, BETTER: 1, WORSE: -1}[self.side]


@dataclass(frozen=True)
class Compared:
    """Two arms, and all there is to say about them. `p` and `adjusted` are those of the test that decides."""

    old: str
    new: str
    measure: Measure
    rows: tuple[Row, ...]
    pooled: Pooled | None
    verdict: Verdict
    p: float | None
    adjusted: float | None
    tests: int
    row_tests: int
    costs: tuple[ArmCost, ArmCost]
    flips: tuple[Flips, ...]
    diverged: tuple[tuple[str, float | None], ...]
    settings: tuple[Setting, ...]
    text: str
    warnings: tuple[str, ...]
    exploratory: bool = False
    """Held against a plan, and not what was planned."""
    pooled_normalised: Pooled | None = None
    side: str = BOTH
    adjust: str = joint.HOLM

    @property
    def over_tasks(self) -> Pooled | None:
        """What decides where there are several tasks."""
        return self.pooled_normalised or self.pooled

    @property
    def margin(self) -> Margin | None:
        """What was found of the margin, by the test that decides."""
        if self.over_tasks is not None:
            return self.over_tasks.margin
        result = self.rows[0].result if len(self.rows) == 1 else None
        return None if result is None else result.margin


def compare_all(pairs: Sequence[tuple[Arm, Arm]], wish: Wish, notes: Sequence[str] = ()) -> list[Compared]:
    """Every pair of arms that has something to show, adjusted together. `notes` are remarks on all of them."""
    kept, said = comparable(pairs, wish)
    made = [replace(one, warnings=tuple(dict.fromkeys((*notes, *said, *one.warnings)))) for _, one in kept]
    if wish.adjust == joint.MAX_T:
        made = _together(made, wish)
    tested = [row for one in made for row in one.rows if row.p is not None]
    deciding = [one.p for one in made if one.p is not None]
    if wish.adjust == joint.MAX_T:
        adjusted = iter([row.adjusted or 0.0 for row in tested])
        decided = iter([row.adjusted or 0.0 for row in tested])
    else:
        adjusted = iter(holm([row.p for row in tested if row.p is not None]))
        decided = iter(holm(deciding))
    final = []
    for one in made:
        own = tuple(row if row.p is None else _judged_row(row, next(adjusted), wish) for row in one.rows)
        p = None if one.p is None else next(decided)
        whole = replace(one, rows=own, adjusted=p, tests=len(deciding), row_tests=len(tested))
        found = p is not None and p <= wish.alpha
        final.append(replace(whole, verdict=verdict_of(whole, wish, found=found)))
    beyond = out_of_reach(final, wish)
    return [replace(one, warnings=(*one.warnings, *said)) for one, said in zip(final, beyond, strict=True)]


def _together(made: Sequence[Compared], wish: Wish) -> list[Compared]:
    if any(len(one.rows) != 1 for one in made) or wish.side != BOTH:
        raise UsageError("--adjust max-t takes one task and both sides; leave it out, or compare task by task")
    rows = joint.adjust_together([one.rows[0] for one in made], wish.level, wish.alpha, min(wish.resamples, 9_999))
    return [replace(one, rows=(row,), adjust=joint.MAX_T) for one, row in zip(made, rows, strict=True)]


def _judged_row(row: Row, adjusted: float, wish: Wish) -> Row:
    return replace(row, adjusted=adjusted, verdict=row_verdict(row, wish, found=adjusted <= wish.alpha))


def row_verdict(row: Row, wish: Wish, *, found: bool) -> Verdict:
    """What one task shows, given whether its own test has found a difference."""
    if not found or row.effect == 0.0:
        return Verdict.OPEN
    return Verdict.BETTER if row.effect * wish.measure.sign > 0 else Verdict.WORSE


def comparable(
    pairs: Sequence[tuple[Arm, Arm]], wish: Wish
) -> tuple[list[tuple[tuple[Arm, Arm], Compared]], list[str]]:
    """The pairs that can be compared, with what was found before anything is adjusted, and what must be said of all of them.
    Too few runs of one arm are an error only where nothing else is left to compare."""
    met, notes = able(pairs, wish.measure)
    known, said = known_references(met, wish)
    made, errors = [], []
    for old, new in met:
        try:
            made.append(((old, new), _compare(old, new, wish, known)))
        except _TooFew as error:
            errors.append(error)
            notes.append(f"{new.name} is left out: {error}")
    if not made:
        raise errors[0]
    return made, [*notes, *said]


def known_references(met: Sequence[tuple[Arm, Arm]], wish: Wish) -> tuple[dict[str, Reference], list[str]]:
    """What 0 and 1 stand for on the tasks that are compared, and what must be said of that."""
    tasks = dict.fromkeys(task for old, new in met for task in old.tasks if task in new.tasks)
    arms = list({id(arm): arm for pair in met for arm in pair}.values())
    return references(arms, list(tasks), wish.measure, wish.normalise)


def out_of_reach(found: Sequence[Compared], wish: Wish) -> list[list[str]]:
    """Of each comparison whether the family is so large, or its values so few, that none of its rows can be a finding beside
    what the other rows of the family show, whatever it shows itself."""
    alpha = wish.alpha
    family = [(at, row.result.test) for at, one in enumerate(found) for row in one.rows if row.result is not None]
    said: list[list[str]] = []
    for at, one in enumerate(found):
        own = [place for place, (whose, _) in enumerate(family) if whose == at]
        alone = min((family[place][1].smallest_p for place in own), default=1.0)
        best = min((_at_best([test for _, test in family], place) for place in own), default=0.0)
        said.append([])
        if alone <= alpha < best:
            said[at].append(
                f"{one.new} against {one.old}: adjusted for {len(family)} tests, no row can come below {best:.2g} beside "
                f"what the others show: take more {one.rows[0].over}, or fewer comparisons at once"
            )
    return said


def _at_best(tests: Sequence[Test], place: int) -> float:
    """The adjusted p of one test of a family, if it were as small as its design allows."""
    return holm([test.smallest_p if at == place else test.p for at, test in enumerate(tests)])[place]


def _compare(old: Arm, new: Arm, wish: Wish, known: Mapping[str, Reference]) -> Compared:
    tasks = [task for task in old.tasks if task in new.tasks]
    if not tasks:
        raise UsageError(
            f"{old.name} and {new.name} have no task in common: {', '.join(old.tasks)} against {', '.join(new.tasks)}"
        )
    warnings = [*old.notes, *new.notes]
    for arm, other in ((old, new), (new, old)):
        alone = [task for task in arm.tasks if task not in other.tasks]
        if alone:
            warnings.append(f"only {arm.name} ran {', '.join(alone)}; left out")
    made: list[Row] = []
    used: list[tuple[tuple[Run, ...], tuple[Run, ...]]] = []
    given: list[tuple[int, int]] = []
    lost: list[str] = []
    several = [task for task in tasks if task in known] == tasks and len(tasks) > 1
    for task in tasks:
        try:
            sides = _whole(old, new, task, wish.measure, warnings)
        except _TooFew as error:
            lost.append(str(error))
            continue
        scale = known.get(task)
        margin = wish.margin / abs(scale.factor) if wish.margin is not None and several and scale else wish.margin
        row, runs = _task_row(task, (old.name, new.name), sides[0], sides[1], replace(wish, margin=margin))
        if scale is not None and row.result is not None:
            row = replace(row, normalised=normalised(row.result, scale))
        made.append(row)
        used.append(runs)
        given.append((len(sides[0]), len(sides[1])))
        warnings += [note if len(tasks) == 1 or task in note else f"{task}: {note}" for note in row.notes]
    if not made:
        raise _TooFew(lost[0])
    warnings += [f"{reason}; the task is left out" for reason in lost]
    if all(row.result is None for row in made):
        raise _TooFew(_too_few(made[0], old.name, new.name, given[0]))
    over, scaled = None, None
    if len(made) > 1:
        lower = wish.measure.sign < 0
        over = pooled(made, wish.level, margin=wish.margin, lower=lower, side=wish.direction)
        if several:
            scaled = pooled(made, wish.level, known, margin=wish.margin, side=wish.direction_normalised)
    if over is not None and scaled is None:
        warnings += _ruled_by_one(made)
    decides = scaled or over
    flat = tuple(run for pair in used for run in pair[0]), tuple(run for pair in used for run in pair[1])
    warnings += differences.warnings(old.name, new.name, *flat)
    few = [row for row in made if row.over == rows.SEEDS and row.paired and row.n < FEW_PAIRS]
    if few and not any("can't come below" in warning for warning in warnings):
        warnings.append(f"{min(row.n for row in few)} pairs are few; from {FEW_PAIRS} on p can come below 0.05")
    return Compared(
        old.name, new.name, wish.measure, tuple(made), over, Verdict.OPEN,
        decides.p if decides is not None else made[0].p if len(made) == 1 else None, None, 0, 0,
        (differences.cost(old.name, flat[0]), differences.cost(new.name, flat[1])),
        tuple(found for row, pair in zip(made, used, strict=True) if (found := differences.flips(row.task, *pair))),
        tuple((row.task, _diverged(pair, wish.measure)) for row, pair in zip(made, used, strict=True)),
        differences.settings(*flat), differences.text(old.name, new.name, *flat), tuple(dict.fromkeys(warnings)),
        pooled_normalised=scaled, side=wish.side,
    )  # fmt: skip


def _ruled_by_one(made: Sequence[Row]) -> list[str]:
    """Tasks whose scores are of quite different sizes, so that a mean over them is that of the largest."""
    sizes = {row.task: max(abs(one.value) for one in (row.result.old, row.result.new)) for row in made if row.result}
    large, small = max(sizes, key=lambda task: sizes[task]), min(sizes, key=lambda task: sizes[task])
    if sizes[large] <= _UNLIKE * sizes[small] or sizes[large] <= 1.0:
        return []
    return [
        f"scores on {large} are more than {_UNLIKE:g} times as large as on {small}, so that {large} rules the mean over "
        "tasks; --normalise puts them on one scale"
    ]


class _TooFew(UsageError):
    """Two arms have too few runs to be compared."""


def _whole(old: Arm, new: Arm, task: str, measure: Measure, warnings: list[str]) -> list[tuple[Run, ...]]:
    """The runs of both arms on a task that have a number to give; what is wrong with the others is told."""
    found = looked_over([*old.on(task), *new.on(task)], measure)
    first = len(old.on(task))
    sides = []
    for arm, own in ((old, found[:first]), (new, found[first:])):
        where = f"{arm.name}{' on ' + task if task else ''}"
        side = tuple(run for run, fit, _ in own if fit)
        if not side:
            raise _TooFew(f"no run of {where} can be used: {own[0][0].name} {own[0][2]}")
        check_sizes(side, measure, f"{where}, ")
        warnings += [told(f"{run.name} of {where}", fit, why) for run, fit, why in own if why]
        sides.append(side)
    return sides


def _task_row(
    task: str, names: tuple[str, str], old: tuple[Run, ...], new: tuple[Run, ...], wish: Wish
) -> tuple[Row, tuple[tuple[Run, ...], tuple[Run, ...]]]:
    items, lower, how = rows.has_items((*old, *new), wish.measure), wish.measure.sign < 0, wish.testing
    if wish.over == rows.ITEMS and not items:
        raise UsageError("--over items needs the final score of each item in both arms, which are not known here")
    try:
        if wish.over == rows.ITEMS:
            return rows.over_items(task, old, new, how, lower=lower), (old, new)
        sides = paired(old, new, wish.pairing, names, f" on {task}" if task else "")
        if wish.over == "auto" and items and len(sides.old) == len(sides.new) == 1:
            row = rows.over_items(task, sides.old, sides.new, how, lower=lower)
            return replace(row, notes=(*sides.notes, *row.notes)), (sides.old, sides.new)
        return rows.over_seeds(task, sides, wish.measure, how), (sides.old, sides.new)
    except BadData as error:
        raise UsageError(f"{task + ': ' if task else ''}{error}") from error


def _too_few(row: Row, old: str, new: str, runs: tuple[int, int]) -> str:
    """Why two arms can't be compared, which had so many `runs` before they were paired."""
    where = f" on {row.task}" if row.task else ""
    shared, word, least = "", "run", "in each arm"
    if row.paired and (row.over == rows.ITEMS or runs != (1, 1)):
        shared = f", which {'share one item' if row.over == rows.ITEMS else 'make one pair'},"
        if row.over == rows.ITEMS or min(runs) > 1:
            word, least = ("item", "items") if row.over == rows.ITEMS else ("pair", "pairs")
    return (
        f"{runs[0]} {'run' if runs[0] == 1 else 'runs'} of {old} against {runs[1]} of {new}{where}{shared} differ by "
        f"{row.effect:+.4g}, but one {word} says nothing of what the next would: it takes 2 {least} for an "
        f"interval, and {FEW_PAIRS} {'items' if row.over == rows.ITEMS else 'pairs'} for a verdict"
    )


def verdict_of(one: Compared, wish: Wish, *, found: bool) -> Verdict:
    """What is said of two arms, given whether the test that decides has found a difference."""
    over = one.over_tasks
    effect = over.effect.value if over is not None else one.rows[0].effect
    sign = 1.0 if over is not None and over.normalised else wish.measure.sign
    if found and effect != 0.0:
        return Verdict.BETTER if effect * sign > 0 else Verdict.WORSE
    alpha = wish.alpha / max(1, one.tests)
    if one.margin is not None:
        if one.margin.p_same <= alpha:
            return Verdict.SAME
        if one.margin.p_not_worse <= alpha:
            return Verdict.NOT_WORSE
    return Verdict.OPEN


def _diverged(pair: tuple[tuple[Run, ...], tuple[Run, ...]], measure: Measure) -> float | None:
    found = [[run.curves[name] for run in runs if name in run.curves] for runs in pair for name in [_curve(measure)]]
    if min(map(len, found)) < 2:
        return None
    try:
        low, high = common([*found[0], *found[1]])
        return divergence(found[0], found[1]) if low < high else None  # one value of each run is no curve
    except BadData:
        return None


def _curve(measure: Measure) -> str:
    return "val" if measure.summary == "test" else measure.metric
