"""One data set of reasoning-gym as a task of one question and one answer.

The data set's own scorer decides: `soft` is what it says, `hard` is 1 where it says 1. A model may think before it answers;
what counts is what stands in the last `<answer>` tags, or behind the last `Answer:`, or else the whole text. The version
of the package is part of the task's version, because another release may make other items or score differently.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from functools import cached_property

from sharpen.core.digest import Json, canonical, digest
from sharpen.core.errors import UsageError
from sharpen.core.item import Item
from sharpen.core.task import Brief, Splits
from sharpen.tasks import matching
from sharpen.tasks.metrics import RIGHT, Metric, Score
from sharpen.tasks.reasoning_gym import guard, making
from sharpen.tasks.render import VERSION
from sharpen.tasks.splitting import Deal, by_ratio, limited, parse_ratio
from sharpen.tasks.textual import TextTask

_VERSION = "1"
_TAGGED = re.compile(r"<answer>(.*?)(?:</answer>|\Z)", re.DOTALL | re.IGNORECASE)
_MARKED = re.compile(r"(?:^|\n)[ \t>*#]*(?:final )?answer[ \t*]*:[ \t*]*", re.IGNORECASE)
_STUMBLES = (*making.REFUSED, NameError, RecursionError, SyntaxError, UnicodeError)
"""What scorers raise over an answer of a form they did not expect."""


class Puzzles(TextTask):
    """`size` items of the data set `name`, drawn with `seed`. `own` are the settings of the data set itself."""

    skill = "Solve the puzzle. Give the answer alone."

    def __init__(
        self, name: str, deal: Deal, size: int, seed: int, ratio: str, max_tokens: int, own: Mapping[str, Json]
    ) -> None:
        super().__init__(deal)
        self.name = f"reasoning-gym/{name}"
        self.brief = Brief(
            f"Solve puzzles of the kind {name.replace('_', ' ')}.",
            (
                "Give only the answer, without any other words.",
                "Think step by step, then write the final answer on a line of its own after Answer:",
                "Write the answer exactly in the form that the question asks for.",
                "Check the answer against the question before you give it.",
            ),
            "the answer in the form that the question asks for",
        )
        self.max_tokens = max_tokens
        self.ratio = ratio
        parse_ratio(ratio)
        try:
            own_text = canonical(dict(own))
        except (TypeError, ValueError) as error:
            raise UsageError(f"{self.name}: a setting is not plain data: {error}") from None
        self._source = (name, seed, size, own_text)
        self.version = digest([_VERSION, VERSION, making.version(), [*self._source], max_tokens])[:12]
        self.scorer = Metric("reasoning-gym", self.version, self._score)
        self._entries: dict[str, making.Entry] = {}

    def splits(self) -> Splits:
        if self._splits is None:
            made = by_ratio(list(self.items()), self.ratio, self.deal.seed)
            self._splits = limited(made, self.deal.limit, self.deal.seed)
        return self._splits

    def items(self) -> list[Item]:
        name, seed, *_ = self._source
        self._entries = {f"{name}-{seed}-{number}": entry for number, entry in enumerate(making.entries(*self._source))}
        return [Item(id_, {"input": entry["question"]}, entry["answer"]) for id_, entry in self._entries.items()]

    def gold(self, item: Item) -> str | None:
        return item.reference if isinstance(item.reference, str) else None

    @cached_property
    def _guarded(self) -> bool:
        return guard.evaluates(type(making.dataset(*self._source)))

    def _score(self, text: str, item: Item) -> Score:
        answer = final_answer(text)
        if not answer:
            return Score(0.0, 0.0, "no answer was given")
        self.splits()
        source = making.dataset(*self._source)
        if self._guarded and answer != item.reference and not guard.harmless(answer):
            return Score(0.0, 0.0, "the answer is not a value or a plain expression, so it was not evaluated")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                value = float(source.score_answer(answer, self._entries[item.id]))
            except _STUMBLES:
                return Score(
                    0.0, 0.0, f"the answer has another form than was asked for; got {matching.describe(answer)}"
                )
        if value >= 1:
            return RIGHT
        return Score(0.0, max(0.0, value), _feedback(answer, item, value))


def final_answer(text: str) -> str:
    """The part of a reply that is the answer."""
    tagged = _TAGGED.findall(text)
    if tagged:
        return str(tagged[-1]).strip()
    return _MARKED.split(text)[-1].strip()


def _feedback(answer: str, item: Item, value: float) -> str:
    partly = f" (partly right: {value:.2f})" if value > 0.05 else ""
    if isinstance(item.reference, str) and matching.kind(answer) != matching.kind(item.reference):
        return f"expected {matching.describe_kind(item.reference)}, got {matching.describe(answer)}{partly}"
    return f"wrong: {matching.describe(answer)}{partly}"
