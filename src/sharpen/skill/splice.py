"""Where text goes in and comes out of a document, and how the seams look afterwards.

A `Splice` replaces one interval by one text. The functions here make splices that keep a Markdown document tidy around
the place of change and nowhere else: list items stay together, headings, markers and worked examples keep a blank
line around them, blank lines do not pile up, and a document that is changed at its end ends with one newline. Lines of
spaces are content here (a worked example may hold them). Pure text geometry; whether a splice is allowed is `edits`'
business.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sharpen.skill import examples
from sharpen.skill.document import Region, has_marker, heading_level

_LIST_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d+[.)])[ \t]")
_APART = 2
"""Newlines between two blocks with a blank line in between."""


@dataclass(frozen=True, slots=True)
class Splice:
    """Replace [start, end) by `insert`. `core` is the part of the interval that is more than newlines at the seams:
    what protected regions must not meet."""

    start: int
    end: int
    insert: str
    core: tuple[int, int]

    def on(self, text: str) -> str:
        return text[: self.start] + self.insert + text[self.end :]

    def size(self, text: str) -> int:
        """Characters deleted plus characters inserted; what stays the same at both ends does not count."""
        old, new = text[self.start : self.end], self.insert
        head = _shared(old, new)
        tail = _shared(old[head:][::-1], new[head:][::-1])
        return len(old) + len(new) - 2 * (head + tail)


def occurrences(text: str, target: str) -> list[int]:
    """Every position at which `target` stands, overlapping ones too."""
    found = []
    at = text.find(target)
    while at >= 0:
        found.append(at)
        at = text.find(target, at + 1)
    return found


def unit(text: str, start: int, end: int) -> tuple[int, int]:
    """The whole lines that hold [start, end), without the last newline; whole worked examples where it meets them."""
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", max(start, end - 1))
    last = len(text) if last < 0 else last
    for block_start, block_end in examples.spans(text):
        if block_start < last and first < block_end:
            first, last = min(first, block_start), max(last, block_end)
    return first, last


def end_of(text: str, protected: tuple[Region, ...]) -> int:
    """Where an append goes: the end, or before the protected regions the document ends with. Not before one that begins in
    the middle of a line: that would tear the line apart."""
    at = len(text)
    for region in reversed(protected):
        line_before = text[text.rfind("\n", 0, region.start) + 1 : region.start]
        if text[region.end : at].strip() or line_before.strip():
            break
        at = region.start
    return at


def insertion(text: str, at: int, content: str, *, near: str) -> Splice:
    """Put `content` on lines of its own at `at`. `near` names the side it belongs to (`"left"`, `"right"`) and is set
    close to; with `"none"` it stands apart from both."""
    start = len(text[:at].rstrip("\n"))
    end = len(text) - len(text[at:].lstrip("\n"))
    left = min(at - start, _APART) if near == "right" else 1 if near == "left" else _APART
    right = min(end - at, _APART) if near == "left" else 1 if near == "right" else _APART
    before = _seam(text[:start], content, left)
    after = _seam(content, text[end:], right) if end < len(text) else "\n"
    return Splice(start, end, before + content + after, (at, at))


def removal(text: str, start: int, end: int) -> Splice:
    """Take out [start, end). Where that empties whole lines, the lines go too and their neighbours close up."""
    target = text[start:end]
    core_start = start + len(target) - len(target.lstrip("\n"))
    core_end = end - (len(target) - len(target.rstrip("\n")))
    if core_start >= core_end:
        return Splice(start, end, "", (start, end))
    first = text.rfind("\n", 0, core_start) + 1
    last = text.find("\n", core_end)
    last = len(text) if last < 0 else last
    if text[first:core_start].strip() or text[core_end:last].strip():
        return Splice(core_start, core_end, "", (core_start, core_end))
    return _close(text, first, last)


def substitution(text: str, start: int, end: int, content: str) -> Splice:
    """Put `content` in place of [start, end), as it is; blank lines it brings do not pile up on those that stand."""
    if text[start - 1 : start] in ("", "\n"):
        content = content.lstrip("\n")
    if text[end : end + 1] in ("", "\n"):
        content = content.rstrip("\n") + ("\n" if end == len(text) else "")
    return Splice(start, end, content, (start, end))


def _close(text: str, first: int, last: int) -> Splice:
    start = len(text[:first].rstrip("\n"))
    end = len(text) - len(text[last:].lstrip("\n"))
    if start == 0:
        between = ""
    elif end == len(text):
        between = "\n"
    else:
        between = _seam(text[:start], text[end:], min(_APART, max(first - start, end - last)))
    return Splice(start, end, between, (first, last))


def _seam(left: str, right: str, newlines: int) -> str:
    """The newlines between two texts, at least one where there is something on both sides."""
    if not left:
        return ""
    upper, lower = left[left.rfind("\n") + 1 :], right.split("\n", 1)[0]
    if any(heading_level(line) or has_marker(line) for line in (upper, lower)) or _ends_in_example(left):
        return "\n" * _APART
    if _LIST_ITEM.match(upper) and _LIST_ITEM.match(lower):
        return "\n"
    return "\n" * max(1, newlines)


def _ends_in_example(text: str) -> bool:
    found = examples.spans(text)
    return bool(found) and found[-1][1] == len(text)


def _shared(left: str, right: str) -> int:
    count = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        count += 1
    return count
