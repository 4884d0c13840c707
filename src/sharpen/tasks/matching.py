"""What the metrics agree on: when two texts are equal, which number, JSON value or label a text holds, what a text is.

Pure functions over texts and JSON values. `sharpen.tasks.metrics` turns their answers into scores and feedback.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice

from sharpen.core.digest import Json
from sharpen.tasks.borders import stands_in
from sharpen.tasks.jsonvalue import too_deep

_WRAPPERS = "\"'`*“”‘’«»"
_NUMBER = re.compile(r"(?<![\w.])[-+−–]?(?=\.?\d)(?:\d{1,3}(?:,\d{3})+|\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?(?!\d)")
_MINUS = ("-", "−", "–")
_FENCE = re.compile(r"```[a-zA-Z]*[^\S\n]*\n(.*?)```", re.DOTALL)
_DECODER = json.JSONDecoder()
_MAX_STARTS = 1000  # each start may read all that follows, so brackets without end would take minutes
_SETTLED = re.compile(r"(?i)\b(?:answer|label|category|choice|class)\b\s*(?:is|:|=|-)+\s*")


def folded(text: str) -> str:
    """A text with nothing of it lost but case, and white space beyond one space."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def normalised(text: str) -> str:
    """A text as the metrics compare it; applying it twice changes nothing. One of quotes and stops alone keeps them, since
    it would otherwise equal an empty one."""
    whole = text = folded(text)
    while True:
        shorter = text.strip(_WRAPPERS + " ")
        if shorter.endswith(".") and not shorter.endswith(".."):
            shorter = shorter[:-1]
        if shorter == text:
            return text or whole
        text = shorter


def compared_words(text: str) -> list[str]:
    """The words of a text as F1 counts them. One of articles or of punctuation alone keeps them, since it would otherwise
    equal an empty one."""
    return words(text) or re.findall(r"\w+", folded(text)) or folded(text).split()


def words(text: str) -> list[str]:
    """The words of a text without punctuation and articles."""
    found = re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold())
    return [word for word in found if word not in ("a", "an", "the")]


def f1(given: Sequence[str], wanted: Sequence[str]) -> float:
    """The harmonic mean of precision and recall of words; 1 when both are empty."""
    if not given or not wanted:
        return float(list(given) == list(wanted))
    common = sum((Counter(given) & Counter(wanted)).values())
    return 2 * common / (len(given) + len(wanted))


def last_number(text: str) -> float | None:
    """The last number written in digits, or None."""
    found = _NUMBER.findall(text)
    if not found:
        return None
    value = float(found[-1].replace(",", "").replace("−", "-").replace("–", "-"))
    return value if abs(value) != float("inf") else None


def only_number(text: str) -> float | None:
    """The number a text holds besides words or signs such as a unit or a currency, or None where it could be misread:
    without a number, with a second one, with digits or a minus that are no part of it ("1/2", "1 000", "12,5")."""
    found = list(_NUMBER.finditer(text))
    if len(found) != 1:
        return None
    before, after = text[: found[0].start()], text[found[0].end() :]
    if any(character.isnumeric() for character in before + after) or before.rstrip(" $€£¥").endswith(_MINUS):
        return None
    return last_number(text)


def find_json(text: str) -> tuple[bool, Json]:
    """The JSON value a text holds: the whole text, the content of a fence, or the first object or list in it. What cannot
    be parsed, or is nested beyond all use, is none."""
    fenced = _FENCE.search(text)
    for candidate in (text, fenced[1] if fenced else ""):
        found, value = _decoded(candidate)
        if found:
            return True, value
    for start in islice(re.finditer(r"[{\[]", text), _MAX_STARTS):
        found, value = _decoded(text, start.start())
        if found:
            return True, value
    return False, None


def _decoded(text: str, start: int | None = None) -> tuple[bool, Json]:
    """All of a text as JSON, or the value that begins at `start`."""
    try:
        value = json.loads(text) if start is None else _DECODER.raw_decode(text, start)[0]
    except (ValueError, RecursionError):
        return False, None
    return (False, None) if too_deep(value) else (True, value)


