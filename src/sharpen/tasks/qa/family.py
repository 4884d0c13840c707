"""What a family of questions is: the shapes its published files come in, how an answer is scored, what training starts from.

A `Shape` names the fields that tell a published format, and turns one row into drafts (most give one, a row that holds an
article with many questions gives many). A `Draft` is a question before it is an item. `shown` is the text a model is
asked: passages, question, options, nothing else; what to do with them is the skill's to say. Passages that do not fit are
left out whole, those that share the fewest words with the question first, never by what the reference says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sharpen.core.digest import Json
from sharpen.tasks import matching

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
Row = Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Draft:
    """A question as a family reads it. `answers` is None where the published row has no label."""

    question: str
    answers: Json
    id: str = ""
    passages: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    """One for each option; A, B, C where there is none."""
    type: str = ""
    split: str = ""
    """The published split, where the row itself says it."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One published format: the fields it is known by (a dot leads into an object), and how a row of it is read."""

    fields: tuple[str, ...]
    read: Callable[[Row], Iterable[Draft]]

    def fits(self, row: Row) -> bool:
        return all(has(row, field) for field in self.fields)


@dataclass(frozen=True, slots=True)
class Family:
    """One family of questions. `scorer` is a name in `sharpen.tasks.qa.scoring.SCORERS`, or `code`."""

    name: str
    description: str
    shapes: tuple[Shape, ...]
    scorer: str
    skill: str
    max_tokens: int = 512
    columns: tuple[str, ...] = ()
    """The columns of a CSV file that is published without a header."""
    dev_is_train: bool = False
    """Whether the published `dev` is meant to learn from rather than to decide with."""
    by_file: bool = False
    """Whether files or their folders are called after the task or subject they hold."""
    notes: tuple[str, ...] = ()
    """Lines for whoever improves the skill."""


def has(row: Json, path: str) -> bool:
    """Whether a row has the field at `path`."""
    first, dot, rest = path.partition(".")
    if not isinstance(row, Mapping) or first not in row:
        return False
    return has(row[first], rest) if dot else True


def shown(draft: Draft, room: int) -> str:
    """The question as it is asked, with at most `room` characters of passages."""
    parts = [*fitting(draft, room), f"Question: {draft.question.strip()}" if draft.passages else draft.question.strip()]
    if draft.options:
        options = zip(labels_of(draft), draft.options, strict=True)
        parts.append("\n".join(f"({label}) {option}" for label, option in options))
    return "\n\n".join(parts)


def labels_of(draft: Draft) -> tuple[str, ...]:
    return draft.labels or tuple(LETTERS[: len(draft.options)])


def fitting(draft: Draft, room: int) -> list[str]:
    """The passages that fit into `room` characters, in their own order; the nearest to the question are chosen first."""
    if sum(map(len, draft.passages)) <= room:
        return list(draft.passages)
    wanted = set(matching.words(" ".join((draft.question, *draft.options))))
    nearness = [_nearness(passage, wanted) for passage in draft.passages]
    kept: list[int] = []
    for number in sorted(range(len(draft.passages)), key=lambda n: (-nearness[n], n)):
        length = len(draft.passages[number])
        if length <= room:
            kept.append(number)
            room -= length
    if draft.passages and not kept:
        best = max(range(len(draft.passages)), key=lambda n: (nearness[n], -n))
        return [draft.passages[best][:room].rstrip() + " ..."]
    return [draft.passages[number] for number in sorted(kept)]


def paragraphs(text: str) -> tuple[str, ...]:
    """A long text as passages that can be left out one by one."""
    return tuple(part.strip() for part in text.split("\n\n") if part.strip())


def rows_of(columns: Json) -> list[Row]:
    """A list of objects, also from an object of equally long lists, which is how Parquet exports write it."""
    if isinstance(columns, Mapping):
        names, lists = list(columns), list(columns.values())
        return [dict(zip(names, values, strict=True)) for values in zip(*lists, strict=True)]
    return list(columns)


def letter(index: Json) -> str | None:
    """The letter of an option that is given by its place, counted from 0."""
    return LETTERS[index] if isinstance(index, int) and not isinstance(index, bool) and 0 <= index < 26 else None


def labelled(text: Json) -> str | None:
    """A label, or None where the published row leaves it empty."""
    stripped = str(text).strip() if text is not None else ""
    return stripped or None


def several(values: Sequence[Json]) -> list[Json] | None:
    """The different values that are not empty, in their order; None where there is none."""
    kept: list[Json] = []
    for value in values:
        if value not in (None, "", []) and value not in kept:
            kept.append(value)
    return kept or None


def _nearness(passage: str, wanted: set[str]) -> float:
    words = set(matching.words(passage))
    return len(words & wanted) / math.sqrt(1 + len(words))
