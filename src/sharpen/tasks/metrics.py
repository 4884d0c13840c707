"""How an answer text is scored: the metrics a task can name, and what each of them counts as equal.

A metric maps (answer text, item) to a `Score`. `hard` is what training aims at, `soft` a finer scale for the same thing,
`feedback` one sentence on what was wrong that never needs to repeat the reference. A name may carry settings:
`numeric?tolerance=0.01`, `choice?labels=red,green`. A reference that is a list holds several accepted answers, and the best
of them counts (except for `json_equal`, where a list is a value).

- `exact_match`: equal after normalisation: Unicode NFKC, case ignored, runs of white space as one space, quotes,
  backticks, asterisks around the answer and one full stop at its end removed. Where nothing would be left, nothing is
  removed: `*` equals `*` and not an empty answer. `soft` is the share of words in common (F1).
- `contains`: the normalised reference stands in the answer, not inside a longer word (where the script has spaces).
- `f1`: the F1 of the words in common, after normalisation and without punctuation and the articles a, an, the; a text of
  nothing else keeps them.
- `numeric`: the last number in the answer is within `tolerance` (relative above 1, absolute below; default 1e-6). The
  reference must hold exactly one number.
- `json_equal`: the JSON value in the answer (alone, in a fence, or the first object or list in a text) equals the
  reference. `soft` is the share of matching fields.
- `choice`: the one label the answer settles on is the reference. Labels come from the item's field `choices`, from the
  setting, from all answers of the data, or else the answer's first word counts.
- `regex`: the reference is a regular expression that is found in the answer. A search that takes too long has no score.
- `path/to/file.py:function` or `package.module:function`: your own; see `sharpen.tasks.own_metric`.

No answer makes a built-in metric fail: what cannot be read is wrong. A search for a pattern may take longer than it may:
that is a `ScoringTimeout`, the failure of one rollout. A reference that cannot be compared with is a `BadReference`, and
`check` finds it before anything is scored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from sharpen.core.digest import canonical
from sharpen.core.errors import ScoringTimeout, UsageError, nearest
from sharpen.core.item import Item
from sharpen.tasks import matching
from sharpen.tasks.borders import stands_in


class BadReference(UsageError):
    """An item whose reference the metric cannot compare with. `problem` is the message without the item's id, for those
    who know better where it stands."""

    def __init__(self, item: Item, problem: str) -> None:
        super().__init__(f"item {item.id!r}: {problem}")
        self.problem = problem


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


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a metric is made from: the whole name, its settings, and the labels of `choice`."""

    spec: str
    settings: Mapping[str, str]
    labels: tuple[str, ...]


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
    if "labels" in settings:
        labels = tuple(label.strip() for label in settings["labels"].split(",") if label.strip())
    version, make = _BUILT_IN[name]
    meaning: dict[str, object] = dict(settings)
    if name == "choice" and labels:
        meaning["labels"] = list(labels)
    identity = f"{name}/{version}?{canonical(meaning)}" if meaning else f"{name}/{version}"
    return Metric(name, identity, make(_Asked(spec, settings, labels)))


def check(metric: Metric, item: Item) -> None:
    """Meet a reference that the metric would misread now, not when the first answer comes. An own metric knows best."""
    if metric.own:
        return
    if metric.name != "json_equal":
        for wanted in accepted(item):
            if wanted is None or (isinstance(wanted, str) and not wanted.strip()):
                raise BadReference(item, f"the answer {_shown(item.reference)} holds an empty text or null; remove it")
            if isinstance(wanted, Mapping | list):
                kind = "an object" if isinstance(wanted, Mapping) else "a list inside a list"
                raise BadReference(
                    item, f"metric {metric.name} compares texts, and the answer is {kind}; take json_equal, or a text"
                )
    try:
        metric("", item)
    except ScoringTimeout as error:
        raise BadReference(item, f"{_shown(item.reference)}: {error}") from error


def _exact_match(asked: _Asked) -> Callable[[str, Item], Score]:
    _only(asked)

    def score(answer: str, item: Item) -> Score:
        given = matching.normalised(answer)
        wanted = [matching.normalised(str(text)) for text in accepted(item)]
        if given in wanted:
            return RIGHT
        soft = max(matching.f1(given.split(), text.split()) for text in wanted)
        return Score(0.0, soft, _mismatch(answer, given, wanted[0]))

    return score


def _contains(asked: _Asked) -> Callable[[str, Item], Score]:
    _only(asked)

    def score(answer: str, item: Item) -> Score:
        given = matching.folded(answer)
        if any(stands_in(matching.normalised(str(text)), given) for text in accepted(item)):
            return RIGHT
        return Score(0.0, 0.0, f"the expected text does not occur in the answer, which is {matching.describe(answer)}")

    return score


def _f1(asked: _Asked) -> Callable[[str, Item], Score]:
    _only(asked)

    def score(answer: str, item: Item) -> Score:
        given = matching.compared_words(answer)
        value = max(matching.f1(given, matching.compared_words(str(text))) for text in accepted(item))
        note = (
            ""
            if value == 1.0
            else f"{value:.0%} word overlap with the expected answer; got {matching.describe(answer)}"
        )
        return Score(value, value, note)

    return score


