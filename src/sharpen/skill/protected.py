"""Protected regions as something a trainer keeps: reading one, writing one, and rewriting a document around them.

Edits may not touch a region (`edits`); whoever owns one writes it through `with_content`. When a model rewrites a whole
document, it is shown `masked` text, in which a short sign stands for each region; `restored` puts the regions back exactly
as they were, at their signs, or at the end where the model left a sign out. So regions survive by construction, whatever
the model wrote.
"""

from __future__ import annotations

import re

from sharpen.skill.document import MARKER, Region, regions

SLOW_UPDATE = "SLOW_UPDATE"
APPENDIX = "APPENDIX"

_STAND_IN = re.compile(r"\[\[PROTECTED ([0-9]{1,4})\]\]")


def content_of(text: str, name: str) -> str:
    """What stands in the region of that name, without its markers; nothing where there is none."""
    region = _find(text, name)
    return "" if region is None else without_markers(text[region.start : region.end]).strip("\n")


def with_content(text: str, name: str, content: str) -> str:
    """The document with that region holding `content`: in its place, or as a new region at the end. Without content the
    region goes. Markers in the content are taken out of it."""
    clean = without_markers(content).strip()
    region = _find(text, name)
    block = f"<!-- {name}_START -->\n{clean}\n<!-- {name}_END -->"
    if region is None:
        return f"{text.rstrip()}\n\n{block}\n".lstrip("\n") if clean else text
    if clean:
        return text[: region.start] + block + text[region.end :]
    before, after = text[: region.start].rstrip("\n"), text[region.end :].strip("\n")
    return "\n\n".join(piece for piece in (before, after) if piece) + "\n"


def without_markers(text: str) -> str:
    """The text with every marker taken out, also those that only arise when another is."""
    while MARKER.search(text):
        text = MARKER.sub("", text)
    return text


def masked(text: str) -> str:
    """The document as a model may rewrite it: a short sign stands for every protected region."""
    result = text
    for number, region in reversed(list(enumerate(regions(text), start=1))):
        result = f"{result[: region.start]}[[PROTECTED {number}]]{result[region.end :]}"
    return result


def restored(rewritten: str, original: str) -> str:
    """The rewritten document with all regions of the original one, each exactly once and unchanged."""
    kept = [original[region.start : region.end] for region in regions(original)]
    body = _cleaned(rewritten, len(kept))
    placed = {int(match[1]) for match in _STAND_IN.finditer(body)}
    body = _STAND_IN.sub(lambda match: kept[int(match[1]) - 1], body)
    missing = [block for number, block in enumerate(kept, start=1) if number not in placed]
    return "\n\n".join([body.strip("\n"), *missing]).lstrip("\n") + "\n"


def _cleaned(text: str, count: int) -> str:
    """The text without markers and with the first sign of each of `count` regions alone. Taking one out may make another,
    so it is done until nothing changes."""
    while True:
        seen: set[int] = set()

        def first(match: re.Match[str], seen: set[int] = seen) -> str:
            number = int(match[1])
            fresh = 1 <= number <= count and number not in seen
            seen.add(number)
            return match[0] if fresh else ""

        fewer = without_markers(_STAND_IN.sub(first, text))
        if fewer == text:
            return text.strip("\n")
        text = fewer


def _find(text: str, name: str) -> Region | None:
    return next((region for region in regions(text) if region.name == name), None)
