"""What kind of thing a part is, by its file name: prose, code, data, or a number; and whether a text is one.

Anything may be trained as a part. A `.py` part must stay a Python module, a `.json` part must stay JSON, and a `.number`
part holds one number, with its range behind it where it has one:

    0.7  # 0 to 2

An edit that would leave a part of another kind than it was is refused, so a task may rely on what it reads there.
"""

from __future__ import annotations

import ast
import json
import math
import re
from dataclasses import dataclass

_NUMBER = re.compile(
    r"(?P<value>[-+]?[\d.]+(?:e[-+]?\d+)?)(?:\s*#\s*(?P<low>\S+)\s+to\s+(?P<high>\S+))?\s*", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Number:
    """A trained number and the range it must stay in. `whole` numbers stay whole."""

    value: float
    low: float = -math.inf
    high: float = math.inf
    whole: bool = False

    def with_value(self, value: float) -> Number:
        """The nearest number in the range, rounded to what people write."""
        inside = min(max(value, self.low), self.high)
        return Number(float(round(inside)) if self.whole else float(f"{inside:.3g}"), self.low, self.high, self.whole)

    def text(self) -> str:
        """The part it stands for."""
        value = str(int(self.value)) if self.whole else repr(self.value)
        bounded = math.isfinite(self.low) and math.isfinite(self.high)
        return f"{value}  # {_plain(self.low)} to {_plain(self.high)}\n" if bounded else f"{value}\n"


def number(text: str) -> Number:
    """The number a `.number` part holds; `ValueError` says what is wrong with it."""
    found = _NUMBER.fullmatch(text.strip())
    if found is None:
        raise ValueError("a .number part holds one number, and its range behind it where it has one: 0.7  # 0 to 2")
    value = float(found["value"])
    low = -math.inf if found["low"] is None else float(found["low"])
    high = math.inf if found["high"] is None else float(found["high"])
    if not low <= value <= high:
        raise ValueError(f"{value:g} is not in the range {low:g} to {high:g}")
    whole = re.fullmatch(r"[-+]?\d+", found["value"]) is not None
    return Number(value, low, high, whole)


def problem(part: str, text: str) -> str | None:
    """Why a text can't be this part; None where it can."""
    suffix = part.rpartition(".")[2] if "." in part else ""
    try:
        if suffix == "py":
            ast.parse(text)
        elif suffix == "json":
            json.loads(text)
        elif suffix == "number":
            number(text)
    except SyntaxError as error:
        return f"{part} would not be Python any more: {error.msg}, line {error.lineno}"
    except ValueError as error:
        return f"{part} would not hold what it should: {error}"
    return None


def _plain(value: float) -> str:
    return f"{value:g}"
