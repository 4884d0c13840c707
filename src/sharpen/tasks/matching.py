"""What the metrics agree on: when two texts are equal, which number, JSON value or label a text holds, what a text is.

Pure functions over texts and JSON values. `sharpen.tasks.metrics` turns their answers into scores and feedback.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence

from sharpen.core.digest import Json

_WRAPPERS = "\"'`*“”‘’«»"
_NUMBER = re.compile(r"(?<![\w.])[-+−]?(?=\.?\d)(?:\d{1,3}(?:,\d{3})+|\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?(?!\d)")
_FENCE = re.compile(r"```[a-zA-Z]*\s*\n(.*?)```", re.DOTALL)
_SETTLED = re.compile(r"(?i)\b(?:answer|label|category|choice|class)\b\s*(?:is|:|=|-)+\s*")


def normalised(text: str) -> str:
    """A text as the metrics compare it; applying it twice changes nothing."""
    text = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    while True:
        shorter = text.strip(_WRAPPERS + " ")
        if shorter.endswith(".") and not shorter.endswith(".."):
            shorter = shorter[:-1]
        if shorter == text:
            return text
        text = shorter


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


def stands_in(part: str, whole: str) -> bool:
    """Whether `part` occurs in `whole` and is not inside a longer word there."""
    if not part:
        return False
    return re.search(rf"(?<!\w){re.escape(part)}(?!\w)", whole) is not None


def last_number(text: str) -> float | None:
    """The last number written in digits, or None."""
    found = _NUMBER.findall(text)
    if not found:
        return None
    value = float(found[-1].replace(",", "").replace("−", "-"))
    return value if abs(value) != float("inf") else None


def find_json(text: str) -> tuple[bool, Json]:
    """The JSON value a text holds: the whole text, the content of a fence, or the first object or list in it."""
    fenced = _FENCE.search(text)
    for candidate in (text, fenced[1] if fenced else ""):
        try:
            return True, json.loads(candidate)
        except ValueError:
            continue
    decoder = json.JSONDecoder()
    for start in re.finditer(r"[{\[]", text):
        try:
            return True, decoder.raw_decode(text, start.start())[0]
        except ValueError:
            continue
    return False, None


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
    settled = [text[match.end() :].strip().split("\n")[0] for match in _SETTLED.finditer(text)]
    for part in (part.strip(_WRAPPERS + " ") for part in (*settled[-1:], text)):
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
    return stands_in(label.casefold(), text.casefold())


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
        "number": f"the number {text.strip()}",
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
