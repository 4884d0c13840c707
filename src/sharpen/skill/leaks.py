"""The leak check: what an edit copied into the skill from items that only judge it.

A val or test item has leaked when text that was not in the candidate before holds (1) the item's whole input with its
answer beside it, as in a worked example or a rule such as "- forty-two: 42"; (2) a long answer of it, three words and
twelve characters at least; or (3) a run of six words (24 characters at least) of its input, or all of a shorter input that
is 24 characters long. Case, spacing and, for the long runs, punctuation do not matter. What also stands in the candidate
before, or in a train item, is no leak: labels, templates and common answers such as "42" or "yes" are never one on
their own.

A `LeakIndex` is built once per task; each check then takes time in proportion to the length of the candidates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sharpen.core.candidate import Candidate
from sharpen.core.item import Item
from sharpen.core.task import Splits
from sharpen.skill import examples

Words = tuple[str, ...]

RUN_WORDS = 6
RUN_CHARS = 24
ANSWER_WORDS = 3
ANSWER_CHARS = 12
_REACH = 12
"""Tokens that may stand between an input and its answer on one line; fewer where the input is a single word, since
one word is easily met by chance."""
_REACH_OF_ONE = 4
_LONGEST = 40
"""Words of an answer, and tokens of an input, that are looked for as a whole; a longer input is found by its runs."""
_SHOWN = 80

_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_IDEOGRAPHS}]|[^\W{_IDEOGRAPHS}]+")
_TOKEN = re.compile(rf"[{_IDEOGRAPHS}]|[^\W{_IDEOGRAPHS}]+|[^\w\s]")


class LeakKind(StrEnum):
    PAIR = "input and answer"
    ANSWER = "answer"
    INPUT = "input"


@dataclass(frozen=True, slots=True)
class Leak:
    """One item that an edit gave away: which, and by what words (shortened)."""

    item_id: str
    split: str
    kind: LeakKind
    match: str


@dataclass(frozen=True, slots=True)
class _Held:
    item_id: str
    split: str
    input: Words
    answers: tuple[Words, ...]


class LeakIndex:
    """All that must not be copied from the val and test items of a task, ready to be looked for."""

    def __init__(self, splits: Splits, answers: Callable[[Item], Sequence[str]]) -> None:
        self._held: list[_Held] = []
        self._inputs: dict[Words, list[int]] = {}
        self._phrases: dict[Words, list[tuple[int, LeakKind]]] = {}
        self._runs: dict[Words, list[int]] = {}
        for split in ("val", "test"):
            for item in splits[split]:
                self._add(item, split, answers(item))
        self._input_sizes = sorted({len(tokens) for tokens in self._inputs})
        self._phrase_sizes = sorted({len(words) for words in self._phrases})
        self._train = [_padded(_words("\n".join([*_texts(item), *answers(item)]))) for item in splits.train]
        self._train_pairs = self._pairs(
            _tokens(item.text) + _tokens(answer) for item in splits.train for answer in answers(item)
        )
        self._known: dict[Words, bool] = {}

    def find(self, before: Candidate, after: Candidate) -> list[Leak]:
        """The val and test items that `after` gives away and `before` did not, in item order, one leak per item."""
        if before == after:
            return []
        old_pairs = self._pairs(_units(before))
        found: dict[int, tuple[LeakKind, str]] = {}
        for number, tokens in self._pairs(_units(after)).items():
            if number not in old_pairs and number not in self._train_pairs:
                found[number] = (LeakKind.PAIR, " ".join(tokens))
        old_words = _padded(_words(_all_text(before)))
        for number, kind, words in self._copied(_words(_all_text(after))):
            if number not in found and _padded(words) not in old_words and not self._in_train(words):
                found[number] = (kind, " ".join(words))
        return [
            Leak(self._held[number].item_id, self._held[number].split, kind, _shortened(match))
            for number, (kind, match) in sorted(found.items())
        ]

    def _add(self, item: Item, split: str, answers: Sequence[str]) -> None:
        number = len(self._held)
        held = _Held(item.id, split, _trimmed(_tokens(item.text)), tuple(filter(None, map(_bare, answers))))
        self._held.append(held)
        if held.input and held.answers and len(held.input) <= _LONGEST:
            self._inputs.setdefault(held.input, []).append(number)
        for words in dict.fromkeys(map(_words, answers)):
            if len(words) >= ANSWER_WORDS and len(" ".join(words)) >= ANSWER_CHARS:
                self._phrases.setdefault(words[:_LONGEST], []).append((number, LeakKind.ANSWER))
        for text in _texts(item):
            words = _words(text)
            if len(words) < RUN_WORDS and len(" ".join(words)) >= RUN_CHARS:
                self._phrases.setdefault(words, []).append((number, LeakKind.INPUT))
            for run in dict.fromkeys(_runs(words)):
                self._runs.setdefault(run, []).append(number)

    def _pairs(self, units: Iterable[Words]) -> dict[int, Words]:
        """The items whose input and answer stand side by side in one of the units, with the words that say so."""
        found: dict[int, Words] = {}
        for tokens in units:
            for size in self._input_sizes:
                for at in range(len(tokens) - size + 1):
                    for number in self._inputs.get(tokens[at : at + size], ()):
                        answer = self._beside(tokens, at, at + size, self._held[number].answers)
                        if answer and number not in found:
                            found[number] = (*tokens[at : at + size], *answer)
        return found

    @staticmethod
    def _beside(tokens: Words, start: int, end: int, answers: tuple[Words, ...]) -> Words:
        reach = _REACH_OF_ONE if end - start == 1 else _REACH
        for answer in answers:
            left = tokens[max(0, start - reach - len(answer)) : start]
            right = tokens[end : end + reach + len(answer)]
            if _holds(left, answer) or _holds(right, answer):
                return answer
        return ()

    def _copied(self, words: Words) -> Iterator[tuple[int, LeakKind, Words]]:
        """Every long answer, short whole input and run of an input that stands in `words`."""
        for size in self._phrase_sizes:
            for at in range(len(words) - size + 1):
                phrase = words[at : at + size]
                for number, kind in self._phrases.get(phrase, ()):
                    yield number, kind, phrase
        for run in _runs(words):
            for number in self._runs.get(run, ()):
                yield number, LeakKind.INPUT, run

    def _in_train(self, words: Words) -> bool:
        if words not in self._known:
            phrase = _padded(words)
            self._known[words] = any(phrase in text for text in self._train)
        return self._known[words]


def find_leaks(
    before: Candidate, after: Candidate, splits: Splits, answers: Callable[[Item], Sequence[str]]
) -> list[Leak]:
    """The leaks of one change; `answers` is the task's. For more than one change, keep a `LeakIndex`."""
    return LeakIndex(splits, answers).find(before, after)


