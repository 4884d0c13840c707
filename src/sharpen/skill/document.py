"""The structure of a skill document: its sections by heading, and its protected regions, as spans of characters.

A protected region runs from `<!-- PROTECTED:name START -->` to `<!-- PROTECTED:name END -->`, both markers included; pairs
such as `<!-- SLOW_UPDATE_START -->` and `<!-- SLOW_UPDATE_END -->` are understood too. Regions stand one after another,
never inside each other. All spans are half-open intervals of character positions. Everything here is pure; what may be
changed, and how, is `edits`' business.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sharpen.core.errors import UsageError

MARKER = re.compile(
    r"<!--[ \t]*(?:"
    r"PROTECTED:(?P<name>[^\s<>]+)[ \t]+(?P<edge>START|END)"
    r"|(?P<plain>[A-Z][A-Z0-9_]*)_(?P<plain_edge>START|END)"
    r")[ \t]*-->"
)
_HEADING = re.compile(r"(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$")
_FENCE = re.compile(r"[ \t]{0,3}(```+|~~~+)")


@dataclass(frozen=True, slots=True)
class Line:
    """One line, without its newline. `plain` is False inside front matter and fenced code."""

    start: int
    end: int
    text: str
    plain: bool


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what belongs to it, deeper headings included: `start` to `end`, the text below it from `body`."""

    level: int
    title: str
    start: int
    body: int
    end: int


@dataclass(frozen=True, slots=True)
class Region:
    """A protected stretch, both markers included."""

    name: str
    start: int
    end: int

    def touches(self, start: int, end: int) -> bool:
        """Whether changing [start, end) would change this region; an insertion (start == end) only strictly inside."""
        return start < self.end and self.start < end


def lines(text: str) -> Iterator[Line]:
    """Every line of the document in order."""
    fence = ""
    front_matter = text.startswith("---\n") and "\n---" in text[3:]
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        line = text[start:end]
        opening = _FENCE.match(line)
        inside = bool(fence) or front_matter
        yield Line(start, end, line, plain=not inside and opening is None)
        if front_matter:
            front_matter = not (start > 0 and line.rstrip() == "---")
        elif fence:
            if opening is not None and opening[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif opening is not None:
            fence = opening[1]
        start = end + 1


def heading_level(line: str) -> int:
    """1 to 6 for a heading, 0 for any other line."""
    match = _HEADING.match(line)
    return len(match[1]) if match else 0


def sections(text: str) -> tuple[Section, ...]:
    """The sections in order of their headings; what stands before the first heading belongs to none."""
    found: list[tuple[int, str, int, int]] = []
    for line in lines(text):
        match = _HEADING.match(line.text) if line.plain else None
        if match is not None:
            found.append((len(match[1]), match[2], line.start, min(line.end + 1, len(text))))
    result = []
    for number, (level, title, start, body) in enumerate(found):
        end = next((later[2] for later in found[number + 1 :] if later[0] <= level), len(text))
        result.append(Section(level, title, start, body, end))
    return tuple(result)


def find_section(text: str, title: str, level: int = 2) -> Section | None:
    """The first section of that title and level; case does not matter."""
    wanted = title.casefold()
    return next((s for s in sections(text) if s.level == level and s.title.casefold() == wanted), None)


def has_marker(text: str) -> bool:
    """Whether a marker of a protected region stands in `text`."""
    return MARKER.search(text) is not None


def regions(text: str, where: str = "the document") -> tuple[Region, ...]:
    """The protected regions in order. Markers that do not pair up are an error that names `where` and the line."""
    result: list[Region] = []
    opened: re.Match[str] | None = None
    for marker in MARKER.finditer(text):
        name, starts = _read(marker)
        if starts and opened is not None:
            raise _unpaired(text, marker, where, f"region {name!r} begins inside region {_read(opened)[0]!r}")
        if not starts and opened is None:
            raise _unpaired(text, marker, where, f"region {name!r} ends but never began")
        if starts:
            opened = marker
            continue
        assert opened is not None
        if _read(opened)[0] != name:
            raise _unpaired(text, marker, where, f"region {_read(opened)[0]!r} is closed by the end of {name!r}")
        result.append(Region(name, opened.start(), marker.end()))
        opened = None
    if opened is not None:
        raise _unpaired(text, opened, where, f"region {_read(opened)[0]!r} begins but never ends")
    return tuple(result)


def _read(marker: re.Match[str]) -> tuple[str, bool]:
    if marker["name"] is not None:
        return f"PROTECTED:{marker['name']}", marker["edge"] == "START"
    return marker["plain"], marker["plain_edge"] == "START"


def _unpaired(text: str, marker: re.Match[str], where: str, what: str) -> UsageError:
    line = text.count("\n", 0, marker.start()) + 1
    return UsageError(
        f"{where}, line {line}: protected {what}; every START marker needs its END marker, and regions do not nest"
    )
