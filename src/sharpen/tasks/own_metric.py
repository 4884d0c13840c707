"""A metric that is a Python function of the user's, named by path.

The function gets the answer text and the item, and returns one of: a bool; a number in 0..1; a pair (score, feedback);
a mapping with `score` or `hard`, and optionally `soft` and `feedback`. Anything else is an error that names the function.
That, and what the function raises itself, is the failure of the item, with file and line. Its source file's digest is part
of the task's version, so that an edited scorer never meets scores from before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from sharpen.core.errors import UsageError, nearest
from sharpen.core.item import Item
from sharpen.tasks import python_path
from sharpen.tasks.metrics import Metric, Score

_FIELDS = ("score", "hard", "soft", "feedback")


def load(spec: str) -> Metric:
    """The metric that a Python function stands for."""
    found = python_path.find(spec, "metric")
    function = found.value
    if not callable(function):
        raise UsageError(f"metric {spec!r} is not a function but {type(function).__name__}")

    def score(answer: str, item: Item) -> Score:
        return read_score(function(answer, item), f"metric {spec!r} on item {item.id!r}")

    name = spec.rpartition(":")[2]
    return Metric(name, f"{name}@{found.source}", score, own=True)


def read_score(value: object, who: str) -> Score:
    """The score that a function's return value means. `who` begins the message when it means none."""
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], str):
        hard = _number(value[0], who, "the score")
        return Score(hard, hard, value[1])
    if isinstance(value, Mapping):
        return _from_mapping(value, who)
    hard = _number(value, who, "the return value")
    return Score(hard, hard)


def _from_mapping(value: Mapping[object, object], who: str) -> Score:
    for key in value:
        if key not in _FIELDS:
            raise UsageError(
                f"{who}: unknown field {key!r}; known are {', '.join(_FIELDS)}{nearest(str(key), _FIELDS)}"
            )
    if ("hard" in value) == ("score" in value):
        raise UsageError(f"{who}: a mapping must have exactly one of 'score' and 'hard'")
    field = "hard" if "hard" in value else "score"
    hard = _number(value[field], who, repr(field))
    soft = _number(value["soft"], who, "'soft'") if "soft" in value else hard
    feedback = value.get("feedback", "")
    if not isinstance(feedback, str):
        raise UsageError(f"{who}: 'feedback' must be a text, got {type(feedback).__name__}")
    return Score(hard, soft, feedback)


def _number(value: object, who: str, what: str) -> float:
    wanted = "a bool, a number in 0..1, (score, feedback), or a mapping with 'score'"
    try:
        number = float(value)  # type: ignore[arg-type]  # anything that can be a float will do, numpy's numbers too
    except (TypeError, ValueError):
        raise UsageError(f"{who}: {what} must be {wanted}, got {type(value).__name__}") from None
    if isinstance(value, str) or math.isnan(number) or not 0.0 <= number <= 1.0:
        raise UsageError(f"{who}: {what} must be {wanted}, got {value!r}")
    return number
