"""Texts, tables and pictures as HTML. Whatever comes from a run is escaped here and nowhere else.

The tables and differences of the terminal's reports are taken as they are, so that a page says what the terminal says.
"""

from __future__ import annotations

import html
import itertools
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from sharpen.core.printable import printable
from sharpen.core.redact import redact
from sharpen.report.comparison import number
from sharpen.report.page import svg
from sharpen.report.page.marks import Picture
from sharpen.report.text import NOTHING

_MOST_FIGURES = 6
_CLASSES = {"green": "came", "red": "went", "yellow": "doubt", "dim": "quiet", "bold": "strong"}


POLICY = (
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'\">"
)
"""For the head of every page: nothing is loaded, no script runs, nothing is sent, whatever might slip through."""


def safe(words: str) -> str:
    """Without secrets, which an escaped text would hide, without hidden characters, and escaped."""
    return html.escape(printable(redact(words)))


def paragraph(words: str, kind: str = "") -> str:
    marked = f' class="{kind}"' if kind else ""
    return f"<p{marked}>{safe(words.strip())}</p>"


def quiet(words: str) -> str:
    """A remark, where there is one."""
    return paragraph(words, "quiet") if words else ""


def interval(low: float | None, high: float | None) -> str:
    """The ends of an interval of values of any size, for a cell."""
    return NOTHING if low is None or high is None else f"[{number(low)}, {number(high)}]"


def of_text(text: Text) -> str:
    """A text with its colours as classes."""
    cuts = sorted({0, len(text.plain), *(at for span in text.spans for at in (span.start, span.end))})
    pieces = []
    for start, end in itertools.pairwise(cuts):
        words = str(text.style).split() + [
            word for span in text.spans if span.start <= start and end <= span.end for word in str(span.style).split()
        ]
        names = " ".join(dict.fromkeys(_CLASSES[word] for word in words if word in _CLASSES))
        piece = safe(text.plain[start:end])
        pieces.append(f'<span class="{names}">{piece}</span>' if names else piece)
    return "".join(pieces)


def preformatted(text: Text) -> str:
    return f"<pre>{of_text(text)}</pre>"


def of_block(block: Text | Table | None) -> str:
    """What the terminal's report is made of."""
    if block is None:
        return ""
    if isinstance(block, Table):
        head = [str(column.header).strip().replace("\n", " ") for column in block.columns]
        rows = list(zip(*(list(map(str, column.cells)) for column in block.columns), strict=True))
        left = sum(column.justify == "left" for column in block.columns)
        return table(head, rows, left)
    start = len(block.plain) - len(block.plain.lstrip())
    return f'<p class="lines">{of_text(block[start : len(block.plain.rstrip())])}</p>'


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """The first `left` columns are texts, the rest numbers."""
    if not rows:
        return ""

    def line(cells: Sequence[str], tag: str) -> str:
        made = (f"<{tag}{'' if at < left else ' class=n'}>{safe(cell)}</{tag}>" for at, cell in enumerate(cells))
        return f"<tr>{''.join(made)}</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f'<div class="wide"><table><thead>{line(head, "th")}</thead><tbody>{body}</tbody></table></div>'


def figure(picture: Picture | None, note: str = "") -> str:
    if picture is None:
        return ""
    more = f" {safe(note)}" if note else ""
    return f"<figure>{svg.inline(picture)}<figcaption>{safe(picture.title)}.{more}</figcaption></figure>"


def side_by_side(figures: Sequence[str]) -> str:
    """Several figures, two in a row where there is room. Of many the first are shown, and the rest are there to unfold."""
    first, rest = figures[:_MOST_FIGURES], figures[_MOST_FIGURES:]
    made = f'<div class="pair">{"".join(first)}</div>' if len(first) > 1 else "".join(first)
    more = "picture" if len(rest) == 1 else "pictures"
    return made + details(f"{len(rest)} more {more}", f'<div class="pair">{"".join(rest)}</div>' if rest else "")


def details(summary: str, body: str, *, opened: bool = False) -> str:
    """Something to unfold; `summary` and `body` are HTML already."""
    return f"<details{' open' if opened else ''}><summary>{summary}</summary>{body}</details>" if body else ""
