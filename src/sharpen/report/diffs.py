"""Changes of skill texts as people read them: lines that went in red, lines that came in green, some lines around them.

Where a line was changed rather than replaced, the words that differ stand out. Whatever a terminal would take as a command
is shown as a sign instead, since much of these texts was written by models.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.text import Text

from sharpen.core.candidate import Candidate
from sharpen.report import text as words

CAME, WENT, SAME = "green", "red", "dim"
_CONTEXT = 1
_MOST_LINES = 40
_ALIKE = 0.4
"""Two lines that share less than this of their words are shown as one that went and one that came."""

Row = tuple[str, list[tuple[str, bool]]]
"""A sign (`-`, `+`, space, `…`) and the pieces of the line, each with whether it stands out."""


def between(before: Candidate, after: Candidate, *, most: int = _MOST_LINES) -> Text:
    """All that changed from one candidate to another; the parts by name where there are several."""
    shown = Text()
    parts = list(dict.fromkeys([*before.parts, *after.parts]))
    for part in parts:
        old, new = before.parts.get(part, ""), after.parts.get(part, "")
        if old == new:
            continue
        if len(parts) > 1:
            shown.append(f"{part}\n", style="bold")
        shown.append_text(of_texts(old, new, most=most))
    return shown


def of_texts(before: str, after: str, *, most: int = _MOST_LINES) -> Text:
    """The difference of two texts, at most so many lines of it."""
    rows = list(_rows(before.splitlines(), after.splitlines()))
    shown = Text()
    for sign, pieces in rows[:most]:
        style = {"+": CAME, "-": WENT}.get(sign, SAME)
        shown.append(f"{sign} ", style=style)
        for piece, stands_out in pieces:
            shown.append(printable(piece), style=f"{style} bold" if stands_out else style)
        shown.append("\n")
    if len(rows) > most:
        shown.append(f"… and {words.plural(len(rows) - most, 'more line')}\n", style=SAME)
    return shown


def of_edits(edits: Sequence[Mapping[str, Any]], *, most: int = _MOST_LINES) -> Text:
    """Edits as they were asked for, where the text they belong to is not known."""
    shown = Text()
    for edit in edits:
        place = str(edit["op"]).replace("_", " ")
        where = f" in {edit['part']}" if edit.get("part") else ""
        shown.append(f"{place}{where}\n", style=SAME)
        gone = edit["op"] in ("replace", "delete")
        for line in str(edit.get("target") or "").splitlines():
            shown.append(f"{'-' if gone else ' '} {printable(line)}\n", style=WENT if gone else SAME)
        for line in str(edit.get("content") or "").splitlines():
            shown.append(f"+ {printable(line)}\n", style=CAME)
    lines = shown.split("\n", include_separator=True)
    if len(lines) <= most:
        return shown
    cut = Text().join(lines[:most])
    return cut.append(f"… and {words.plural(len(lines) - most, 'more line')}\n", style=SAME)


def printable(line: str) -> str:
    """A line without anything that moves a cursor or changes a colour."""
    return "".join(c if c.isprintable() else "    " if c == "\t" else "�" for c in line)


def _rows(old: Sequence[str], new: Sequence[str]) -> Iterator[Row]:
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for number, group in enumerate(matcher.get_grouped_opcodes(_CONTEXT)):
        if number:
            yield "…", []
        for tag, a1, a2, b1, b2 in group:
            if tag == "equal":
                yield from ((" ", [(line, False)]) for line in old[a1:a2])
            elif tag == "replace" and a2 - a1 == b2 - b1:
                pairs = [_pair(a, b) for a, b in zip(old[a1:a2], new[b1:b2], strict=True)]
                yield from (("-", went) for went, _ in pairs)
                yield from (("+", came) for _, came in pairs)
            else:
                yield from (("-", [(line, False)]) for line in old[a1:a2])
                yield from (("+", [(line, False)]) for line in new[b1:b2])


def _pair(old: str, new: str) -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]]:
    """Both lines in pieces, those that differ marked; whole and unmarked where the lines have little in common."""
    a, b = re.findall(r"\w+|\s+|.", old), re.findall(r"\w+|\s+|.", new)
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    if matcher.ratio() < _ALIKE:
        return [(old, False)], [(new, False)]
    went, came = [], []
    for tag, a1, a2, b1, b2 in matcher.get_opcodes():
        went.append(("".join(a[a1:a2]), tag != "equal"))
        came.append(("".join(b[b1:b2]), tag != "equal"))
    return went, came
