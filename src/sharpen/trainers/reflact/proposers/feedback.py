"""Instruction lines from what the scorer said and from the form the answers have in the train split.

Scorers say in words what was wrong ("expected a number, got a sentence of 14 words"). Recurring remarks become the
instruction that would have prevented them. The patterns are about the form of an answer in general, never about one
task; a remark that fits none of them says nothing here.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence

from sharpen.trainers.reflact.proposers.base import Attempted, Shot

_MOST_LABELS = 8
_USES_PER_LABEL = 3

_PATTERNS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), line)
    for pattern, line in (
        (r"expected (?:only )?(?:a |an |one )?(?:number|integer|digits?)\b", lambda _: "Answer with the number alone."),
        (r"expected (?:only )?(?:one|a single) word\b", lambda _: "Answer with one word."),
        (r"expected (\d+) words\b", lambda m: f"Answer with {m[1]} words."),
        (r"expected (?:a |valid )?json|not (?:valid )?json", lambda _: "Answer with JSON and nothing else."),
        (r"expected .{0,30}of the form (\S+?),? ", lambda m: f"Answer in the form {m[1]} and with nothing else."),
        (r"missing (?:key |field )?'([^']{1,40})'", lambda m: f"Always give the field {m[1]}."),
        (r"unexpected (?:key |field )?'([^']{1,40})'", lambda m: f"Leave out the field {m[1]}."),
        (
            r"among other words|(?:extra|surrounding|additional) (?:text|words)",
            lambda _: "Write the answer alone, with nothing before or after it.",
        ),
        (r"got (?:a sentence|a paragraph|\d+ (?:words|sentences|lines))", lambda _: "Do not write a sentence."),
        (r"got nothing|empty answer|no answer", lambda _: "Always give an answer."),
        (r"too long\b", lambda _: "Keep the answer short."),
        (r"\b(?:upper|lower) ?case|capital letter", lambda _: "Mind upper and lower case."),
        (r"wrong label|none of the labels|one label", lambda _: "Answer with one of the labels and nothing else."),
    )
)


def lines_from_feedback(failures: Sequence[Attempted]) -> list[tuple[str, int]]:
    """Instruction lines with the number of failures that speak for each, the most supported first."""
    support: Counter[str] = Counter()
    for attempt in failures:
        support.update({line(match) for pattern, line in _PATTERNS if (match := pattern.search(attempt.feedback))})
    return sorted(support.items(), key=lambda entry: (-entry[1], entry[0]))


def lines_from_answers(pool: Sequence[Shot]) -> list[str]:
    """What all answers of the train split have in common: a few labels, or the fields of a JSON object."""
    outputs = Counter(shot.output.strip() for shot in pool)
    if 2 <= len(outputs) <= _MOST_LABELS and len(pool) >= _USES_PER_LABEL * len(outputs):
        return [f"Answer with exactly one of: {', '.join(sorted(outputs))}."]
    fields = {_fields(output) for output in outputs}
    names = next(iter(fields)) if len(fields) == 1 else None
    return [f"Answer with a JSON object with the fields {', '.join(names)}."] if names else []


def _fields(text: str) -> tuple[str, ...] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return tuple(value) if isinstance(value, dict) else None