def _runs(words: Words) -> Iterator[Words]:
    """From every word on, the shortest run that is long enough to be told apart. What a run is depends on its own words
    alone, so that a copy in other surroundings has the same runs."""
    end, chars = 0, -1
    for start in range(len(words)):
        while end < len(words) and (end - start < RUN_WORDS or chars < RUN_CHARS):
            chars += len(words[end]) + 1
            end += 1
        if end - start < RUN_WORDS or chars < RUN_CHARS:
            return
        yield words[start:end]
        chars -= len(words[start]) + 1


def _units(candidate: Candidate) -> Iterator[Words]:
    """What is read together when an input and its answer are looked for: a worked example, or a line."""
    for text in candidate.parts.values():
        parsed = examples.parse(text)
        for example in parsed.examples:
            yield _tokens(example.input) + _tokens(example.output)
        for line in parsed.instructions.split("\n"):
            yield _tokens(line)


def _all_text(candidate: Candidate) -> str:
    return "\n".join(candidate.parts.values())


def _texts(item: Item) -> list[str]:
    return [value for value in item.inputs.values() if isinstance(value, str)] or [item.text]


def _words(text: str) -> Words:
    return tuple(_WORD.findall(text.casefold()))


def _tokens(text: str) -> Words:
    return tuple(_TOKEN.findall(text.casefold()))


def _bare(text: str) -> Words:
    return _trimmed(_tokens(text))


def _trimmed(tokens: Words) -> Words:
    """Without punctuation at both ends, unless there is nothing else."""
    inner = [number for number, token in enumerate(tokens) if _WORD.match(token)]
    return tokens[inner[0] : inner[-1] + 1] if inner else tokens


def _padded(words: Words) -> str:
    return f" {' '.join(words)} "


def _holds(tokens: Words, wanted: Words) -> bool:
    return _padded(wanted) in _padded(tokens)


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
