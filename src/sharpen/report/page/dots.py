"""Single values of arms side by side: runs as marks, pairs joined by a line, and each arm's mean with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sharpen.report.page.axes import NORMALISED, Scale, at_the_right, keys, legend, margin, spread, ticks, written
from sharpen.report.page.curves import HEIGHT, WIDTH
from sharpen.report.page.marks import Line, Mark, Picture, Words, colour, label, spot, width_of
from sharpen.stats.normalise import Reference

_RIGHT, _TOP, _FOOT = 14.0, 24.0, 36.0
_MOST_ASIDE = 0.22


@dataclass(frozen=True)
class Group:
    """The values of one arm; `mean`, `low` and `high` are None where there are too few to say."""

    name: str
    values: tuple[float, ...]
    mean: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Pair:
    """Two values that belong together: of the groups at these places."""

    places: tuple[int, int]
    values: tuple[float, float]


def dots(
    name: str, title: str, groups: Sequence[Group], pairs: Sequence[Pair], y_title: str, normal: Reference | None = None
) -> Picture:
    """A column for each group; with `normal` there is a second scale at the right."""
    numbers = [x for one in groups for x in (*one.values, one.mean, one.low, one.high) if x is not None]
    low, high = spread(numbers, least=1e-6)
    left, right = margin(low, high), WIDTH - (_RIGHT if normal is None else margin(low, high, normal) + 2)
    column = (right - left) / max(1, len(groups))
    # Names that have no room under their columns are told by their marks.
    under = all(width_of(one.name) <= column - 8 for one in groups)
    key, top = legend([] if under else keys([one.name for one in groups], line=False), left, 0, WIDTH - left - _RIGHT)
    foot = top + HEIGHT - _FOOT
    y = Scale(low, high, foot, top + _TOP)
    made: list[Mark] = list(key)
    for value in ticks(low, high):
        made.append(Line(((left, y.at(value)), (right, y.at(value))), "grid"))
        made.append(Words(left - 7, y.at(value) + 4, written(value), "end", 11, "dim"))
    made.append(
        label(
            left, top + _TOP - 10, y_title, right - left - (0 if normal is None else width_of(NORMALISED)), colour="dim"
        )
    )
    made += [] if normal is None else at_the_right(right, y, normal)
    middles = [left + column * (place + 0.5) for place in range(len(groups))]
    for pair in pairs:
        ends = tuple((middles[at], y.at(value)) for at, value in zip(pair.places, pair.values, strict=True))
        made.append(Line(ends, "dim", 0.5))
    for place, one in enumerate(groups):
        made += _group(one, place, middles[place], column, y)
        if under:
            made.append(label(middles[place], foot + 22, one.name, column - 8, "middle"))
    made.append(Line(((left, y.start), (right, y.start)), "dim"))
    return Picture(name, title, WIDTH, foot + _FOOT, tuple(made))


def _group(one: Group, place: int, middle: float, column: float, y: Scale) -> list[Mark]:
    made: list[Mark] = []
    seen: dict[float, int] = {}
    for value in one.values:
        # Values that are the same stand beside each other, so that none hides another.
        aside = min(seen.get(value, 0) * 6.5, _MOST_ASIDE * column)
        seen[value] = seen.get(value, 0) + 1
        made.append(spot(place, middle + aside, y.at(value), f"{one.name}: {value:.4g}", 2.6))
    if one.mean is None:
        return made
    # The first group's mean is at its left and the others' at their right: away from the lines between pairs.
    at = middle + (-0.3 if place == 0 else 0.3) * column
    told = f"{one.name}, mean {one.mean:.4g}"
    if one.low is not None and one.high is not None:
        low, high = y.at(one.low), y.at(one.high)
        made.append(Line(((at, low), (at, high)), colour(place), 2.0))
        made += [Line(((at - 5, end), (at + 5, end)), colour(place), 1.5) for end in (low, high)]
        told += f" [{one.low:.4g}, {one.high:.4g}]"
    return [*made, spot(place, at, y.at(one.mean), told, 5.5)]
