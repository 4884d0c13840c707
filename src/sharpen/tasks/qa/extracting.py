"""What an answer text finally says: the text after its last "answer is", the content of its last box, or its last line.

Only this final answer is scored, so that a long answer gains nothing from all it mentions. Pure functions over texts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sharpen.tasks import matching
from sharpen.tasks.borders import stands_in

_MARK = re.compile(
    r"(?:\b(?:final\s+)?answer\b(?:\s+to\s+[^.:\n]{1,80}?)?[*_`]*\s*(?:\bis\b\s*:?|[:=])|^####)[*_`]*[^\S\n]*",
    re.IGNORECASE | re.MULTILINE,
)
_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")
_TRIMMED = ' \t*_`"“”'
_DIGITS = re.compile(r"(?<![\w.])[-+−]?[$€£]?(?:\d{1,3}(?:,\d{3})+|\d+|(?=\.\d))(?:\.\d+)?(?:\s?/\s?[1-9]\d*)?(?!\d)")


def marked(text: str) -> str | None:
    """What follows the last "answer is" or "Answer:", up to the end of its line; None without such a mark."""
    marks = list(_MARK.finditer(text))
    if not marks:
        return None
    rest = text[marks[-1].end() :].strip()
    return tidy(rest.split("\n")[0])


def boxed(text: str) -> str | None:
    """The content of the last `\\boxed{...}`, braces balanced; None without one."""
    for opening in reversed(list(_BOX.finditer(text))):
        depth = 1
        for place in range(opening.end(), len(text)):
            depth += (text[place] == "{") - (text[place] == "}")
            if depth == 0:
                return text[opening.end() : place].strip()
    return None


def final(text: str) -> str:
    """The final answer: the last box, else what is marked as the answer, else the last line that says something."""
    box = boxed(text)
    if box is not None:
        return tidy(box)
    mark = marked(text)
    if mark:
        return mark
    lines = [line for line in text.splitlines() if line.strip()]
    return tidy(lines[-1]) if lines else ""


def tidy(text: str) -> str:
    """Without the emphasis, quotes and full stop around an answer."""
    text = text.strip(_TRIMMED)
    if text.endswith(".") and not text.endswith(".."):
        text = text[:-1]
    return text.strip(_TRIMMED)


def number(text: str) -> float | None:
    """The number an answer ends with: the first after its mark (the last, where an equation stands there), else the last of
    the text."""
    box = boxed(text)
    mark = box if box is not None else marked(text)
    if mark is not None:
        found = _DIGITS.findall(mark.rpartition("=")[2]) or _DIGITS.findall(mark)
        if found:
            return value(found[0])
    found = _DIGITS.findall(text)
    return value(found[-1]) if found else None


def value(text: str) -> float | None:
    """The number a text is, with thousands, fractions, a per cent or currency sign understood; None where it is none."""
    text = text.strip().replace("−", "-").replace(" ", "")
    text = re.sub(r"^([-+]?)[$€£]", r"\1", text.rstrip("%\\"))
    if re.search(r"\d,", text):
        if not re.fullmatch(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?", text):
            return None
        text = text.replace(",", "")
    if not re.fullmatch(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:/\d+(?:\.\d+)?)?(?:[eE][-+]?\d{1,3})?", text):
        return None
    top, slash, bottom = text.partition("/")
    if slash and float(bottom) == 0:
        return None
    found = float(top) / (float(bottom) if slash else 1.0)
    return found if abs(found) != float("inf") else None


def close(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-6 * max(1.0, abs(b))


def option(text: str, labels: Sequence[str], options: Sequence[str]) -> str | None:
    """The label of the one option an answer settles on, by its label or by its text; None when it names none or several."""
    settled = boxed(text) or marked(text)
    if settled:
        return _option(tidy(settled), labels, options)
    lines = [tidy(line) for line in text.splitlines() if line.strip()]
    found = _option(tidy(text), labels, options)
    return _option(lines[-1], labels, options) if found is None and len(lines) > 1 else found


def yes_or_no(text: str) -> bool | None:
    """Whether an answer says yes; None when it says neither, or both without settling."""
    for part in (marked(text), tidy(text)):
        if not part:
            continue
        first = re.match(r"\W*(yes|no|true|false)\b", part, re.IGNORECASE)
        if first:
            return first[1].lower() in ("yes", "true")
        said = {word.lower() in ("yes", "true") for word in re.findall(r"(?i)\b(yes|no|true|false)\b", part)}
        if len(said) == 1:
            return said.pop()
    return None


def _option(text: str, labels: Sequence[str], options: Sequence[str]) -> str | None:
    texts = [matching.normalised(option) for option in options]
    given = matching.normalised(text)
    whole = [label for label, option in zip(labels, texts, strict=True) if option == given]
    if len(whole) == 1:
        return whole[0]
    named = {label for label in labels if _names(text, label)}
    if len(named) == 1:
        label = named.pop()
        return None if _contradicts(text, label, labels, texts) else label
    if named:
        return None
    within = [label for label, option in zip(labels, texts, strict=True) if stands_in(option, given)]
    longest = [
        a for a in within
        if not any(a != b and stands_in(texts[labels.index(a)], texts[labels.index(b)]) for b in within)
    ]  # fmt: skip
    return longest[0] if len(longest) == 1 else None


def _names(text: str, label: str) -> bool:
    """Whether a label stands in a text as a label: `A`, `(A)`, `A)`, `A or B`, but not the `A` of "A dog" nor the `I` of
    "I think"."""
    sign = re.escape(label)
    bracketed = rf"[(\[{{]\s*{sign}\s*[)\]}}]"
    alone = rf"(?<![\w'’])(?:option\s+)?{sign}(?=\s*(?:[).:,;*/]|$|or\b|and\b|\bbecause\b|\bsince\b|\bas\b|-))"
    after = rf"(?:\bor|\band|option|choice|/)\s*{sign}(?![\w'’])"
    if re.search(rf"{bracketed}|{alone}|{after}", text):
        return True
    return re.fullmatch(rf"\W*{sign}\W*", text, re.IGNORECASE) is not None


def _contradicts(text: str, label: str, labels: Sequence[str], texts: Sequence[str]) -> bool:
    """Whether exactly the text of another option stands behind the label, as in "(B) Paris" where Paris is (C)."""
    behind = re.sub(rf"^\W*(?:option\s+)?{re.escape(label)}\W+", "", text, count=1)
    said = matching.normalised(behind)
    own = texts[labels.index(label)]
    return bool(said) and said != own and said in texts
