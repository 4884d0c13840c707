"""One task's row: two arms over seeds, or over items where each has but one run, with the effect, its interval and test.

Over items the question is another one: it says whether these two candidates differ on tasks like these, and nothing about
what another training would come to. Scores in 0..1 then take the interval that behaves near its ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

from sharpen.bench.comparison.measure import Measure, numbers
from sharpen.bench.comparison.pairing import Paired
from sharpen.bench.comparison.references import Normalised
from sharpen.bench.comparison.times import Race, TimesTo, race
from sharpen.bench.evidence.nouns import TEST, Run
from sharpen.core.errors import UsageError
from sharpen.stats import arms, power
from sharpen.stats.exact import RESAMPLES, Test, pairs_needed
from sharpen.stats.intervals import bounded_mean
from sharpen.stats.means import Estimate

SEEDS, ITEMS = "seeds", "items"
_LEAST_IN_EACH = 4
MOST_MORE = 10_000
_PER_CENT = (50.0, 200.0)
_SAME = 1e-6


@dataclass(frozen=True, slots=True)
class Testing:
    """How values are tested. `side` is the sign of the effect that is asked for, 0 for both; p is one-sided where it is not
    0. `margin` is a difference that would not matter."""

    level: float = 0.95
    margin: float | None = None
    side: int = 0
    method: str = "auto"
    resamples: int = RESAMPLES


@dataclass(frozen=True, slots=True)
class Value:
    """What was compared: a pair, or a run of one arm. `group` names what it shares with others: the seed of a run, the group
    of an item; None where it stands alone."""

    name: str
    old: float | None
    new: float | None
    group: str | None = None


@dataclass(frozen=True)
class Row:
    """`effect` is new minus old. `result` has the rest of the statistics; it is None where one value stands against one.
    `more` is how many more seeds or items would find an effect of the size seen, None where that is unknown or too many."""

    task: str
    over: str
    paired: bool
    n_old: int
    n_new: int
    effect: float
    values: tuple[Value, ...]
    result: arms.Comparison | None
    adjusted: float | None = None
    more: int | None = None
    notes: tuple[str, ...] = ()
    exploratory: bool = False
    """Held against a plan, and not what was planned."""
    normalised: Normalised | None = None
    verdict: str = ""
    """What this row alone shows, by its own adjusted p: better, worse or can't tell; empty where nothing was tested."""
    times: TimesTo | None = None
    """How the arms got to a threshold, where steps are what is compared."""

    @property
    def n(self) -> int:
        return min(self.n_old, self.n_new)

    @property
    def p(self) -> float | None:
        return None if self.result is None else self.result.test.p


def over_seeds(task: str, sides: Paired, measure: Measure, how: Testing) -> Row:
    """The row of runs side by side."""
    watched = race(sides.old, sides.new, measure, how.level) if measure.summary == "steps_to" else None
    found, notes = numbers([*sides.old, *sides.new], measure) if watched is None else _steps(watched, measure)
    old, new = found[: len(sides.old)], found[len(sides.old) :]
    notes = [*notes, *_same_unit(old, new, measure)]
    names = [_name(run) for run in sides.old]
    if sides.together:
        values = tuple(
            Value(name, a, b, _seed(run)) for name, a, b, run in zip(names, old, new, sides.old, strict=True)
        )
    else:
        values = (
            *(Value(name, a, None, _seed(run)) for name, a, run in zip(names, old, sides.old, strict=True)),
            *(Value(_name(run), None, b, _seed(run)) for run, b in zip(sides.new, new, strict=True)),
        )
    row = _row(task, SEEDS, sides.together, old, new, values, how, lower=measure.sign < 0)
    if watched is not None:
        row = _watched(row, watched, how.side)
    if row.result is not None and measure.summary == TEST and all(0.0 <= x <= 1.0 for x in found):
        row = replace(row, result=_bounded(row.result, old, new, how.level))
    return replace(row, notes=(*sides.notes, *notes, *row.notes))


def _steps(found: Race, measure: Measure) -> tuple[list[float], list[str]]:
    values = [*found.values[0], *found.values[1]]
    if found.told.never == 0:
        return values, []
    return values, [
        f"{found.told.never} of {len(values)} runs never came to {measure.threshold:g}: means are restricted to steps up to "
        f"{found.told.until:g}, and p is that of the log-rank test"
    ]


def _watched(row: Row, found: Race, side: int) -> Row:
    """A row of steps with how the arms got there; tested by log-rank where some never did."""
    row = replace(row, times=found.told)
    if row.result is None or found.told.never == 0:
        return row
    effect = replace(row.result.effect, method=f"restricted means, {row.result.effect.method}")
    notes = row.notes
    if found.crosses(effect.value):
        notes = (
            *notes,
            "the arm that is ahead by the log-rank test has the larger restricted mean: their curves cross",
        )
    test = _sided(found.test(paired=row.paired), effect.value, side)
    return replace(row, result=replace(row.result, effect=effect, test=test), notes=notes)


