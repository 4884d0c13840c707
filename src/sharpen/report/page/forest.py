"""Values with their intervals, a row each: scores of arms on tasks, effects, before and after by type, gate evidence."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from sharpen.report.page.axes import NORMALISED, Scale, keys, legend, second, spread, ticks, written
from sharpen.report.page.marks import Line, Mark, Picture, Words, colour, label, rectangle, spot, width_of
from sharpen.stats.normalise import Reference

WIDTH = 720.0
_TOP, _FOOT = 12.0, 42.0
_SECOND = 26.0
_MOST_LABEL = 260.0
_FIGURES = 184.0
_SIZE = 12.0


@dataclass(frozen=True)
class Value:
    """A value of series number `series`, with its interval where it has one."""

    value: float
    low: float | None = None
    high: float | None = None
    series: int = 0


@dataclass(frozen=True)
class Row:
    """`figures` stand at the right. A row without values is a heading."""

    label: str
    values: tuple[Value, ...] = ()
    figures: str = ""


def forest(
    name: str, title: str, rows: Sequence[Row], series: Sequence[str], x_title: str, *,
    zero: bool = False, within: tuple[float, float] | None = None, normal: Reference | None = None,
) -> Picture:  # fmt: skip
    """Rows from top to bottom. `zero` draws the line of no difference and keeps it in sight; with `normal` there is a second
    scale above the rows."""
    key, top = legend(keys(series, line=False), 4, 0, WIDTH - 8)
    top += _TOP if normal is None else _TOP + _SECOND
    left = min(_MOST_LABEL, max((width_of(row.label, _SIZE) for row in rows), default=60.0)) + 16
    right = _FIGURES if any(row.figures for row in rows) else 26.0
    numbers = [x for row in rows for v in row.values for x in (v.value, v.low, v.high) if x is not None]
    low, high = within or spread([*numbers, *([0.0] if zero else [])], least=0.1)
    x = Scale(low, high, left, WIDTH - right)
    heights = [_height(row) for row in rows]
    foot = top + sum(heights)
    tops = list(itertools.accumulate(heights, initial=top))
    made: list[Mark] = list(key)
    for place, row in enumerate(rows):
        if row.values and place % 2 == 1:
            made.append(rectangle(0, tops[place], WIDTH, heights[place], "grid", 0.35))
    for at in ticks(low, high):
        made.append(Line(((x.at(at), top), (x.at(at), foot)), "grid"))
        made.append(Words(x.at(at), foot + 16, written(at), "middle", 11, "dim"))
    if normal is not None:
        made += [Words(at, top - 5, words, "middle", 11, "dim") for at, words in second(x, normal)]
        made.append(Words((x.start + x.end) / 2, top - 21, NORMALISED, "middle", 12, "dim"))
    if zero:
        made.append(Line(((x.at(0.0), top), (x.at(0.0), foot)), "ink", 1.2))
    for row, y, height in zip(rows, tops, heights, strict=False):
        made += _row(row, y, height, x, left)
    made.append(Words((x.start + x.end) / 2, foot + 34, x_title, "middle", 12, "dim"))
    return Picture(name, title, WIDTH, foot + _FOOT, tuple(made))


def _height(row: Row) -> float:
    return 26.0 if not row.values else max(22.0, 13.0 * len(row.values) + 6)


def _row(row: Row, y: float, height: float, x: Scale, left: float) -> list[Mark]:
    middle = y + height / 2
    if not row.values:
        words = label(4, middle + 6, row.label, WIDTH - 8, size=_SIZE, bold=True)
        # A long heading crosses the lines of the scale; on paper of its own it can be read.
        behind = min(WIDTH, width_of(words.text, _SIZE) * 1.08 + 8)
        return [rectangle(0, y, behind, height, "paper"), words]
    made: list[Mark] = [label(4, middle + 4, row.label, left - 16, size=_SIZE)]
    for number, one in enumerate(row.values):
        at = middle + 13.0 * (number - (len(row.values) - 1) / 2)
        told = f"{row.label}: {one.value:.3f}"
        if one.low is not None and one.high is not None:
            made.append(Line(((x.at(one.low), at), (x.at(one.high), at)), colour(one.series), 2.0))
            for end, beyond in ((one.low, one.low < x.low), (one.high, one.high > x.high)):
                if not beyond and math.isfinite(end):
                    made.append(Line(((x.at(end), at - 3), (x.at(end), at + 3)), colour(one.series), 1.5))
            told += f" [{one.low:.3f}, {one.high:.3f}]"
        made.append(spot(one.series, x.at(one.value), at, told))
    if row.figures:
        made.append(label(WIDTH - 4, middle + 4, row.figures, _FIGURES - 10, "end", 11, colour="dim"))
    return made
