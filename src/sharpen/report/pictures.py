"""Pictures of comparisons and of spreads, drawn with matplotlib (extra `plots`), which is imported when one is drawn.

Colours are those of Okabe and Ito, which people with any kind of colour vision can tell apart; arms also differ in line
style and marker.
"""

from __future__ import annotations

import importlib.util
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sharpen.bench.comparison.assembly import Compared
from sharpen.bench.comparison.measure import Measure
from sharpen.bench.evidence.nouns import Arm
from sharpen.core.errors import UsageError
from sharpen.files import write_atomic
from sharpen.stats.curves import Curve, common
from sharpen.stats.enough import Band, Enough
from sharpen.stats.errors import BadData
from sharpen.stats.means import student_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_LINES = ("-", "--", "-.", ":")
_MARKS = "osD^vP"
_FORMATS = (".png", ".svg", ".pdf")
_MOST_STEPS = 300
_ACROSS = 2
_WIDTH, _HEIGHT = 6.2, 4.0


def can_draw() -> bool:
    return importlib.util.find_spec("matplotlib") is not None


def save(figure: Figure, path: Path) -> None:
    if path.suffix not in _FORMATS:
        raise UsageError(f"can't draw to {path}; the name must end in {', '.join(_FORMATS)}")
    out = io.BytesIO()
    figure.savefig(out, format=path.suffix[1:], dpi=150)
    write_atomic(path, out.getvalue())


def compared_svg(found: Sequence[Compared], arms: Sequence[Arm]) -> str:
    """The picture of a comparison for a page, without the lines that only a file of its own needs."""
    out = io.StringIO()
    compared(found, arms).savefig(out, format="svg")
    drawn = "<svg" + out.getvalue().partition("<svg")[2]
    before, _, rest = drawn.partition("<metadata>")
    return before + rest.partition("</metadata>")[2] if rest else drawn


def compared(found: Sequence[Compared], arms: Sequence[Arm]) -> Figure:
    """A panel for each task: the arms' curves with bands where there are any, else the values of their runs."""
    measure = found[0].measure
    tasks = list(dict.fromkeys(row.task for one in found for row in one.rows))
    figure, panels = _panels(len(tasks))
    for task, panel in zip(tasks, panels, strict=True):
        rows = [_curves(arm, task, measure) for arm in arms]
        if measure.summary != "test" and all(rows):
            _draw_curves(panel, arms, rows, measure.metric)
        else:
            _draw_values(panel, found, arms, task, measure)
        panel.set_title(task or measure.metric)
    return figure


def enough(found: Enough, words: str, name: str, *, at_hand: int, paired: bool) -> Figure:
    """What each number of runs can say: the half-width of the mean, and the smallest effect that can be shown. There are
    `at_hand` runs."""
    figure, panels = _panels(2)
    runs = [row.runs for row in found.rows]
    unit = "pairs of runs" if paired else "runs in each arm"
    for panel, bands, title, label, needed in (
        (panels[0], [row.half_width for row in found.rows], "How well the mean is known", "half-width of the 95 % interval",
         found.runs_needed),
        (panels[1], [row.detectable for row in found.rows], f"Smallest effect found with power 0.8, by {unit}",
         "smallest detectable effect", found.detectable_needed),
    ):  # fmt: skip
        _draw_bands(panel, runs, bands, label)
        panel.axhline(
            100 * found.threshold, color=_COLOURS[1], linestyle="--", label=f"wanted: {found.threshold:.3g} of the mean"
        )
        if needed is not None:
            panel.axvline(needed, color=_COLOURS[2], linestyle=":", label=f"reached with {needed} runs")
        panel.set_title(title, fontsize=10)
        panel.set_xlabel("runs")
        panel.set_ylabel("% of the mean")
        panel.set_xlim(2, runs[-1])
        top = max(band.value for band in bands[min(1, len(bands) - 1) :]) * 150
        panel.set_ylim(0, max(top, 200 * found.threshold))
    variation = [100 * row.variation for row in found.rows if row.runs <= at_hand and math.isfinite(row.variation)]
    panels[0].plot(runs[: len(variation)], variation, color="#777777", linewidth=1, linestyle="-.",
                   label="coefficient of variation of the first n\n(describes the data; does not shrink)")  # fmt: skip
    for panel in panels:
        panel.legend(fontsize=8, frameon=False)
    figure.suptitle(f"{name}: {words}", fontsize=11)
    return figure