def _numeric(asked: _Asked) -> Callable[[str, Item], Score]:
    _only(asked, "tolerance")
    try:
        tolerance = float(asked.settings.get("tolerance", "1e-6"))
    except ValueError:
        tolerance = -1.0
    if not 0 <= tolerance < float("inf"):
        raise UsageError(
            f"metric {asked.spec!r}: tolerance must be a number of 0 or more, for example numeric?tolerance=0.01"
        )

    def score(answer: str, item: Item) -> Score:
        numbers = _numbers(item)
        given = matching.last_number(answer)
        if given is None:
            return Score(0.0, 0.0, f"expected a number, got {matching.describe(answer)}")
        error = min(abs(given - number) / max(1.0, abs(number)) for number in numbers)
        if error <= tolerance:
            return RIGHT
        side = "small" if given < numbers[0] else "large"
        return Score(0.0, max(0.0, 1.0 - error), f"the number {given:g} is too {side}")

    return score


def _numbers(item: Item) -> list[float]:
    """The accepted numbers. A spelling without digits may stand beside them in a list."""
    numbers = []
    for text in map(str, accepted(item)):
        number = matching.only_number(text)
        if number is not None:
            numbers.append(number)
        elif any(character.isdecimal() for character in text):
            raise BadReference(
                item,
                f"metric numeric needs one number as the answer, such as 0.5, 1,234.5 or 12 kg, got {_shown(text)}",
            )
    if not numbers:
        raise BadReference(item, f"metric numeric needs a number as the answer, got {_shown(item.reference)}")
    return numbers


def _json_equal(asked: _Asked) -> Callable[[str, Item], Score]:
    _only(asked)

    def score(answer: str, item: Item) -> Score:
        found, wanted = (
            matching.find_json(item.reference) if isinstance(item.reference, str) else (True, item.reference)
        )
        if not found:
            raise BadReference(item, f"metric json_equal needs JSON as the answer, got {_shown(item.reference)}")
        found, given = matching.find_json(answer)
        if not found:
            return Score(0.0, 0.0, f"expected JSON, got {matching.describe(answer)}")
        if matching.same_json(given, wanted):
            return RIGHT
        return Score(0.0, matching.json_overlap(given, wanted), matching.json_difference(given, wanted))

    return score


def _choice(asked: _Asked) -> Callable[[str, Item], Score]:
    _only(asked, "labels")

    def score(answer: str, item: Item) -> Score:
        own = item.inputs.get("choices")
        labels = tuple(map(str, own)) if isinstance(own, Mapping | list | tuple) else asked.labels
        given = matching.settled_label(answer, labels)
        if given is None:
            return Score(0.0, 0.0, f"expected one label, got {matching.describe(answer)}")
        if any(matching.normalised(given) == matching.normalised(str(text)) for text in accepted(item)):
            return RIGHT
        known = not labels or given in labels
        return Score(0.0, 0.0, f"{given!r} is the wrong label" if known else f"{given!r} is none of the labels")

    return score


def _regex(asked: _Asked) -> Callable[[str, Item], Score]:
    _only(asked)
    from sharpen.tasks.pattern_search import BadPattern, PatternSearcher

    searcher = PatternSearcher()

    def score(answer: str, item: Item) -> Score:
        try:
            found = searcher.finds_any([str(text) for text in accepted(item)], answer.strip())
        except BadPattern as error:
            raise BadReference(item, f"{_shown(error.pattern)} is not a regular expression: {error}") from error
        if found:
            return RIGHT
        return Score(0.0, 0.0, f"the expected pattern is not found; got {matching.describe(answer)}")

    return score


_BUILT_IN: dict[str, tuple[int, Callable[[_Asked], Callable[[str, Item], Score]]]] = {
    "exact_match": (2, _exact_match),
    "contains": (2, _contains),
    "f1": (2, _f1),
    "numeric": (2, _numeric),
    "json_equal": (2, _json_equal),
    "choice": (2, _choice),
    "regex": (1, _regex),
}
"""Each with its version, which goes up when the same answer may score differently from before."""


def names() -> tuple[str, ...]:
    """The names of the built-in metrics."""
    return tuple(_BUILT_IN)


def accepted(item: Item) -> list[object]:
    """The references of which any one will do."""
    if item.reference is None or item.reference == []:
        raise BadReference(item, "no answer to compare with")
    return list(item.reference) if isinstance(item.reference, list | tuple) else [item.reference]


def _only(asked: _Asked, *allowed: str) -> None:
    for name in asked.settings:
        if name not in allowed:
            takes = f"takes {', '.join(allowed)}" if allowed else "takes no settings"
            raise UsageError(f"metric {asked.spec!r}: unknown setting {name!r}; it {takes}{nearest(name, allowed)}")


def _mismatch(answer: str, given: str, wanted: str) -> str:
    if stands_in(wanted, given):
        return f"the answer stands among other words; got {matching.describe(answer)}"
    kind = matching.kind(wanted)
    if matching.kind(given) != kind or (kind == "code" and matching.form(given) != matching.form(wanted)):
        return f"expected {matching.describe_kind(wanted)}, got {matching.describe(answer)}"
    return f"right form, wrong value: {_short(answer)}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= 60 else line[:57] + "...")


def _shown(reference: object) -> str:
    whole = repr(reference)
    return whole if len(whole) <= 60 else whole[:57] + "..."
