"""Curves with bands: learning curves of arms, performance profiles, and what each number of runs can say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sharpen.report.page import clipping
from sharpen.report.page.axes import Key, Scale, frame, keys, legend, margin, spread
from sharpen.report.page.marks import Area, Line, Mark, Picture, Point, colour, dash, spot
from sharpen.stats.normalise import Reference

WIDTH, HEIGHT = 560.0, 300.0
UNIT = (0.0, 1.0)
_RIGHT, _TOP, _FOOT = 14.0, 24.0, 44.0
_MOST_THIN = 4
"""Of more series than this the single runs are not drawn, nobody could tell them apart; but those without a mean curve."""
_MOST_SPOTS = 40
_ASIDE = 14.0
"""How far apart pins of one step are drawn."""


@dataclass(frozen=True)
class Banded:
    """One series. `low` and `high` are empty where there is no band; `thin` are the single runs behind it."""

    name: str
    steps: tuple[float, ...]
    values: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    thin: tuple[tuple[Point, ...], ...] = ()


@dataclass(frozen=True)
class Pin:
    """One value at one step that has a name of its own, with its interval where it has one: the best, say."""

    name: str
    step: float
    value: float
    low: float | None = None
    high: float | None = None


def curves(
    name: str, title: str, series: Sequence[Banded], x_title: str, y_title: str, *, spots: bool = True,
    within: tuple[float, float] | None = UNIT, normal: Reference | None = None, pins: Sequence[Pin] = (),
) -> Picture:  # fmt: skip
    """Series over steps, and pins on them. `within` is what the upright scale shows; None leaves it to the values. What lies
    beyond is cut off. With `normal` there is a second scale at the right."""
    there = [one.name if one.values or one.thin else None for one in series]
    named = keys([*there, *(None for _ in pins)], spot=spots)
    named += [Key(pin.name, len(series) + place, line=False) for place, pin in enumerate(pins)]
    low_x, high_x, whole = _across(series, pins)
    low, high = spread(_numbers(series, pins), least=1e-6) if within is None else within
    left, right = margin(low, high), _RIGHT if normal is None else margin(low, high, normal) + 2
    key, top = legend(named, left, 0, WIDTH - left - _RIGHT)
    high_x += (high_x - low_x) * _ASIDE * len(pins) / (WIDTH - right - left)
    x = Scale(low_x, high_x, left, WIDTH - right)
    foot = top + HEIGHT - _FOOT
    y = Scale(low, high, foot, top + _TOP)
    made: list[Mark] = [*key, *frame(x, y, x_title, y_title, whole_x=whole, normal=normal)]
    for place, one in enumerate(series):
        made += _band(one, place, x, y)
        if len(series) <= _MOST_THIN or len(one.values) < 2:
            made += [Line(points, colour(place), 0.6) for row in one.thin for points in _seen(row, x, y)]
    for place, one in enumerate(series):
        made += _line(one, place, x, y, spots)
    for place, pin in enumerate(pins):
        made += _pin(pin, len(series) + place, x.at(pin.step) + _ASIDE * place, y)
    return Picture(name, title, WIDTH, foot + _FOOT, tuple(made))


def _across(series: Sequence[Banded], pins: Sequence[Pin]) -> tuple[float, float, bool]:
    """From which step to which, and whether steps are whole numbers."""
    steps = [step for one in series for step in one.steps] + [pin.step for pin in pins]
    steps += [step for one in series for row in one.thin for step, _ in row]
    low, high = min(steps, default=0.0), max(steps, default=1.0)
    whole = all(step == round(step) for step in steps)
    return (low - 1, high + 1, whole) if low == high else (low, high, whole)


def _numbers(series: Sequence[Banded], pins: Sequence[Pin]) -> list[float]:
    """What the upright scale has to show. A band of two runs may be many times as wide as all values together; it is shown
    as far as they spread, and no further."""
    found = [value for one in series for value in one.values]
    found += [value for one in series for row in one.thin for _, value in row]
    found += [value for pin in pins for value in (pin.value, pin.low, pin.high) if value is not None]
    if not found:
        return []
    low, high = min(found), max(found)
    ends = [end for one in series for end in (*one.low, *one.high)]
    return found + [min(max(end, low - (high - low)), high + (high - low)) for end in ends]


def _band(one: Banded, place: int, x: Scale, y: Scale) -> list[Mark]:
    if not one.low or len(one.steps) < 2:
        return []
    upper, lower = zip(one.steps, one.high, strict=True), zip(one.steps, one.low, strict=True)
    seen = clipping.area((*upper, *reversed(tuple(lower))), y.low, y.high)
    return [Area(tuple((x.at(a), y.at(b)) for a, b in seen), colour(place), 0.16)] if seen else []


def _seen(points: Sequence[Point], x: Scale, y: Scale) -> list[tuple[Point, ...]]:
    """The pieces of a line that lie on the scale, where they are drawn."""
    return [tuple((x.at(a), y.at(b)) for a, b in piece) for piece in clipping.lines(points, y.low, y.high)]


def _line(one: Banded, place: int, x: Scale, y: Scale, spots: bool) -> list[Mark]:
    points = tuple(zip(one.steps, one.values, strict=True))
    made: list[Mark] = [Line(piece, colour(place), 2.2, dash(place)) for piece in _seen(points, x, y)]
    if spots and len(points) <= _MOST_SPOTS:
        for step, value in points:
            if clipping.inside(value, y.low, y.high):
                made.append(spot(place, x.at(step), y.at(value), f"{one.name}, step {step:g}: {value:.4g}", 3.2))
    return made


def _pin(pin: Pin, place: int, at: float, y: Scale) -> list[Mark]:
    told = f"{pin.name}, step {pin.step:g}: {pin.value:.4g}"
    made: list[Mark] = []
    if pin.low is not None and pin.high is not None:
        low, high = y.at(pin.low), y.at(pin.high)
        made.append(Line(((at, low), (at, high)), colour(place), 2.0))
        made += [Line(((at - 4, end), (at + 4, end)), colour(place), 1.5) for end in (low, high)]
        told += f" [{pin.low:.4g}, {pin.high:.4g}]"
    return [*made, spot(place, at, y.at(pin.value), told, 5.5)]