def over_items(task: str, old: Sequence[Run], new: Sequence[Run], how: Testing, *, lower: bool = False) -> Row:
    """The row of items both arms were scored on; each counts once, with its mean over runs."""
    first, second = means_by_item(old), means_by_item(new)
    shared = [item for item in first if item in second]
    if not shared:
        raise UsageError(f"the arms have no item in common on {task or 'this task'}: they were scored on other data")
    notes = []
    if len(shared) < max(len(first), len(second)):
        notes.append(f"{len(shared)} items are shared, of {len(first)} and {len(second)}; the rest is left out")
    a, b = [first[item] for item in shared], [second[item] for item in shared]
    known = {item: group for run in (*old, *new) for item, group in run.groups.items()}
    values = tuple(Value(item, x, y, known.get(item)) for item, x, y in zip(shared, a, b, strict=True))
    if len({value.group for value in values}) == 1 and values[0].group is not None and len(values) > 1:
        notes.append(f"all items on {task or 'this task'} are of one group: what is shown holds for that group alone")
    if groups_of(values) is not None:
        notes.append(f"{len(shared)} items are counted by their {len({value.group for value in values})} groups")
    bounded = all(0.0 <= x <= 1.0 for x in (*a, *b))
    row = _row(task, ITEMS, True, a, b, values, how, lower=lower, span=1.0 if bounded else math.inf)
    if row.result is not None and bounded:
        row = replace(row, result=_bounded(row.result, a, b, how.level))
    return replace(row, notes=(*notes, *row.notes))


def _bounded(result: arms.Comparison, old: Sequence[float], new: Sequence[float], level: float) -> arms.Comparison:
    """With intervals of the arms' own means that stay within 0..1."""
    return replace(result, old=share_mean(old, level), new=share_mean(new, level))


def share_mean(values: Sequence[float], level: float) -> Estimate:
    """The mean of scores in 0..1 with its interval, the same wherever it is shown."""
    low, high, method = bounded_mean(values, level)
    return Estimate(fmean(values), low, high, len(values), method, level)


def means_by_item(runs: Sequence[Run]) -> dict[str, float]:
    """Each item's mean over the runs that scored it."""
    found: dict[str, list[float]] = {}
    for run in runs:
        for item, score in run.items.items():
            found.setdefault(item, []).append(score)
    return {item: fmean(scores) for item, scores in found.items()}


def _row(
    task: str, over: str, together: bool, old: list[float], new: list[float], values: tuple[Value, ...], how: Testing,
    *, lower: bool = False, span: float = math.inf,
) -> Row:  # fmt: skip
    effect = fmean(new) - fmean(old)
    if min(len(old), len(new)) < 2:
        return Row(task, over, together, len(old), len(new), effect, values, None)
    level, margin, method = how.level, how.margin, how.method
    if together:
        groups = groups_of(values)
        result = arms.paired(new, old, level=level, margin=margin, lower=lower, method=method, span=span, groups=groups)
    else:
        result = arms.unpaired(
            new, old, level=level, margin=margin, lower=lower, method=method, resamples=how.resamples
        )
    result = replace(result, test=_sided(result.test, effect, how.side))
    notes = list(result.warnings)
    differences = [x - y for x, y in zip(new, old, strict=False)]
    if together and over == SEEDS and max(differences) - min(differences) <= _SAME * max(map(abs, (*old, *new))):
        notes.append("every pair differs by the same amount, so the interval has no width: a fixed outcome, or chance")
    return Row(
        task, over, together, len(old), len(new), result.effect.value, values, result,
        more=_more(effect, old, new, together), notes=tuple(notes),
    )  # fmt: skip


def _sided(test: Test, effect: float, side: int) -> Test:
    """A two-sided test as one of the side that is asked for."""
    if side == 0:
        return test
    return replace(test, p=arms.one_sided(test.p, effect, side), smallest_p=test.smallest_p / 2)


def groups_of(values: Sequence[Value]) -> list[str] | None:
    """The group of each value where some share one, else None. Values without a group stand alone; where all are of one
    group, as repetitions of a single seed are, what is shown holds for that group, which others have to say."""
    names = [value.group or f"alone: {place}" for place, value in enumerate(values)]
    return names if 1 < len(set(names)) < len(names) else None


def _more(effect: float, old: Sequence[float], new: Sequence[float], together: bool) -> int | None:
    """How many more it would take to find an effect of the size seen, if that is the true one."""
    if together:
        spread, least = stdev([b - a for a, b in zip(old, new, strict=True)]), pairs_needed()
    else:
        spread, least = math.sqrt((stdev(old) ** 2 + stdev(new) ** 2) / 2), _LEAST_IN_EACH
    if effect == 0.0:
        return None
    needed = power.runs_needed(abs(effect), spread, paired=together)
    more = None if needed is None else max(needed, least) - min(len(old), len(new))
    return None if more is None or more > MOST_MORE else max(0, more)


def _same_unit(old: Sequence[float], new: Sequence[float], measure: Measure) -> list[str]:
    """A remark where one arm is a share and the other looks like per cent; it may be a hundred times as good as well."""
    if measure.summary in ("slope", "steps_to"):
        return []
    for small, large in ((old, new), (new, old)):
        if max(small) <= 1.0 and min(small) >= 0.0 and min(large) > 1.0 and max(large) <= 100.0 and fmean(small) > 0.0:
            ratio = fmean(large) / fmean(small)
            if _PER_CENT[0] <= ratio <= _PER_CENT[1]:
                return [
                    f"{measure.metric} lies in {min(small):.3g}..{max(small):.3g} in one arm and in "
                    f"{min(large):.3g}..{max(large):.3g} in the other: if one is a share and the other per cent, give both "
                    "in one unit"
                ]
    return []


def _name(run: Run) -> str:
    return run.draw_words


def _seed(run: Run) -> str | None:
    return None if run.seed is None else f"seed {run.seed}"


def has_items(runs: Sequence[Run], measure: Measure) -> bool:
    return measure.summary == TEST and measure.metric == TEST and bool(runs) and all(run.items for run in runs)
