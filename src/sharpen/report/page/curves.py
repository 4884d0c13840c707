"""Curves with bands: learning curves of arms, and performance profiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sharpen.report.page.axes import Scale, frame, legend, spread
from sharpen.report.page.marks import Area, Line, Mark, Picture, Point, colour, dash, spot

WIDTH, HEIGHT = 560.0, 300.0
_LEFT, _RIGHT, _TOP, _FOOT = 46.0, 14.0, 24.0, 44.0
_MOST_SPOTS = 40


@dataclass(frozen=True)
class Banded:
    """One series. `low` and `high` are empty where there is no band; `thin` are the single runs behind it."""

    name: str
    steps: tuple[float, ...]
    values: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    thin: tuple[tuple[Point, ...], ...] = ()


def curves(
    name: str,
    title: str,
    series: Sequence[Banded],
    x_title: str,
    y_title: str,
    *,
    spots: bool = True,
    unit: bool = True,
) -> Picture:
    """Series over steps. `unit` says that values are in 0..1, and then the whole of it is shown."""
    keys, high = legend(
        [one.name if one.values or one.thin else None for one in series], _LEFT, 0, WIDTH - _LEFT - _RIGHT
    )
    numbers = [value for one in series for value in (*one.values, *one.low, *one.high)]
    steps = [step for one in series for step in one.steps]
    steps += [step for one in series for row in one.thin for step, _ in row]
    low_x, high_x = min(steps, default=0.0), max(steps, default=1.0)
    if low_x == high_x:
        low_x, high_x = low_x - 1, high_x + 1
    bottom = (0.0, 1.0) if unit else spread(numbers, least=1e-6)
    x = Scale(low_x, high_x, _LEFT, WIDTH - _RIGHT)
    foot = high + _TOP + HEIGHT - _TOP - _FOOT
    y = Scale(bottom[0], bottom[1], foot, high + _TOP)
    made: list[Mark] = [*keys, *frame(x, y, x_title, y_title, whole_x=spots)]
    for place, one in enumerate(series):
        made += _band(one, place, x, y)
    for place, one in enumerate(series):
        made += _line(one, place, x, y, spots)
    return Picture(name, title, WIDTH, foot + _FOOT, tuple(made))


def _band(one: Banded, place: int, x: Scale, y: Scale) -> list[Mark]:
    made: list[Mark] = []
    if one.low and len(one.steps) > 1:
        upper = [(x.at(a), y.at(b)) for a, b in zip(one.steps, one.high, strict=True)]
        lower = [(x.at(a), y.at(b)) for a, b in zip(one.steps, one.low, strict=True)]
        made.append(Area((*upper, *reversed(lower)), colour(place), 0.16))
    for row in one.thin:
        made.append(Line(tuple((x.at(a), y.at(b)) for a, b in row), colour(place), 0.6))
    return made


def _line(one: Banded, place: int, x: Scale, y: Scale, spots: bool) -> list[Mark]:
    points = tuple((x.at(a), y.at(b)) for a, b in zip(one.steps, one.values, strict=True))
    made: list[Mark] = [Line(points, colour(place), 2.2, dash(place))] if len(points) > 1 else []
    if spots and len(points) <= _MOST_SPOTS:
        for (across, up), step, value in zip(points, one.steps, one.values, strict=True):
            made.append(spot(place, across, up, f"{one.name}, step {step:g}: {value:.3f}", 3.2))
    return made
