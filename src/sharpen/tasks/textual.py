"""Tasks of one question and one answer: the base class that a new text task is written with.

A subclass gives a name, a seed skill, a metric and `items()`; the rest follows. One rollout renders the candidate and the
item, asks the model once and scores the text that comes back. The trajectory holds what was asked and answered, without
the skill, which is the same for every item.

    class Shout(TextTask):
        name = "shout"
        skill = "Write the word in capitals."
        metric = "exact_match"

        def items(self) -> list[Item]:
            return [item(word, word.upper()) for word in WORDS]
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from sharpen.core.candidate import Candidate
from sharpen.core.chat import Message, read_conversation
from sharpen.core.digest import Json, digest
from sharpen.core.item import Item, as_text
from sharpen.core.outcome import Outcome, scored
from sharpen.core.task import Attempt, Splits, Task
from sharpen.tasks import metrics
from sharpen.tasks.render import VERSION, render
from sharpen.tasks.splitting import Deal

_VERSION = "1"
CUT_OFF = "cut_off"
"""The measure of a rollout whose answer ended at `max_tokens`; others do not have it."""


class TextTask(Task):
    """A task of one question and one answer. `stop` is None where the rendering's own stop will do."""

    sizes: tuple[int, int, int] | None = None
    """Items of train, val and test; by the default ratio where None."""
    metric: str = "exact_match"
    labels: tuple[str, ...] = ()
    skill: str = "Answer the question."
    max_tokens: int = 64
    stop: tuple[str, ...] | None = None
    template: str | None = None
    """How the inputs become the text that is asked, such as `{context} Question: {input}`; the field `input` where None."""

    def __init__(self, deal: Deal | None = None) -> None:
        self.deal = Deal() if deal is None else deal
        self.scorer = metrics.get(self.metric, labels=self.labels)
        self.version = digest(
            [_VERSION, VERSION, self.scorer.identity, self.max_tokens, self.stop and [*self.stop], self.template]
        )[:12]
        self._splits: Splits | None = None

    def items(self) -> Iterable[Item]:
        """All items; they are dealt out by content, so their order does not matter."""
        raise NotImplementedError

    def splits(self) -> Splits:
        if self._splits is None:
            self._splits = self.deal.splits(self.items(), self.sizes)
        return self._splits

    def seed(self) -> Candidate:
        return Candidate(self.skill.rstrip("\n") + "\n")

    def ask(self, item: Item) -> str:
        """The text the model is asked; of a conversation, what is said in it, speaker by speaker."""
        if self.template is None:
            return item.text
        plain = {
            name: as_text(value) if isinstance(value, list | Mapping) else value for name, value in item.inputs.items()
        }
        return self.template.format_map(plain)

    def conversation(self, item: Item) -> tuple[Message, ...]:
        """The messages the model is asked: one of the user's with the text of `ask`, or the conversation that the field
        `input` holds, where no template and no `ask` of a subclass says otherwise."""
        asks_plainly = self.template is None and type(self).ask is TextTask.ask
        chat = read_conversation(item.inputs.get("input")) if asks_plainly else None
        return (Message("user", self.ask(item)),) if chat is None else chat

    def gold(self, item: Item) -> str | None:
        """An answer that scores 1, where the reference holds one. Override it where an own metric's reference does not."""
        if self.metric == "regex":
            return None
        several = isinstance(item.reference, list) and self.metric != "json_equal"
        reference = metrics.accepted(item)[0] if several else item.reference
        if isinstance(reference, str):
            return reference
        return None if self.scorer.own else json.dumps(reference, ensure_ascii=False)

    async def rollout(self, item: Item, candidate: Candidate, attempt: Attempt) -> Outcome:
        asked = self.conversation(item)
        request = render(attempt.render, candidate, asked, max_tokens=self.max_tokens, stop=self.stop)
        reply = await attempt.complete(request)
        answer = reply.text.strip()
        score = self.scorer(answer, item)
        return scored(
            item.id,
            score.hard,
            soft=score.soft,
            answer=answer,
            feedback=score.feedback,
            trajectory=(*asked, Message("assistant", answer)),
            measures={CUT_OFF: 1.0} if reply.finish == "length" else None,
        )

    def answers(self, item: Item) -> tuple[str, ...]:
        gold = self.gold(item)
        return () if gold is None else (gold,)

    def example(self, item: Item) -> tuple[str, str] | None:
        gold = self.gold(item)
        return None if gold is None else (self.ask(item), gold)


def item(question: str, answer: Json, type: str = "default") -> Item:
    """An item of a question and its answer, with an id made from its content."""
    return Item(digest([question, answer, type])[:12], {"input": question}, answer, type)


def words(text: str) -> list[str]:
    """A table of words, written as running text."""
    return text.split()
