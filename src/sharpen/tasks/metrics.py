"""How an answer text is scored: the metrics a task can name, and what each of them counts as equal.

A metric maps (answer text, item) to a `Score`. `hard` is what training aims at, `soft` a finer scale for the same thing,
`feedback` one sentence on what was wrong that never needs to repeat the reference. A name may carry settings:
`numeric?tolerance=0.01`, `choice?labels=red,green`. A reference that is a list holds several accepted answers, and the best
of them counts (except for `json_equal`, where a list is a value).

- `exact_match`: equal after normalisation: Unicode NFKC, case ignored, runs of white space as one space, quotes,
  backticks, asterisks around the answer and one full stop at its end removed. `soft` is the share of words in common (F1).
- `contains`: the normalised reference stands in the normalised answer, not inside a longer word.
- `f1`: the F1 of the words in common, after normalisation and without punctuation and the articles a, an, the.
- `numeric`: the last number in the answer is within `tolerance` (relative above 1, absolute below; default 1e-6).
- `json_equal`: the JSON value in the answer (alone, in a fence, or the first object or list in a text) equals the
  reference. `soft` is the share of matching fields.
- `choice`: the one label the answer settles on is the reference. Labels come from the setting, from the item's field
  `choices`, or else the answer's first word counts.
- `regex`: the reference is a regular expression that is found in the answer.
- `path/to/file.py:function` or `package.module:function`: your own; see `sharpen.tasks.own_metric`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from sharpen.core.errors import UsageError, nearest
from sharpen.core.item import Item
from sharpen.tasks import matching


@dataclass(frozen=True, slots=True)
class Score:
    hard: float
    soft: float
    feedback: str = ""


@dataclass(frozen=True, slots=True)
class Metric:
    """A scorer with the name it was asked for by. `identity` changes whenever the same answer might score differently."""

    name: str
    identity: str
    score: Callable[[str, Item], Score]
    own: bool = False

    def __call__(self, answer: str, item: Item) -> Score:
        return self.score(answer, item)


RIGHT = Score(1.0, 1.0)


def get(spec: str, *, labels: tuple[str, ...] = ()) -> Metric:
    """The metric called `spec`. `labels` are those of the whole data set, for `choice` without labels of its own."""
    if ":" in spec.partition("?")[0]:
        from sharpen.tasks.own_metric import load

        return load(spec)
    name, _, query = spec.partition("?")
    if name not in _BUILT_IN:
        known = (*_BUILT_IN, "path/to/file.py:function")
        raise UsageError(f"unknown metric {name!r}; known are {', '.join(known)}{nearest(name, known)}")
    settings = dict(parse_qsl(query, keep_blank_values=True))
    if name == "choice" and labels and "labels" not in settings:
        settings["labels"] = ",".join(labels)
    return Metric(
        name, f"{name}/1?{sorted(settings.items())}" if settings else f"{name}/1", _BUILT_IN[name](spec, settings)
    )


def _exact_match(spec: str, settings: dict[str, str]) -> Callable[[str, Item], Score]:
    _only(spec, settings)

    def score(answer: str, item: Item) -> Score:
        given = matching.normalised(answer)
        wanted = [matching.normalised(str(text)) for text in accepted(item)]
        if given in wanted:
            return RIGHT
        soft = max(matching.f1(given.split(), text.split()) for text in wanted)
        return Score(0.0, soft, _mismatch(answer, given, wanted[0]))

    return score


def _contains(spec: str, settings: dict[str, str]) -> Callable[[str, Item], Score]:
    _only(spec, settings)

    def score(answer: str, item: Item) -> Score:
        given = matching.normalised(answer)
        if any(matching.stands_in(matching.normalised(str(text)), given) for text in accepted(item)):
            return RIGHT
        return Score(0.0, 0.0, f"the expected text does not occur in the answer, which is {matching.describe(answer)}")

    return score


def _f1(spec: str, settings: dict[str, str]) -> Callable[[str, Item], Score]:
    _only(spec, settings)

    def score(answer: str, item: Item) -> Score:
        given = matching.words(answer)
        value = max(matching.f1(given, matching.words(str(text))) for text in accepted(item))
        note = (
            ""
            if value == 1.0
            else f"{value:.0%} word overlap with the expected answer; got {matching.describe(answer)}"
        )
        return Score(value, value, note)

    return score


def _numeric(spec: str, settings: dict[str, str]) -> Callable[[str, Item], Score]:
    _only(spec, settings, "tolerance")
    try:
        tolerance = float(settings.get("tolerance", "1e-6"))
    except ValueError:
        tolerance = -1.0
    if not tolerance >= 0:
        raise UsageError(
            f"metric {spec!r}: tolerance must be a number of 0 or more, for example numeric?tolerance=0.01"
        )

    def score(answer: str, item: Item) -> Score:
        wanted = [matching.last_number(str(text)) for text in accepted(item)]
        numbers = [number for number in wanted if number is not None]
        if not numbers:
            raise UsageError(f"item {item.id!r}: metric numeric needs a number as the answer, got {item.reference!r}")
        given = matching.last_number(answer)
        if given is None:
            return Score(0.0, 0.0, f"expected a number, got {matching.describe(answer)}")
        error = min(abs(given - number) / max(1.0, abs(number)) for number in numbers)
        if error <= tolerance:
            return RIGHT
        side = "small" if given < numbers[0] else "large"
        return Score(0.0, max(0.0, 1.0 - error), f"the number {given:g} is too {side}")

    return score


def _json_equal(spec: str, settings: dict[str, str]) -> Callable[[str, Item], Score]:
    _only(spec, settings)

    def score(answer: str, item: Item) -> Score:
        found, wanted = (
            matching.find_json(item.reference) if isinstance(item.reference, str) else (True, item.reference)
        )
        if not found:
            raise UsageError(f"item {item.id!r}: metric json_equal needs JSON as the answer, got {item.reference!r}")
        found, given = matching.find_json(answer)
        if not found:
            return Score(0.0, 0.0, f"expected JSON, got {matching.describe(answer)}")
        if matching.same_json(given, wanted):
            return RIGHT
        return Score(0.0, matching.json_overlap(given, wanted), matching.json_difference(given, wanted))

    return score


def _choice(spec: str, settings: dict[str, str]) -> Callable[[str, Item], Score]:
    _only(spec, settings, "labels")
    fixed = tuple(label.strip() for label in settings.get("labels", "").split(",") if label.strip())

    def score(answer: str, item: Item) -> Score:
        own = item.inputs.get("choices")
        labels = tuple(map(str, own)) if isinstance(own, Mapping | list | tuple) else fixed
        given = matching.settled_label(answer, labels)
        if given is None:
            return Score(0.0, 0.0, f"expected one label, got {matching.describe(answer)}")
        if any(matching.normalised(given) == matching.normalised(str(text)) for text in accepted(item)):
            return RIGHT
        known = not labels or given in labels
        return Score(0.0, 0.0, f"{given!r} is the wrong label" if known else f"{given!r} is none of the labels")

    return score


def _regex(spec: str, settings: dict[str, str]) -> Callable[[str, Item], Score]:
    _only(spec, settings)
    import re

    def score(answer: str, item: Item) -> Score:
        for pattern in accepted(item):
            try:
                if re.search(str(pattern), answer.strip()):
                    return RIGHT
            except re.error as error:
                raise UsageError(f"item {item.id!r}: {pattern!r} is not a regular expression: {error}") from error
        return Score(0.0, 0.0, f"the expected pattern is not found; got {matching.describe(answer)}")

    return score


_BUILT_IN: dict[str, Callable[[str, dict[str, str]], Callable[[str, Item], Score]]] = {
    "exact_match": _exact_match,
    "contains": _contains,
    "f1": _f1,
    "numeric": _numeric,
    "json_equal": _json_equal,
    "choice": _choice,
    "regex": _regex,
}


def names() -> tuple[str, ...]:
    """The names of the built-in metrics."""
    return tuple(_BUILT_IN)


def accepted(item: Item) -> list[object]:
    """The references of which any one will do."""
    if item.reference is None or item.reference == []:
        raise UsageError(f"item {item.id!r} has no answer to compare with")
    return list(item.reference) if isinstance(item.reference, list | tuple) else [item.reference]


def _only(spec: str, settings: dict[str, str], *allowed: str) -> None:
    for name in settings:
        if name not in allowed:
            takes = f"takes {', '.join(allowed)}" if allowed else "takes no settings"
            raise UsageError(f"metric {spec!r}: unknown setting {name!r}; it {takes}{nearest(name, allowed)}")


def _mismatch(answer: str, given: str, wanted: str) -> str:
    if matching.stands_in(wanted, given):
        return f"the answer stands among other words; got {matching.describe(answer)}"
    kind = matching.kind(wanted)
    if matching.kind(given) != kind or (kind == "code" and matching.form(given) != matching.form(wanted)):
        return f"expected {matching.describe_kind(wanted)}, got {matching.describe(answer)}"
    return f"right form, wrong value: {_short(answer)}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= 60 else line[:57] + "...")
