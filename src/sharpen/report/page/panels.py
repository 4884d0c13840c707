"""Pictures put together: one under its title, as a file of its own needs it, and several on one paper. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from sharpen.core.redact import redact
from sharpen.report.page.marks import LETTER, Mark, Picture, Words, moved

_SIZE = 13.0
_LINE = 18.0
_GAP = 26.0
_MARGIN = 14.0


def titled(picture: Picture, *, bold: bool = True) -> Picture:
    """The picture with its title above, in as many lines as it takes."""
    most = max(8, int(picture.width / (LETTER * _SIZE)))
    lines = textwrap.wrap(redact(picture.title), most)
    top = _LINE * len(lines) + 10 if lines else 0.0
    words = [Words(0, _LINE * place + _SIZE, line, size=_SIZE, bold=bold) for place, line in enumerate(lines)]
    marks = (*words, *(moved(mark, 0, top) for mark in picture.marks))
    return Picture(picture.name, picture.title, picture.width, picture.height + top, marks)


def on_paper(picture: Picture) -> Picture:
    """The picture with its title above and a margin around: what is written to a file."""
    whole = titled(picture)
    marks = tuple(moved(mark, _MARGIN, _MARGIN) for mark in whole.marks)
    return Picture(whole.name, whole.title, whole.width + 2 * _MARGIN, whole.height + 2 * _MARGIN, marks)


def grid(name: str, title: str, pictures: Sequence[Picture], across: int = 2) -> Picture:
    """Several pictures from left to right and from top to bottom, each column as wide as its widest picture. A picture
    that is to stand alone in its row is a grid of its own in a grid of one column."""
    across = max(1, min(across, len(pictures)))
    rows = [pictures[start : start + across] for start in range(0, len(pictures), across)]
    wide = [max((row[at].width for row in rows if at < len(row)), default=0.0) for at in range(across)]
    marks: list[Mark] = []
    down = 0.0
    for row in rows:
        right = 0.0
        for at, picture in enumerate(row):
            marks += (moved(mark, right, down) for mark in picture.marks)
            right += wide[at] + _GAP
        down += max(picture.height for picture in row) + _GAP
    width = sum(wide) + _GAP * (across - 1)
    return Picture(name, title, width, max(0.0, down - _GAP), tuple(marks))
