"""A radar: each arm a shape over tasks or types, scores from 0 in the middle to 1 at the rim."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from sharpen.report.page.axes import keys, legend
from sharpen.report.page.marks import Area, Line, Mark, Picture, Point, Words, colour, dash, label, spot

WIDTH, HEIGHT = 560.0, 400.0
LEAST, MOST = 3, 24
"""With fewer axes there is no shape, with more no label can be read."""
_RADIUS = 155.0


def radar(name: str, title: str, axes: Sequence[str], arms: Mapping[str, Sequence[float]]) -> Picture:
    """`arms` has a score in 0..1 for each axis; an arm without any keeps its place and is not drawn."""
    named = keys([arm if scores else None for arm, scores in arms.items()])
    key, top = legend(named, 10, 0, WIDTH - 20)
    centre = (WIDTH / 2, top + HEIGHT / 2)
    turns = [2 * math.pi * place / len(axes) - math.pi / 2 for place in range(len(axes))]
    made: list[Mark] = list(key)
    for share in (0.25, 0.5, 0.75, 1.0):
        ring = tuple(_point(centre, turn, share) for turn in (*turns, turns[0]))
        made.append(Line(ring, "grid"))
    made += [Line((centre, _point(centre, turn, 1.0)), "grid") for turn in turns]
    for place, scores in enumerate(arms.values()):
        if not scores:
            continue
        shape = tuple(_point(centre, turn, score) for turn, score in zip(turns, scores, strict=True))
        made.append(Area(shape, colour(place), 0.12))
        made.append(Line((*shape, shape[0]), colour(place), 2.0, dash(place)))
    for place, (arm, scores) in enumerate(arms.items()):
        for axis, turn, score in zip(axes, turns, scores, strict=bool(scores)):
            x, y = _point(centre, turn, score)
            made.append(spot(place, x, y, f"{arm}, {axis}: {score:.3f}", 3.2))
    made += _rings(centre, len(axes))
    made += [_named(axis, turn, centre) for axis, turn in zip(axes, turns, strict=True)]
    return Picture(name, title, WIDTH, top + HEIGHT, tuple(made))


def _point(centre: Point, turn: float, share: float) -> Point:
    kept = min(1.0, max(0.0, share))
    return centre[0] + _RADIUS * kept * math.cos(turn), centre[1] + _RADIUS * kept * math.sin(turn)


def _rings(centre: Point, axes: int) -> list[Mark]:
    """What the rings stand for, written between the first two axes, where no mark can be."""
    turn, near = math.pi / axes - math.pi / 2, math.cos(math.pi / axes)
    found = [(share, _point(centre, turn, share * near)) for share in (0.5, 1.0)]
    return [Words(x, y + 3, f"{share:g}", "middle", 9, "dim") for share, (x, y) in found]


def _named(axis: str, turn: float, centre: Point) -> Words:
    across, up = math.cos(turn), math.sin(turn)
    x, y = centre[0] + (_RADIUS + 16) * across, centre[1] + (_RADIUS + 16) * up + 4
    anchor = "middle" if abs(across) < 0.1 else "start" if across > 0 else "end"
    room = 2 * min(x, WIDTH - x) if anchor == "middle" else WIDTH - x - 4 if anchor == "start" else x - 4
    return label(x, y, axis, room, anchor, 11)
