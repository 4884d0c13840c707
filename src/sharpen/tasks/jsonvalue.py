"""What a JSON value may hold so that every later step can work with it: digests, files, comparison.

JSON text can say more than that: nesting without end, numbers beyond what a float holds, half of a surrogate pair. Data
files are refused for it where they are read; an answer of a model that holds it counts as no JSON. The depth is a fixed
number, since Python's own limit depends on how deep the caller stands.
"""

from __future__ import annotations

import math

from sharpen.core.digest import Json

MAX_DEPTH = 100


def too_deep(value: Json) -> bool:
    """Whether lists and objects are nested in each other more than `MAX_DEPTH` times."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [part for parent in level for part in _parts(parent)]
    return bool(level)


def problem(value: Json) -> str | None:
    """Why a value cannot be used, in a few words, or None."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        for part in level:
            if isinstance(part, float) and not math.isfinite(part):
                return "a number is too large for a floating-point number; write it as a text"
            if isinstance(part, str) and not _writable(part):
                return f"half of a surrogate pair in {_start(part)}; no text file can hold that character, remove it"
        level = [
            inner
            for parent in level
            for inner in ([*parent, *parent.values()] if isinstance(parent, dict) else _parts(parent))
        ]
        if not level:
            return None
    return f"nested more than {MAX_DEPTH} levels deep"


def _parts(value: Json) -> list[Json]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def _writable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _start(text: str) -> str:
    return ascii(text if len(text) <= 40 else text[:37] + "...")
