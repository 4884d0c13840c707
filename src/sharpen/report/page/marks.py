"""What a picture is made of: lines, areas and words, in the coordinates of a box. Nothing here knows a file format.

Colours are names, not values, so that one picture is right on light and on dark paper: `ink`, `dim`, `grid`, and `c0` to
`c5` for what is told apart. Arms also differ in the shape of their marks and in how their lines are broken.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from sharpen.core.redact import redact

Point: TypeAlias = tuple[float, float]

SERIES = ("c0", "c1", "c2", "c3", "c4", "c5")
DASHES = ("", "7 4", "2 3", "9 3 2 3")
LETTER = 0.63
"""About how wide a letter is, in parts of its height."""


@dataclass(frozen=True, slots=True)
class Line:
    points: tuple[Point, ...]
    colour: str = "ink"
    width: float = 1.0
    dash: str = ""


@dataclass(frozen=True, slots=True)
class Area:
    """A filled polygon. `title` is shown where a pointer rests on it."""

    points: tuple[Point, ...]
    colour: str
    opacity: float = 1.0
    title: str = ""


@dataclass(frozen=True, slots=True)
class Words:
    """`anchor` is start, middle or end; `y` is the foot of the letters. `whole` is the text where it was shortened."""

    x: float
    y: float
    text: str
    anchor: str = "start"
    size: float = 12.0
    colour: str = "ink"
    bold: bool = False
    whole: str = ""


Mark: TypeAlias = Line | Area | Words


@dataclass(frozen=True)
class Picture:
    """`name` is good for a file; `title` says in a sentence what is seen."""

    name: str
    title: str
    width: float
    height: float
    marks: tuple[Mark, ...]


def moved(mark: Mark, right: float, down: float) -> Mark:
    """The same mark elsewhere on the paper."""
    if isinstance(mark, Words):
        return replace(mark, x=mark.x + right, y=mark.y + down)
    return replace(mark, points=tuple((x + right, y + down) for x, y in mark.points))


def colour(place: int) -> str:
    return SERIES[place % len(SERIES)]


def dash(place: int) -> str:
    return DASHES[place % len(DASHES)]


def rectangle(
    x: float, y: float, width: float, height: float, name: str, opacity: float = 1.0, title: str = ""
) -> Area:
    corners = ((x, y), (x + width, y), (x + width, y + height), (x, y + height))
    return Area(corners, name, opacity, title)


def spot(place: int, x: float, y: float, title: str = "", size: float = 4.5) -> Area:
    """The mark of a series: square, diamond, triangle, or the triangle on its head."""
    shapes: tuple[tuple[Point, ...], ...] = (
        ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
        ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
        ((0, -1.2), (1.15, 0.9), (-1.15, 0.9)),
        ((0, 1.2), (1.15, -0.9), (-1.15, -0.9)),
    )
    shape = shapes[place % len(shapes)]
    return Area(tuple((x + size * a, y + size * b) for a, b in shape), colour(place), 1.0, title)


def fitted(text: str, room: float, size: float) -> str:
    """As much of a text as has room. What is missing is missing from its middle: names of arms often differ at their end."""
    most = max(1, int(room / (LETTER * size) + 1e-6))
    tail = (most - 1) // 2
    return text if len(text) <= most else f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}"


def label(
    x: float, y: float, text: str, room: float, anchor: str = "start", size: float = 12.0, *,
    colour: str = "ink", bold: bool = False,
) -> Words:  # fmt: skip
    """Words that do not reach beyond their room. A secret is taken out before it is cut in two."""
    text = redact(text)
    shown = fitted(text, room, size)
    return Words(x, y, shown, anchor, size, colour, bold, text if shown != text else "")


def width_of(text: str, size: float = 12.0) -> float:
    return len(text) * LETTER * size
