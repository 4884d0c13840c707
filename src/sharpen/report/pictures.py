"""The pictures of `sharpen compare` and `sharpen variance`, made of the same parts as those of a run's page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from sharpen.bench.comparison.assembly import Compared
from sharpen.bench.comparison.measure import Measure
from sharpen.bench.comparison.spread import Spread
from sharpen.bench.evidence.nouns import TEST, Arm
from sharpen.report.page.curves import Banded, curves
from sharpen.report.page.dots import Group, Pair, dots
from sharpen.report.page.marks import Picture
from sharpen.report.page.means import banded, within
from sharpen.report.page.panels import grid, titled
from sharpen.report.page.plots import effects, over_axes, share_of
from sharpen.stats.curves import Curve
from sharpen.stats.enough import Band
from sharpen.stats.means import Estimate
from sharpen.stats.normalise import Reference

_MOST_TASKS = 12
"""Of more tasks than this only the effects are drawn: nobody looks at forty panels."""
_SHORTEST = 2
_MOST_PAIRS = 60
"""More pairs than this are not joined, and none where lines would run through the columns of other arms."""


def compared(found: Sequence[Compared], arms: Sequence[Arm]) -> Picture:
    """The effects where there are several, and a panel for each task: the arms' curves with bands where there are any, else
    the values of their runs."""
    measure = found[0].measure
    tasks = list(dict.fromkeys(row.task for one in found for row in one.rows))
    rows = sum(len(one.rows) for one in found)
    whole = effects(found, arms) if rows > 1 else None
    shown = tasks if len(tasks) <= _MOST_TASKS else []
    panels = [_panel(found, arms, task, measure) for task in shown]
    # Others' logs often name no task: the title of the whole then says it all.
    panels = [titled(panel) if panel.title else panel for panel in panels]
    drawn = [] if whole is None else [titled(whole)]
    drawn += [titled(picture) for picture in _shape(found, arms, tasks)]
    if panels or not drawn:
        drawn.append(grid("tasks", "", panels))
    first, *others = (f"{one.new} against {one.old}" for one in found)
    names = first if not others else f"{len(found)} arms against {found[0].old}"
    return grid("comparison", f"{measure.words[:1].upper()}{measure.words[1:]}: {names}", drawn, across=1)


def _panel(found: Sequence[Compared], arms: Sequence[Arm], task: str, measure: Measure) -> Picture:
    rows = [_curves(arm, task, measure) for arm in arms]
    some = any(len(curve.steps) > 1 for row in rows for curve in row)
    if measure.summary == TEST or not all(rows) or not some:
        return _values(found, arms, task, measure)
    series = [banded(f"{arm.name} ({len(row)})", row) for arm, row in zip(arms, rows, strict=True)]
    band = ", mean and 95 % band" if any(one.low for one in series) else ""
    return curves(
        "curves", task, series, "step", f"{measure.metric}{band}", within=within(rows), normal=_scale(found, task)
    )


def _shape(found: Sequence[Compared], arms: Sequence[Arm], tasks: Sequence[str]) -> Iterator[Picture]:
    """A radar of the arms' means by task, whoever logged them, where all of them lie in 0..1 or on a scale."""
    names = [arm.name for arm in arms]
    means: dict[tuple[str, str], float] = {}
    for one in found:
        for row in one.rows:
            if row.result is not None:
                means[row.task, one.old], means[row.task, one.new] = row.result.old.value, row.result.new.value
    scales = {task: _scale(found, task) for task in tasks}
    scaled = all(scales.values())
    table = {
        task: [
            None if (mean := means.get((task, name))) is None else share_of(mean, scales[task]) if scaled else mean
            for name in names
        ]
        for task in tasks
    }
    title = "Normalised means by task, cut to 0..1" if scaled else "Means by task"
    yield from over_axes("radar", title, table, names)


def _scale(found: Sequence[Compared], task: str) -> Reference | None:
    """What 0 and 1 stand for on a task, where the comparison knows it."""
    rows = (row for one in found for row in one.rows if row.task == task and row.normalised is not None)
    return next((row.normalised.reference for row in rows if row.normalised is not None), None)


def _curves(arm: Arm, task: str, measure: Measure) -> list[Curve]:
    return [run.curves[measure.metric] for run in arm.on(task) if measure.metric in run.curves and not run.lacks]


