"""Values that change over a training: a number stays as it is, `lin_0.001` falls from 0.001 to 0 by the end. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable

_LINEAR = "lin_"


def checked(given: float | str) -> float | str:
    """A schedule as it is written: a number, or `lin_NUMBER`. Raises `ValueError` for anything else."""
    value = number(given)
    if not math.isfinite(value) or value < 0:
        raise ValueError("must be finite and not negative")
    return given if str(given).startswith(_LINEAR) else value


def number(given: float | str) -> float:
    """The value a schedule begins with."""
    try:
        return float(given.removeprefix(_LINEAR) if isinstance(given, str) else given)
    except ValueError:
        raise ValueError("must be a number, or a schedule such as lin_0.001") from None


def schedule(given: float | str) -> float | Callable[[float], float]:
    """What stable-baselines3 takes: the number, or the value by the share of the training that is left."""
    first = number(given)
    return (lambda left: left * first) if str(given).startswith(_LINEAR) else first
