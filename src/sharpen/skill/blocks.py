"""A skill as pieces that can be taken out one at a time: a rule is a line, a worked example or a stretch of code one piece.

What must stay says why: protected regions, front matter, and whatever leaves a part that is no longer what its name says it
is (a `.py` part must stay Python).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import takewhile

from sharpen.core.candidate import Candidate
from sharpen.skill import examples, kinds
from sharpen.skill.document import Line, Region, has_marker, heading_level, lines, regions


class Kind(StrEnum):
    LINE = "line"
    HEADING = "heading"
    EXAMPLE = "example"
    CODE = "code"
    FRONT_MATTER = "front matter"
    PROTECTED = "protected"


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a part, from `start` to `end` without the newline behind it. `numbers` are its lines, counted from 0.
    `stays` says why it can't be taken out; it is empty where it can."""

    part: str
    start: int
    end: int
    text: str
    kind: Kind
    numbers: tuple[int, ...]
    stays: str = ""


def blocks(candidate: Candidate) -> list[Block]:
    """Every piece of every part in order; empty lines belong to none."""
    return [block for part, text in candidate.parts.items() for block in _of_part(candidate, part, text)]


def without(candidate: Candidate, gone: Collection[Block]) -> Candidate:
    """The candidate with these blocks taken out. Empty lines that come to stand together become one."""
    made = dict(candidate.parts)
    for block in sorted(gone, key=lambda block: block.start, reverse=True):
        text = made[block.part]
        before, after = text[: block.start], text[block.end :].removeprefix("\n")
        if not before.strip() or before.endswith("\n\n"):
            after = after.lstrip("\n")
        made[block.part] = before + after if after.strip() else re.sub(r"\n+\Z", "\n", before)
    return Candidate(made)


def _of_part(candidate: Candidate, part: str, text: str) -> Iterator[Block]:
    prose = part.endswith((".md", ".txt")) or "." not in part
    rows = list(enumerate(lines(text) if prose else _plain_lines(text)))
    guarded = regions(text, part) if prose else ()
    shown = examples.spans(text) if prose else []
    done = -1
    for number, line in rows:
        if number <= done or not line.text.strip():
            continue
        if any(region.touches(line.start, line.end) for region in guarded):
            if not has_marker(line.text):
                yield Block(part, line.start, line.end, line.text, Kind.PROTECTED, (number,), "protected")
            continue
        example = next(((start, end) for start, end in shown if start <= line.start < end), None)
        if example is not None:
            own, kind = [row for row in rows if example[0] <= row[1].start < example[1]], Kind.EXAMPLE
        elif not line.plain:
            own = list(takewhile(lambda row: not row[1].plain, rows[number:]))
            kind = Kind.FRONT_MATTER if number == 0 and line.text.rstrip() == "---" else Kind.CODE
        else:
            own, kind = [(number, line)], Kind.HEADING if prose and heading_level(line.text) else Kind.LINE
        done = own[-1][0]
        start, end = line.start, own[-1][1].end
        block = Block(part, start, end, text[start:end], kind, tuple(one for one, _ in own))
        yield replace(block, stays=_why_it_stays(candidate, block, guarded))


def _why_it_stays(candidate: Candidate, block: Block, guarded: Sequence[Region]) -> str:
    if any(region.touches(block.start, block.end) for region in guarded):
        return "protected"
    if block.kind == Kind.FRONT_MATTER:
        return "front matter"
    return kinds.problem(block.part, without(candidate, [block])[block.part]) or ""


def _plain_lines(text: str) -> Iterator[Line]:
    start = 0
    for row in text.split("\n"):
        yield Line(start, start + len(row), row, True)
        start += len(row) + 1
