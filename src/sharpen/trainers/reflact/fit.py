"""Questions to the optimizer are made to fit its context: long texts lose their middle, and it is said how much.

What tells least is cut first: the longest texts, and of each its middle, since a trajectory's beginning says what was tried
and its end how it went. Every attempt and every field stays; in each shortened text stands how many characters were left
out. Should the shortest form still be too long, the middle messages of a trajectory become one line that counts them.
Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sharpen.core.digest import Json
from sharpen.trainers.reflact.prompts import block

CHARACTERS_PER_TOKEN = 3
"""A cautious rate: English text has about four characters a token, other text fewer."""

_SHORTEST = 160
"""No text is cut below this many characters."""


@dataclass(frozen=True)
class Fitted:
    """The data, shortened where it had to be; `left_out` counts the characters that are missing."""

    data: dict[str, Json]
    left_out: int = 0
    fits: bool = True


def fit(data: Mapping[str, Json], most: int, *, long: Sequence[str]) -> Fitted:
    """`data` as JSON of at most `most` characters. Only texts below the keys named in `long` are shortened."""
    whole = dict(data)
    if _size(whole) <= most:
        return Fitted(whole)
    lengths = sorted({len(text) for key in long for text in _texts(whole.get(key))}, reverse=True)
    shortened, cap = whole, lengths[0] if lengths else 0
    while cap > _SHORTEST:
        cap = max(_SHORTEST, cap * 3 // 4)
        shortened = {key: _cut(value, cap) if key in long else value for key, value in whole.items()}
        if _size(shortened) <= most:
            break
    if _size(shortened) > most:
        condensed = {key: _condensed(value) if key in long else value for key, value in shortened.items()}
        shortened = min(shortened, condensed, key=_size)
    return Fitted(shortened, max(0, _size(whole) - _size(shortened)), _size(shortened) <= most)


def shorten(text: str, most: int) -> str:
    """The text without its middle, and in place of that how much is missing; about `most` characters. A text that would
    not get shorter stays as it is."""
    if len(text) <= most:
        return text
    head = most * 3 // 5
    tail = most - head
    missing = len(text) - head - tail
    short = f"{text[:head]} [... {missing} characters left out ...] {text[len(text) - tail :]}"
    return short if len(short) < len(text) else text


def _cut(value: Json, cap: int) -> Json:
    if isinstance(value, str):
        return shorten(value, cap)
    if isinstance(value, list):
        return [_cut(inner, cap) for inner in value]
    if isinstance(value, dict):
        return {key: _cut(inner, cap) for key, inner in value.items()}
    return value


def _condensed(value: Json) -> Json:
    """The same with every trajectory reduced to its first and its last two messages, and a line that counts the others."""
    if isinstance(value, list):
        return [_condensed(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    result = {key: _condensed(inner) for key, inner in value.items()}
    told = result.get("trajectory")
    if isinstance(told, list) and len(told) > 4:
        result["trajectory"] = [told[0], ["system", f"[... {len(told) - 3} messages left out ...]"], *told[-2:]]
    return result


def _texts(value: Json) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else []
    return [text for one in inner for text in _texts(one)]


def _size(data: Mapping[str, Json]) -> int:
    return len(block(data))