def same_json(a: Json, b: Json) -> bool:
    """Equality of JSON values: key order and 1 against 1.0 do not matter, true against 1 does."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same_json(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same_json, a, b))
    return type(a) is type(b) and a == b if isinstance(a, str) or isinstance(b, str) else bool(a == b)


def json_overlap(given: Json, wanted: Json) -> float:
    """The share of fields, of either side, that are the same in both."""
    if not isinstance(given, Mapping) or not isinstance(wanted, Mapping):
        return float(same_json(given, wanted))
    fields = {*given, *wanted}
    same = sum(key in given and key in wanted and same_json(given[key], wanted[key]) for key in fields)
    return same / len(fields) if fields else 1.0


def json_difference(given: Json, wanted: Json) -> str:
    """One sentence on what is wrong, by field where both are objects."""
    if isinstance(given, Mapping) and isinstance(wanted, Mapping):
        missing = [key for key in wanted if key not in given]
        extra = [key for key in given if key not in wanted]
        wrong = [key for key in wanted if key in given and not same_json(given[key], wanted[key])]
        groups = (("missing", missing), ("unexpected", extra), ("wrong value in", wrong))
        return "; ".join(f"{what} {', '.join(map(repr, keys))}" for what, keys in groups if keys)
    if type(given) is not type(wanted):
        return f"expected a JSON {_json_kind(wanted)}, got a JSON {_json_kind(given)}"
    return f"the JSON {_json_kind(given)} has the wrong value"


def settled_label(answer: str, labels: Sequence[str]) -> str | None:
    """The one label an answer settles on, or None when it names none or several without saying which.

    What follows a phrase such as "the answer is" counts before the rest; among the rest, a label is taken only when no
    other is named. Without known labels the first word counts. A one-letter label must not be an ordinary word: `A` as a
    label is found in "(A)", "A." or alone, never in "a dog".
    """
    text = unicodedata.normalize("NFKC", answer).strip()
    ends = [match.end() for match in _SETTLED.finditer(text)]
    settled = [text[end:].strip().split("\n")[0] for end in ends[-1:]]
    labels = [label for label in labels if label.strip()]
    for part in (part.strip(_WRAPPERS + " ") or part for part in (*settled, text)):
        if not labels:
            first = re.match(r"\(?([\w-]+)", part)
            if first:
                return first[1]
            continue
        whole = [label for label in labels if normalised(part).strip("().: ") == normalised(label)]
        if whole:
            return whole[0]
        named = [label for label in labels if _names(part, label)]
        longest = [a for a in named if not any(a != b and stands_in(normalised(a), normalised(b)) for b in named)]
        if len(longest) == 1:
            return longest[0]
    return None


def _names(text: str, label: str) -> bool:
    if len(label) == 1 and label.isalpha():
        return re.search(rf"(?:^|[\s(*]){re.escape(label)}(?:[).:*,]|\s*$)", text) is not None
    return stands_in(folded(label), folded(text))


def kind(text: str) -> str:
    """What a text looks like: nothing, number, json, code (a word with digits in it), word, phrase or sentence."""
    text = text.strip()
    if not text:
        return "nothing"
    if _NUMBER.fullmatch(text):
        return "number"
    if text[0] in "{[" and find_json(text)[0]:
        return "json"
    count = len(text.split())
    if count == 1:
        return "code" if any(character.isdigit() for character in text) else "word"
    return "phrase" if count <= 4 else "sentence"


def describe(text: str) -> str:
    """What a text is, in words, for feedback."""
    count = len(text.split())
    return {
        "nothing": "nothing",
        "number": f"the number {text.strip()[:40]}",
        "json": "JSON",
        "code": f"the text {text.strip()[:40]!r}",
        "word": f"the word {text.strip()[:40]!r}",
        "phrase": f"{count} words",
        "sentence": f"a sentence of {count} words",
    }[kind(text)]


def describe_kind(text: str) -> str:
    """What would have been right, without saying it."""
    count = len(text.split())
    return {
        "nothing": "an empty answer",
        "number": "a number",
        "json": "JSON",
        "code": f"one text of the form {form(text.strip())}",
        "word": "one word",
        "phrase": f"{count} words",
        "sentence": f"a text of {count} words",
    }[kind(text)]


def form(text: str) -> str:
    """A text with every digit as 0 and every letter as a: what it looks like without what it says."""
    return "".join("0" if c.isdigit() else "a" if c.isalpha() else c for c in text)


def _json_kind(value: Json) -> str:
    if isinstance(value, Mapping):
        return "object"
    if isinstance(value, list):
        return "list"
    return "text" if isinstance(value, str) else "truth value" if isinstance(value, bool) else "number"