def _values(found: Sequence[Compared], arms: Sequence[Arm], task: str, measure: Measure) -> Picture:
    place = {arm.name: at for at, arm in enumerate(arms)}
    values: dict[str, tuple[float, ...]] = {}
    means: dict[str, Estimate] = {}
    pairs: list[Pair] = []
    for one in found:
        for row in (row for row in one.rows if row.task == task):
            both = [(value.old, value.new) for value in row.values if value.old is not None and value.new is not None]
            if len(arms) == 2 and len(row.values) <= _MOST_PAIRS:
                pairs += [Pair((place[one.old], place[one.new]), pair) for pair in both]
            values.setdefault(one.old, tuple(value.old for value in row.values if value.old is not None))
            values.setdefault(one.new, tuple(value.new for value in row.values if value.new is not None))
            if row.result is not None:
                means.setdefault(one.old, row.result.old)
                means.setdefault(one.new, row.result.new)
    groups = [_group(arm.name, values, means) for arm in arms]
    said = "values, mean and 95 % interval" if means else "values"
    return dots("values", task, groups, pairs, f"{measure.words}: {said}", _scale(found, task))


def _group(name: str, values: Mapping[str, tuple[float, ...]], means: Mapping[str, Estimate]) -> Group:
    mean = means.get(name)
    if mean is None:
        return Group(name, values.get(name, ()))
    return Group(name, values[name], mean.value, mean.low, mean.high)


def enough(found: Sequence[Spread], measure: Measure, *, paired: bool) -> Picture:
    """What each number of runs can say: the half-width of the mean, and the smallest effect that can be shown. A row of two
    panels for each arm and task, as far as there is room."""
    rows = [_enough(one, paired=paired) for one in found[:_MOST_TASKS]]
    title = f"{measure.words[:1].upper()}{measure.words[1:]}: how many runs are enough"
    more = f" (the first {len(rows)} of {len(found)} arms and tasks)" if len(rows) < len(found) else ""
    return grid("variance", f"{title}{more}", rows, across=1)


def _enough(found: Spread, *, paired: bool) -> Picture:
    rows, unit = found.enough.rows, "pairs of runs" if paired else "runs in each arm"
    runs = tuple(float(row.runs) for row in rows)
    here = [100 * row.variation for row in rows if row.runs <= len(found.values) and math.isfinite(row.variation)]
    spread = Banded("coefficient of variation of the first n", runs[: len(here)], tuple(here))
    panels = [
        _bands("How well the mean is known", "half-width of the 95 % interval", runs, [row.half_width for row in rows],
               found, found.enough.runs_needed, [spread]),
        _bands(f"Smallest effect found with power 0.8, by {unit}", "smallest detectable effect", runs,
               [row.detectable for row in rows], found, found.enough.detectable_needed, []),
    ]  # fmt: skip
    return titled(grid("enough", f"{found.name}, {len(found.values)} runs", panels))


def _bands(
    title: str, label: str, runs: tuple[float, ...], bands: Sequence[Band | None], found: Spread, needed: int | None,
    more: Sequence[Banded],
) -> Picture:  # fmt: skip
    """One panel, in per cent of the mean. The value of two runs is so large that it would flatten all the others: the line
    comes from above."""
    wanted = 100 * found.enough.threshold
    kept = [(n, band) for n, band in zip(runs, bands, strict=True) if band is not None and math.isfinite(band.value)]
    seen = [band.value for n, band in kept if n > _SHORTEST] or [band.value for _, band in kept]
    top = max(150 * max(seen, default=0.0), 2 * wanted, *(value for one in more for value in one.values), 1e-6)
    made = Banded(
        label,
        tuple(n for n, _ in kept),
        tuple(100 * band.value for _, band in kept),
        tuple(100 * band.low for _, band in kept),
        tuple(100 * band.high for _, band in kept),
    )
    aim = Banded(f"wanted: {found.enough.threshold:.3g} of the mean", (runs[0], runs[-1]), (wanted, wanted))
    at = () if needed is None else (float(needed), float(needed))
    reached = Banded(f"reached with {needed} runs", at, (0.0, top) if at else ())
    y_title = "% of the mean, 95 % band from drawing runs again"
    series = [made, aim, reached, *more]
    return titled(curves("enough", title, series, "runs", y_title, spots=False, within=(0.0, top)), bold=False)
