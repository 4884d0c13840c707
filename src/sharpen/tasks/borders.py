"""Where a word ends: when a text stands in another one and is not merely a piece of a longer word.

Scripts that part words by spaces have a border wherever a letter or digit meets anything else. Chinese, Japanese, Thai, Lao,
Khmer and Burmese write words one after the other, and Korean joins particles to them, so nothing there tells a piece
from a word: next to a character of these scripts, no border is asked for.
"""

from __future__ import annotations

import unicodedata

_WITHOUT_SPACES = (
    "CJK", "HIRAGANA", "KATAKANA", "BOPOMOFO", "IDEOGRAPHIC", "HANGUL", "THAI", "LAO", "KHMER", "MYANMAR",
)  # fmt: skip


def stands_in(part: str, whole: str) -> bool:
    """Whether `part` occurs in `whole` and is not inside a longer word there. Signs alone (`*`, `.`) are part of no word."""
    if not any(map(str.isalnum, part)):
        return bool(part) and part in whole
    start = whole.find(part)
    while start >= 0:
        end = start + len(part)
        if not _joined(whole[start - 1 : start], part[0]) and not _joined(whole[end : end + 1], part[-1]):
            return True
        start = whole.find(part, start + 1)
    return False


def parts_words_by_spaces(character: str) -> bool:
    """Whether the character belongs to a script with spaces between words. Digits do, whatever their script."""
    if character.isascii() or character.isdecimal():
        return True
    return not unicodedata.name(character, "").startswith(_WITHOUT_SPACES)


def _joined(neighbour: str, edge: str) -> bool:
    """Whether the character beside an edge (none at the end of the text) makes a longer word of it."""
    if not neighbour or not (neighbour.isalnum() or neighbour == "_"):
        return False
    return parts_words_by_spaces(neighbour) and parts_words_by_spaces(edge)
