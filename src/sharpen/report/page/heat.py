"""Items against steps: which item came right with which candidate. Blue is right, orange is wrong, empty not measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sharpen.report.page.marks import Mark, Picture, Words, label, rectangle, width_of

_CELL, _LEAST_CELL, _HIGH = 26.0, 7.0, 13.0
_MOST_WIDTH = 640.0
_MOST_LABEL = 150.0
_TOP, _FOOT = 22.0, 30.0
_LETTERS = 10.0
_PALEST = 0.38
"""A score of one half is still no empty cell."""


@dataclass(frozen=True)
class Column:
    """A candidate that was judged: the name of its step, and whether it was taken."""

    name: str
    taken: bool
    about: str = ""


def heat(
    name: str, title: str, items: Sequence[str], columns: Sequence[Column], scores: Sequence[Sequence[float | None]]
) -> Picture:
    """`scores` has a row for each item and in it a value for each column, None where it was not measured."""
    left = min(_MOST_LABEL, max((width_of(item, _LETTERS) for item in items), default=0.0)) + 10
    cell = max(_LEAST_CELL, min(_CELL, _MOST_WIDTH / max(1, len(columns))))
    every = max(1, round(22 / cell))
    width = max(left + cell * len(columns) + 10, left + 290)
    foot = _TOP + _HIGH * len(items)
    made: list[Mark] = []
    for place, column in enumerate(columns):
        x = left + cell * (place + 0.5)
        if place % every == 0:
            made.append(label(x, _TOP - 7, column.name, every * cell, "middle", _LETTERS, bold=column.taken))
    for number, (item, row) in enumerate(zip(items, scores, strict=True)):
        y = _TOP + _HIGH * number
        made.append(label(left - 6, y + _HIGH - 3, item, left - 8, "end", _LETTERS))
        for place, score in enumerate(row):
            about = f"{item}, {columns[place].about or columns[place].name}"
            x = left + cell * place
            if score is None:
                made.append(rectangle(x + 0.5, y + 0.5, cell - 1, _HIGH - 1, "grid", 0.3, f"{about}: not measured"))
            else:
                shade, opacity = _shade(score)
                made.append(rectangle(x + 0.5, y + 0.5, cell - 1, _HIGH - 1, shade, opacity, f"{about}: {score:.3g}"))
    made += _key(left, foot + 12)
    return Picture(name, title, width, foot + _FOOT, tuple(made))


def _shade(score: float) -> tuple[str, float]:
    kept = min(1.0, max(0.0, score))
    return (
        ("c0", _PALEST + (1 - _PALEST) * (2 * kept - 1))
        if kept >= 0.5
        else ("c4", _PALEST + (1 - _PALEST) * (1 - 2 * kept))
    )


def _key(x: float, y: float) -> list[Mark]:
    made: list[Mark] = []
    for score, words in ((0.0, "0"), (0.5, "½"), (1.0, "1")):
        shade, opacity = _shade(score)
        made += [rectangle(x, y, 14, 11, shade, opacity), Words(x + 19, y + 10, words, "start", _LETTERS, "dim")]
        x += 40
    made.append(rectangle(x, y, 14, 11, "grid", 0.3))
    made.append(Words(x + 19, y + 10, "not measured", "start", _LETTERS, "dim"))
    return made
