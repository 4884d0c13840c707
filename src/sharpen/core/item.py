"""One example of a task: what the agent is given, and what the scorer compares with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from sharpen.core.chat import read_conversation
from sharpen.core.digest import Json, digest


@dataclass(frozen=True)
class Item:
    """An example with a stable id. `inputs` reach the agent, `reference` only the scorer, `type` groups the report. `group`
    names what it shares with others (the document a question is about): items of one group count as one in error bars."""

    id: str
    inputs: Mapping[str, Json]
    reference: Json = None
    type: str = "default"
    group: str = ""

    @cached_property
    def digest(self) -> str:
        """Identity by content: two items with the same id and different content are different."""
        return digest([self.id, dict(self.inputs), self.reference, self.type])

    @cached_property
    def content(self) -> str:
        """What two items have in common that differ in nothing but their ids."""
        return digest(["", dict(self.inputs), self.reference, self.type])

    @property
    def text(self) -> str:
        """The input as one text: the field `input` where there is one, else every field on a line of its own."""
        if "input" in self.inputs:
            return as_text(self.inputs["input"])
        return "\n".join(f"{name}: {as_text(value)}" for name, value in self.inputs.items())


def groups_of(items: Sequence[Item]) -> list[str] | None:
    """The group of each item, where some share one; an item without a group stands alone."""
    names = [f"group {item.group}" if item.group else f"item {place}" for place, item in enumerate(items)]
    return names if len(set(names)) < len(names) else None


def as_text(value: Json) -> str:
    """A value of a row as a text: a conversation speaker by speaker, other lists and objects as JSON."""
    if not isinstance(value, list | tuple | Mapping):
        return str(value)
    with suppress(ValueError):
        conversation = read_conversation(value)
        if conversation is not None:
            return "\n".join(f"{message.role.capitalize()}: {message.content}" for message in conversation)
    return json.dumps(value, ensure_ascii=False)