def _panels(count: int) -> tuple[Figure, list[Axes]]:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure as New
    except ImportError:
        raise UsageError("drawing needs matplotlib: `pip install 'sharpen[plots]'`") from None
    across = min(_ACROSS, count)
    down = math.ceil(count / across)
    figure = New(figsize=(_WIDTH * across, _HEIGHT * down), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(down, across, squeeze=False)
    panels = [panel for row in grid for panel in row]
    for panel in panels:
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(axis="y", color="#e5e5e5")
        panel.set_axisbelow(True)
    for panel in panels[count:]:
        panel.set_visible(False)
    return figure, panels[:count]


def _curves(arm: Arm, task: str, measure: Measure) -> list[Curve]:
    return [run.curves[measure.metric] for run in arm.on(task) if measure.metric in run.curves and not run.lacks]


def _draw_curves(panel: Axes, arms: Sequence[Arm], rows: Sequence[Sequence[Curve]], metric: str) -> None:
    for place, (arm, row) in enumerate(zip(arms, rows, strict=True)):
        colour, line = _COLOURS[place % len(_COLOURS)], _LINES[place % len(_LINES)]
        for curve in row:
            panel.plot(curve.steps, curve.values, color=colour, linewidth=0.6, alpha=0.25)
        steps, bands = _mean_curve(row)
        label = f"{arm.name} ({len(row)})"
        panel.plot(steps, [band.value for band in bands], color=colour, linestyle=line, linewidth=2, label=label)
        if len(row) > 1:
            low, high = [band.low for band in bands], [band.high for band in bands]
            panel.fill_between(steps, low, high, color=colour, alpha=0.2, linewidth=0)
    panel.set_xlabel("step")
    panel.set_ylabel(f"{metric}: mean and 95 % band")
    panel.legend(frameon=False)


def _mean_curve(row: Sequence[Curve]) -> tuple[list[float], list[Band]]:
    try:
        low, high = common(row)
    except BadData as error:
        raise UsageError(f"can't draw a mean curve: {error}") from error
    steps = sorted({step for curve in row for step in curve.steps if low <= step <= high} | {low, high})
    steps = steps[:: max(1, len(steps) // _MOST_STEPS)]
    bands = []
    for step in steps:
        values = [curve.at(step) for curve in row]
        if len(values) < 2:
            bands.append(Band(values[0], values[0], values[0]))
        else:
            found = student_interval(values)
            bands.append(Band(found.value, found.low, found.high))
    return steps, bands


def _draw_values(panel: Axes, found: Sequence[Compared], arms: Sequence[Arm], task: str, measure: Measure) -> None:
    """Runs as points, pairs joined by a line, means with their intervals beside them."""
    place = {arm.name: number for number, arm in enumerate(arms)}
    seen: dict[str, Any] = {}
    for one in found:
        for row in (row for row in one.rows if row.task == task):
            many = len(row.values) > 60
            for value in row.values:
                if value.old is not None and value.new is not None and not many:
                    panel.plot(
                        [place[one.old], place[one.new]],
                        [value.old, value.new],
                        color="#bbbbbb",
                        linewidth=0.7,
                        zorder=1,
                    )
            for name, points in (
                (one.old, [value.old for value in row.values if value.old is not None]),
                (one.new, [value.new for value in row.values if value.new is not None]),
            ):
                seen.setdefault(name, (points, row.result and (row.result.old if name == one.old else row.result.new)))
    for name, (points, estimate) in seen.items():
        at, colour = place[name], _COLOURS[place[name] % len(_COLOURS)]
        mark = _MARKS[at % len(_MARKS)]
        panel.scatter(_side_by_side(at, points), points, s=18, color=colour, alpha=0.6, zorder=2, marker=mark)
        if estimate is not None:
            # Outside of the lines between the arms, where there is room.
            beside = at - 0.2 if at == 0 else at + 0.2
            reach = [[estimate.value - estimate.low], [estimate.high - estimate.value]]
            panel.errorbar(
                [beside], [estimate.value], yerr=reach, color=colour, marker=mark, capsize=4, markersize=7, zorder=3
            )
    panel.set_xticks(range(len(arms)), [arm.name for arm in arms])
    panel.set_xlim(-0.5, len(arms) - 0.5)
    panel.set_ylabel(f"{measure.words}: values, mean and 95 % interval")


def _draw_bands(panel: Axes, runs: Sequence[int], bands: Sequence[Band], label: str) -> None:
    panel.plot(runs, [100 * band.value for band in bands], color=_COLOURS[0], linewidth=2, label=label)
    low, high = [100 * band.low for band in bands], [100 * band.high for band in bands]
    panel.fill_between(runs, low, high, color=_COLOURS[0], alpha=0.2, linewidth=0, label="95 % band, runs drawn again")


def _side_by_side(at: int, points: Sequence[float]) -> list[float]:
    """Where to draw values, so that equal ones do not hide each other."""
    seen: dict[float, int] = {}
    places = []
    for value in points:
        seen[value] = seen.get(value, 0) + 1
        places.append(at + min(0.015 * (seen[value] - 1), 0.15))
    return places
