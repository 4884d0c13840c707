"""When two mathematical answers are the same: by their numbers where they are numbers, else by what is written.

A small normaliser for the LaTeX that final answers are written in: fractions, degrees, units in `\\text{}`, spacing,
`\\left` and `\\right`, thousands, an `x =` in front. Tuples, intervals and lists are compared part by part. It does no
algebra: `2x+1` and `1+2x` are different, which errs on the strict side.
"""

from __future__ import annotations

import math
import re

from sharpen.tasks.qa.extracting import close, value

_DROPPED = re.compile(
    r"\\left|\\right|\\[,;:!]|\\ |~|\\displaystyle|\\limits|\^\s*\{?\s*\\circ\s*\}?|\\degree|°|\\?\$|\\?%"
)
_TEXT = re.compile(r"\\(?:text|textbf|textit|mbox|mathrm|operatorname|mathbf)\s*\{([^{}]*)\}")
_FRAC = re.compile(r"\\[dtc]?frac\s*(?:\{([^{}]*)\}|(\w))\s*(?:\{([^{}]*)\}|(\w))")
_SQRT = re.compile(r"\\sqrt\s*(?:\{([^{}]*)\}|(\w))")
_UNIT = re.compile(
    r"(?<=\d)\s*(?:cm|mm|km|m|kg|g|cents?|dollars?|units?|inch(?:es)?|feet|ft|degrees?|hours?|minutes?|seconds?|square.*)$"
)


def same(given: str, wanted: str) -> bool:
    """Whether two final answers say the same."""
    a, b = plain(given), plain(wanted)
    if a == b:
        return bool(a)
    x, y = _number(a), _number(b)
    if x is not None and y is not None:
        return close(x, y)
    parts, others = _parts(a), _parts(b)
    return len(parts) == len(others) > 1 and _frame(a) == _frame(b) and all(map(same, parts, others))


def plain(text: str) -> str:
    """An answer without what only sets the type."""
    text = _DROPPED.sub(" ", text.strip().rstrip(".")).replace("{,}", ",")
    bare = _TEXT.sub(r"\1", text)
    text = _TEXT.sub("", text) if re.search(r"\d", _TEXT.sub("", text)) else bare
    text = _UNIT.sub("", text.strip())
    for _ in range(4):
        text = _FRAC.sub(lambda m: f"({m[1] or m[2]})/({m[3] or m[4]})", text)
        text = _SQRT.sub(lambda m: f"sqrt({m[1] or m[2]})", text)
    text = re.sub(r"\((\w+(?:\.\d+)?)\)/\((\w+(?:\.\d+)?)\)", r"\1/\2", text)
    text = text.replace("\\cdot", "*").replace("\\times", "*").replace("\\pi", "pi").replace("\\infty", "inf")
    text = re.sub(r"\s+", "", text).replace("−", "-").lower()
    return re.sub(r"^[a-z](?:=|\\in)(?=.)", "", text)


def _number(text: str) -> float | None:
    """The value of a number, a fraction, a root or a multiple of pi."""
    found = value(text)
    if found is not None:
        return found
    match = re.fullmatch(r"(-?)(\d*\.?\d*)\*?(?:(pi)|sqrt\((\d+(?:\.\d+)?)\))(?:/(\d+(?:\.\d+)?))?", text)
    if match is None or match[2] == "." or (match[5] and float(match[5]) == 0):
        return None
    factor = float(match[2] or 1) * (math.pi if match[3] else math.sqrt(float(match[4])))
    return (-1 if match[1] else 1) * factor / float(match[5] or 1)


def _parts(text: str) -> list[str]:
    """What stands between the commas outside of inner brackets."""
    inner = text[1:-1] if text[:1] in "([" and text[-1:] in ")]" else text.removeprefix("\\{").removesuffix("\\}")
    parts, depth = [""], 0
    for character in inner:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _frame(text: str) -> tuple[str, str]:
    """The brackets around, which tell an open interval from a closed one."""
    return (text[0], text[-1]) if text[:1] in "([" and text[-1:] in ")]" else ("", "")
