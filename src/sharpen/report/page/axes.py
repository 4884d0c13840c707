"""Scales, ticks, frames and legends: the parts that pictures share. Pure.

A second scale tells the same values normalised, where it is known what 0 and 1 stand for; normalising is linear, so it is
the first scale with other numbers on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sharpen.report.page.marks import Line, Mark, Words, colour, dash, label, spot, width_of
from sharpen.stats.normalise import Reference

NORMALISED = "normalised"
_LEAST_MARGIN = 46.0
_LEGEND_ROW = 18.0
_KEY = 30.0
_GAP = 18.0
_MOST_LEGEND = 340.0


@dataclass(frozen=True, slots=True)
class Scale:
    """Numbers from `low` to `high` onto a stretch of the paper; what lies outside is drawn at its end."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        share = 0.5 if self.high == self.low else (value - self.low) / (self.high - self.low)
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from `low` to `high`."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return [low]
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next((m * power for m in (1.0, 2.0, 2.5, 5.0) if m * power >= raw), 10.0 * power)
    first = math.ceil(low / step - 1e-9)
    return [round(n * step, 12) + 0.0 for n in range(first, math.floor(high / step + 1e-9) + 1)]


def spread(
    values: Sequence[float], *, least: float = 0.0, within: tuple[float, float] | None = None
) -> tuple[float, float]:
    """A range that holds all values with a little room, at least `least` wide, and inside of `within`."""
    there = [value for value in values if math.isfinite(value)]
    if not there:
        return within or (0.0, 1.0)
    low, high = min(there), max(there)
    more = max((high - low) * 0.05, (least - (high - low)) / 2, 1e-9)
    low, high = low - more, high + more
    return (low, high) if within is None else (max(low, within[0]), min(high, within[1]))


def written(value: float) -> str:
    """A tick's number, as short as it can be."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:.4g}M"
    return f"{value / 1e3:.4g}k" if abs(value) >= 1e4 else f"{value:.4g}"


def shown(value: float) -> str:
    """A score beside a picture: three decimals where it is one of 0..1, else as many digits as say something."""
    return f"{value:.3f}" if abs(value) < 10 else written(value)


def with_interval(value: float, low: float | None, high: float | None) -> str:
    return shown(value) if low is None or high is None else f"{shown(value)} [{shown(low)}, {shown(high)}]"


def second(scale: Scale, normal: Reference) -> list[tuple[float, str]]:
    """Where round normalised values lie on a scale of raw ones, and how they are written."""
    low, high = sorted((normal.of(scale.low), normal.of(scale.high)))
    wide = (normal.reference - normal.random) / normal.scale
    return [(scale.at(normal.random + value * wide), written(value)) for value in ticks(low, high)]


def margin(low: float, high: float, normal: Reference | None = None) -> float:
    """The room that the numbers of an upright scale take at its side; with `normal` those of its second scale."""
    if normal is not None:
        low, high = sorted((normal.of(low), normal.of(high)))
    return max(_LEAST_MARGIN, max(width_of(written(value), 11) for value in ticks(low, high)) + 12)


def at_the_right(x: float, y: Scale, normal: Reference) -> list[Mark]:
    """A second upright scale."""
    made: list[Mark] = [Line(((x, y.start), (x, y.end)), "dim")]
    for at, words in second(y, normal):
        made.append(Line(((x, at), (x + 4, at)), "dim"))
        made.append(Words(x + 7, at + 4, words, "start", 11, "dim"))
    return [*made, Words(x + margin(y.low, y.high, normal), y.end - 10, NORMALISED, "end", 12, "dim")]


def frame(
    x: Scale, y: Scale, x_title: str, y_title: str, *, whole_x: bool = False, normal: Reference | None = None
) -> list[Mark]:
    """Grid lines across, ticks and titles; with `normal` the normalised values at the right. `y.start` is the foot of the
    frame."""
    made: list[Mark] = []
    for value in ticks(y.low, y.high):
        at = y.at(value)
        made.append(Line(((x.start, at), (x.end, at)), "grid"))
        made.append(Words(x.start - 7, at + 4, written(value), "end", 11, "dim"))
    about = max(2, min(8, int((x.end - x.start) / 60)))
    for value in ticks(x.low, x.high, about):
        if whole_x and value != round(value):
            continue
        at = x.at(value)
        made.append(Line(((at, y.start), (at, y.start + 4)), "dim"))
        made.append(Words(at, y.start + 17, written(value), "middle", 11, "dim"))
    made.append(Line(((x.start, y.start), (x.end, y.start)), "dim"))
    made.append(Words((x.start + x.end) / 2, y.start + 34, x_title, "middle", 12, "dim"))
    room = x.end - x.start
    if normal is not None:
        made += at_the_right(x.end, y, normal)
        room -= width_of(NORMALISED)
    made.append(label(x.start, y.end - 10, y_title, room, colour="dim"))
    return made


@dataclass(frozen=True, slots=True)
class Key:
    """An entry of a legend: the name of the series at `place`, and whether it is told by its line, its mark or both."""

    name: str
    place: int
    line: bool = True
    spot: bool = True


def keys(names: Sequence[str | None], *, line: bool = True, spot: bool = True) -> list[Key]:
    """A key for each series. One series needs none, and one that is None has none."""
    return [Key(n, at, line, spot) for at, n in enumerate(names) if n is not None] if len(names) > 1 else []


def legend(entries: Sequence[Key], x: float, y: float, room: float) -> tuple[list[Mark], float]:
    """The keys from `y` on, in as many rows as it takes, and how high that is."""
    made: list[Mark] = []
    at, row = x, 0
    for one in entries:
        wide = min(_MOST_LEGEND, room, _KEY + width_of(one.name) + _GAP)
        if at > x and at + wide > x + room:
            at, row = x, row + 1
        foot = y + row * _LEGEND_ROW + 12
        if one.line:
            made.append(Line(((at, foot - 4), (at + 22, foot - 4)), colour(one.place), 2.0, dash(one.place)))
        if one.spot:
            made.append(spot(one.place, at + 11, foot - 4))
        made.append(label(at + _KEY, foot, one.name, wide - _KEY - _GAP / 2))
        at += wide
    return made, (row + 1) * _LEGEND_ROW + 6 if entries else 0.0
