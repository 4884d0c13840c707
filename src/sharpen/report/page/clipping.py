"""What of a line or an area lies between two heights. Pure: points come and go in the numbers of the scale.

What leaves the frame is cut where it crosses the edge; drawn at the edge it would tell a value that nobody measured.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from sharpen.report.page.marks import Point

_FAR = 1e6
"""Values are taken to be at most so many frames away, so that lines to infinity have a slope."""
_ROUNDING = 1e-9


def inside(value: float, low: float, high: float) -> bool:
    """Whether a value can be shown, rounding forgiven."""
    room = _ROUNDING * (high - low)
    return low - room <= value <= high + room


def lines(points: Sequence[Point], low: float, high: float) -> list[tuple[Point, ...]]:
    """The pieces of a line that can be seen."""
    made: list[list[Point]] = []
    for one, other in itertools.pairwise(_near(points, low, high)):
        part = _segment(one, other, low, high)
        if not part:
            continue
        if made and made[-1][-1] == part[0]:
            made[-1].append(part[1])
        else:
            made.append(part)
    return [tuple(piece) for piece in made]


def area(points: Sequence[Point], low: float, high: float) -> tuple[Point, ...]:
    """The part of a polygon that can be seen; empty where none can."""
    kept = _near(points, low, high)
    for edge, sign in ((low, 1.0), (high, -1.0)):
        made: list[Point] = []
        for one, other in zip(kept[-1:] + kept[:-1], kept, strict=True):
            here, there = sign * (one[1] - edge) >= 0, sign * (other[1] - edge) >= 0
            if here != there:
                made.append(_crossing(one, other, edge))
            if there:
                made.append(other)
        kept = made
    return tuple(kept)


def _segment(one: Point, other: Point, low: float, high: float) -> list[Point]:
    """Both ends of what can be seen of a straight line; nothing where it lies outside."""
    if max(one[1], other[1]) < low or min(one[1], other[1]) > high:
        level = inside(one[1], low, high) and inside(other[1], low, high)
        return [one, other] if level else []
    return [_drawn_in(one, other, low, high), _drawn_in(other, one, low, high)]


def _drawn_in(end: Point, other: Point, low: float, high: float) -> Point:
    """The end of a line, or where it enters the frame on its way to the other end."""
    if inside(end[1], low, high):
        return end
    return _crossing(end, other, low if end[1] < low else high)


def _crossing(one: Point, other: Point, height: float) -> Point:
    share = (height - one[1]) / (other[1] - one[1])
    return (one[0] + share * (other[0] - one[0]), height)


def _near(points: Sequence[Point], low: float, high: float) -> list[Point]:
    far = _FAR * (high - low)
    return [(x, min(max(y, low - far), high + far)) for x, y in points]
