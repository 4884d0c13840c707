"""A task of Inspect AI behind our contract: samples as items, the candidate as the first system message."""

from __future__ import annotations

from typing import Any

from sharpen.core.candidate import Candidate
from sharpen.core.chat import Message
from sharpen.core.digest import digest
from sharpen.core.errors import ModelError, ModelErrorKind
from sharpen.core.item import Item
from sharpen.core.outcome import Outcome, scored
from sharpen.core.task import Attempt, Brief, Splits, Task
from sharpen.tasks import splitting
from sharpen.tasks.inspect_ai import floor, loading, values
from sharpen.tasks.inspect_ai.provider import Order
from sharpen.tasks.render import whole_text

_VERSION = "1"
_SKILL = "Do what you are asked as well as you can. Keep to the form of the answer that is asked for.\n"


class InspectTask(Task):
    """Conversations are Inspect's affair, so the rendering that is asked for does not matter."""

    def __init__(self, loaded: loading.Loaded, settings: loading.Settings) -> None:
        self.loaded = loaded
        self.settings = settings
        self.name = loaded.name
        self.brief = Brief(description=f"The Inspect task {loaded.name.removeprefix('inspect-')}.")
        self.calls_per_rollout = (settings.max_calls or 1) + settings.grader_calls
        self.version = digest(
            [_VERSION, loaded.identity, settings.max_tokens, settings.max_calls, settings.scorer, settings.score_range,
             settings.grader]
        )[:12]  # fmt: skip
        self._range = values.Range.parse(settings.score_range)
        self._splits: Splits | None = None

    def splits(self) -> Splits:
        if self._splits is None:
            made = splitting.by_ratio(loading.items(self.loaded.samples), self.settings.ratio, self.settings.split_seed)
            self._splits = splitting.limited(made, self.settings.limit, self.settings.split_seed)
        return self._splits

    def seed(self) -> Candidate:
        return Candidate(_SKILL)

    async def rollout(self, item: Item, candidate: Candidate, attempt: Attempt) -> Outcome:
        settings = self.settings
        sample = await floor.here().run(
            Order(
                self.loaded.task,
                self.loaded.samples[item.id],
                whole_text(candidate),
                attempt,
                settings.max_tokens,
                settings.max_calls,
                settings.grader,
                settings.grader_calls,
            )
        )
        name, value = values.chosen(
            {name: score.value for name, score in (sample.scores or {}).items()}, settings.scorer
        )
        found = values.scores(value, self._range)
        if found is None:
            raise ModelError(ModelErrorKind.BAD_REPLY, f"the scorer {name} gave no score")
        hard, soft = found
        answer = sample.output.completion or ""
        remark = (sample.scores[name.partition(".")[0]].explanation or "").strip()
        return scored(
            item.id,
            hard,
            soft=soft,
            answer=answer,
            feedback="" if hard == 1.0 else _feedback(name, value, remark if remark != answer.strip() else ""),
            trajectory=_trajectory(sample.messages),
        )


def _feedback(name: str, value: object, remark: str) -> str:
    return f"{name} says {value}" + (f": {remark[:500]}" if remark else "")


def _trajectory(messages: list[Any]) -> tuple[Message, ...]:
    """What was said, without what the system said: the skill is the same for every item."""
    return tuple(Message(message.role, message.text) for message in messages if message.role != "system")
