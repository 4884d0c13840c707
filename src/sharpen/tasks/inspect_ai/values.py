"""What a scorer of Inspect says, as hard and soft scores: letters, truth values, numbers, and mappings of those.

A letter is Inspect's own: C is right; P, partly right, is half a soft score and no hard one; I and N are wrong. A number is
both scores, after `score_range` has brought it to 0..1: its mean is what the task's authors report.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from sharpen.core.digest import Json
from sharpen.core.errors import UsageError, nearest

_LETTERS = {"C": (1.0, 1.0), "P": (0.0, 0.5), "I": (0.0, 0.0), "N": (0.0, 0.0)}
_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


@dataclass(frozen=True, slots=True)
class Range:
    """The lowest and the highest value of a scorer."""

    low: float
    high: float

    @staticmethod
    def parse(text: str) -> Range:
        parts = str(text).split(":")
        try:
            low, high = map(float, parts)
        except ValueError:
            low = high = math.nan
        if not low < high or not math.isfinite(high - low):
            raise UsageError(f"score_range must be LO:HI, such as 0:10, got {text!r}")
        return Range(low, high)


def chosen(scores: Mapping[str, Json], name: str | None) -> tuple[str, Json]:
    """The name and value of the score that counts: the one that is named (`scorer` or `scorer.key`), else the first."""
    if not scores:
        raise UsageError("the Inspect task has no scorer, so nothing can be trained on it")
    first = next(iter(scores))
    wanted, _, key = (name or first).partition(".")
    if wanted not in scores:
        raise UsageError(
            f"the Inspect task has no scorer {wanted!r}{nearest(wanted, list(scores))}; it has {', '.join(scores)}"
        )
    value = scores[wanted]
    if isinstance(value, Mapping):
        if key not in value:
            keys = ", ".join(f"{wanted}.{known}" for known in value)
            raise UsageError(
                f"scorer {wanted!r} gives several values; choose one with scorer={keys.split(', ')[0]} (of {keys})"
            )
        return f"{wanted}.{key}", value[key]
    return wanted, value


def scores(value: Json, within: Range) -> tuple[float, float] | None:
    """Hard and soft for a value; None where the scorer gave none (NaN)."""
    if isinstance(value, str):
        text = value.strip()
        if text in _LETTERS:
            return _LETTERS[text]
        if text.lower() in _WORDS:
            return (_WORDS[text.lower()],) * 2
        try:
            value = float(text)
        except ValueError:
            raise UsageError(f"a score must be C, P, I, N, a truth value or a number, got {value!r}") from None
    if isinstance(value, bool):
        return (float(value),) * 2
    if not isinstance(value, int | float):
        raise UsageError(f"a score must be C, P, I, N, a truth value or a number, got {value!r}")
    if math.isnan(value):
        return None
    share = (value - within.low) / (within.high - within.low)
    if not 0.0 <= share <= 1.0:
        raise UsageError(
            f"the score {value:g} is outside {within.low:g}..{within.high:g}; say its range with score_range=LO:HI"
        )
    return share, share
