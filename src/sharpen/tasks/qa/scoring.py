"""How a final answer becomes a score, family by family: the rules that were published with each, on the final answer alone.

- `text`: right when the normalised answer equals an accepted one (lower case, no punctuation, no articles); soft is the
  best F1 of words in common. A reference that is a list of lists holds answers of several parts, compared part by part.
- `spans`: the same, and numbers in the expected answer must stand in the given one for any soft score (DROP's rule).
- `number`, `boxed`, `choice`, `yes_no`: right or wrong; soft is the same as hard, since a near miss is a miss.
- `fuzzy`: BIG-Bench (Extra) Hard: equal after lower case and spacing, a letter with or without brackets, equal numbers,
  quotes, square brackets around and a question mark at the end aside.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Sequence

from sharpen.core.digest import Json
from sharpen.core.item import Item
from sharpen.tasks import matching
from sharpen.tasks.metrics import RIGHT, Metric, Score, accepted
from sharpen.tasks.qa import extracting, latex

VERSION = "2"
_NO_ANSWER = "no final answer was found; end with a line such as 'Answer: ...'"
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_CLOSED = {"yes", "no", "noanswer"}


def named(name: str) -> Metric:
    """A family's scorer, as a metric."""
    return Metric(f"qa-{name}", f"qa-{name}/{VERSION}", SCORERS[name])


def plain(text: str) -> str:
    """A text as question answering compares it: lower case, without punctuation, articles and extra space."""
    text = re.sub(r"\b(a|an|the)\b", " ", text.lower().translate(_PUNCTUATION))
    return " ".join(text.split())


def _text(answer: str, item: Item) -> Score:
    return _overlap(answer, item, numbers_count=False)


def _spans(answer: str, item: Item) -> Score:
    return _overlap(answer, item, numbers_count=True)


def _overlap(answer: str, item: Item, *, numbers_count: bool) -> Score:
    given = extracting.final(answer)
    if not given:
        return Score(0.0, 0.0, _NO_ANSWER)
    best = max(_compared(given, wanted, numbers_count) for wanted in accepted(item))
    if best[0]:
        return RIGHT
    if best[1]:
        return Score(0.0, best[1], f"{best[1]:.0%} word overlap; the final answer taken was {_short(given)}")
    return Score(0.0, 0.0, f"wrong; the final answer taken was {_short(given)}")


def _compared(given: str, wanted: Json, numbers_count: bool) -> tuple[bool, float]:
    """Whether they are equal, and their overlap, for an answer of one part or of several."""
    if not isinstance(wanted, list):
        return plain(given) == plain(str(wanted)), _f1(given, str(wanted), numbers_count)
    parts = [part for part in re.split(r"\s*(?:,|;|\n|\band\b)\s*", given) if part]
    exact = sorted(map(plain, parts)) == sorted(plain(str(part)) for part in wanted)
    joined = plain(given) == plain(", ".join(map(str, wanted)))
    return exact or joined, _aligned(parts, [str(part) for part in wanted], numbers_count)


def _aligned(given: Sequence[str], wanted: Sequence[str], numbers_count: bool) -> float:
    """The mean F1 of the best pairs, each part used once; parts over on either side count as 0."""
    pairs = sorted(
        ((_f1(a, b, numbers_count), i, j) for i, a in enumerate(given) for j, b in enumerate(wanted)), reverse=True
    )
    used: tuple[set[int], set[int]] = (set(), set())
    total = 0.0
    for score, i, j in pairs:
        if i not in used[0] and j not in used[1]:
            used[0].add(i)
            used[1].add(j)
            total += score
    return total / max(len(given), len(wanted), 1)


def _f1(given: str, wanted: str, numbers_count: bool) -> float:
    a, b = plain(given), plain(wanted)
    if a != b and (a in _CLOSED or b in _CLOSED):
        return 0.0
    if numbers_count:
        needed = {word for word in b.split() if word.isdecimal()}
        if needed and not needed & set(a.split()):
            return 0.0
    return matching.f1(a.split(), b.split())


def _number(answer: str, item: Item) -> Score:
    given = extracting.number(answer)
    wanted = [extracting.value(str(text)) for text in accepted(item)]
    if given is None:
        return Score(0.0, 0.0, f"expected a number, got {matching.describe(answer)}")
    if any(number is not None and extracting.close(given, number) for number in wanted):
        return RIGHT
    return Score(0.0, 0.0, f"the final number taken, {given:g}, is wrong")


def _boxed(answer: str, item: Item) -> Score:
    given = extracting.final(answer)
    if not given:
        return Score(0.0, 0.0, _NO_ANSWER)
    if any(latex.same(given, str(wanted)) for wanted in accepted(item)):
        return RIGHT
    return Score(0.0, 0.0, f"wrong; the final answer taken was {_short(given)}")


def _choice(answer: str, item: Item) -> Score:
    options = [str(option) for option in item.inputs["choices"]]
    labels = [str(label) for label in item.inputs["labels"]]
    given = extracting.option(answer, labels, options)
    if given is None:
        said = f"{labels[0]} to {labels[-1]}"
        return Score(0.0, 0.0, f"the answer does not settle on one option; answer with one of {said}")
    if given in accepted(item):
        return RIGHT
    return Score(0.0, 0.0, f"option {given} is wrong")


def _yes_no(answer: str, item: Item) -> Score:
    given = extracting.yes_or_no(answer)
    if given is None:
        return Score(0.0, 0.0, "the answer does not say yes or no")
    said = "yes" if given else "no"
    return RIGHT if said in accepted(item) else Score(0.0, 0.0, f"{said} is wrong")


def _fuzzy(answer: str, item: Item) -> Score:
    given = _lowered(extracting.final(answer)).strip("$")
    if not given:
        return Score(0.0, 0.0, _NO_ANSWER)
    if any(_alike(given, _lowered(str(wanted))) for wanted in accepted(item)):
        return RIGHT
    return Score(0.0, 0.0, f"wrong; the final answer taken was {_short(given)}")


def _lowered(text: str) -> str:
    text = re.sub(r"\\text(?:tt)?\{([^{}]*)\}", r"\1", text)
    return text.strip().lower().replace(", ", ",").replace("**", "")


def _alike(given: str, wanted: str) -> bool:
    numbers = extracting.value(given), extracting.value(wanted)
    return (
        given == wanted
        or _bare(given) == _bare(wanted)
        or (numbers[0] is not None and numbers[0] == numbers[1])
        or given.replace("'", "") == wanted.replace("'", "")
        or given in (f"[{wanted}]", f"{wanted}?")
        or wanted == f"[{given}]"
    )


def _bare(text: str) -> str:
    """`b` for `(b)`."""
    return text[1] if re.fullmatch(r"\(.\)", text) else text


def _short(text: str) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= 60 else line[:57] + "...")


SCORERS: dict[str, Callable[[str, Item], Score]] = {
    "text": _text,
    "spans": _spans,
    "number": _number,
    "boxed": _boxed,
    "choice": _choice,
    "yes_no": _yes_no,
    "fuzzy": _fuzzy,
}
