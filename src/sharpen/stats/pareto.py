"""Choosing among points that are good in several ways: who dominates whom, the front, ranks, and the volume a front covers.

A point is a tuple of numbers, one for each aim; `directions` says of each whether more (`max`) or less (`min`) is better. A
point dominates another if it is at least as good in every aim and better in one. Equal points do not dominate each other.
Pure functions; sizes of some thousand points and a handful of aims are what they are made for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

Direction: TypeAlias = Literal["max", "min"]
Point: TypeAlias = Sequence[float]


def dominates(one: Point, other: Point, directions: Sequence[Direction]) -> bool:
    """Whether `one` is at least as good as `other` everywhere and better somewhere."""
    a, b = _upward(one, directions), _upward(other, directions)
    return a != b and all(x >= y for x, y in zip(a, b, strict=True))


def front(points: Sequence[Point], directions: Sequence[Direction]) -> list[int]:
    """The places of the points that nobody dominates, in their order."""
    upward = [_upward(point, directions) for point in points]
    # Whoever dominates a point comes before it in this order, and the first ones to come are never dominated later.
    ahead: list[tuple[float, ...]] = []
    for point in sorted(set(upward), reverse=True):
        if not any(all(x >= y for x, y in zip(better, point, strict=True)) for better in ahead):
            ahead.append(point)
    best = set(ahead)
    return [place for place, point in enumerate(upward) if point in best]


def fronts(points: Sequence[Point], directions: Sequence[Direction]) -> list[list[int]]:
    """All places, sorted into ranks: the front, the front of what is left without it, and so on."""
    left = list(range(len(points)))
    ranks = []
    while left:
        found = [left[place] for place in front([points[place] for place in left], directions)]
        ranks.append(found)
        taken = set(found)
        left = [place for place in left if place not in taken]
    return ranks


def hypervolume(points: Sequence[Point], reference: Point, directions: Sequence[Direction]) -> float:
    """The volume of all that some point dominates and that itself dominates `reference`. Points that are not better than the
    reference in every aim cover nothing."""
    corner = _upward(reference, directions)
    gains = (tuple(x - y for x, y in zip(_upward(p, directions), corner, strict=True)) for p in points)
    return _covered([gain for gain in gains if all(x > 0 for x in gain)])


def _upward(point: Point, directions: Sequence[Direction]) -> tuple[float, ...]:
    """The point with every aim turned so that more is better."""
    return tuple(x if way == "max" else -x for x, way in zip(point, directions, strict=True))


def _covered(gains: Sequence[tuple[float, ...]]) -> float:
    """The volume of the union of boxes from the origin to each point: slices along the last aim, each a union of boxes
    with one aim less."""
    if not gains:
        return 0.0
    if len(gains[0]) == 1:
        return max(gain[0] for gain in gains)
    volume, below = 0.0, 0.0
    for level in sorted({gain[-1] for gain in gains}):
        volume += (level - below) * _covered([gain[:-1] for gain in gains if gain[-1] >= level])
        below = level
    return volume
