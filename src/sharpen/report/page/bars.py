"""Plain bars with their amounts written beside them: what was spent, and on what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sharpen.report.page.marks import Line, Mark, Picture, colour, label, rectangle, width_of

WIDTH = 720.0
_ROW, _TOP = 24.0, 6.0
_MOST_LABEL = 240.0
_FIGURES = 130.0


@dataclass(frozen=True)
class Bar:
    label: str
    amount: float
    figures: str
    series: int = 0


def bars(name: str, title: str, rows: Sequence[Bar]) -> Picture:
    """Bars from one foot, the longest as long as there is room."""
    left = min(_MOST_LABEL, max((width_of(row.label) for row in rows), default=0.0)) + 16
    room, most = WIDTH - left - _FIGURES, max((row.amount for row in rows), default=0.0)
    foot = _TOP + _ROW * len(rows)
    made: list[Mark] = []
    for number, row in enumerate(rows):
        y = _TOP + _ROW * number
        length = room * max(0.0, row.amount) / most if most > 0 else 0.0
        made.append(label(4, y + 16, row.label, left - 12))
        made.append(rectangle(left, y + 4, length, _ROW - 8, colour(row.series), 0.9, f"{row.label}: {row.figures}"))
        made.append(label(left + length + 7, y + 16, row.figures, _FIGURES - 12, size=11, colour="dim"))
    made.append(Line(((left, _TOP), (left, foot)), "dim"))
    return Picture(name, title, WIDTH, foot + 6, tuple(made))
