"""What is said to a model and what comes back: `Message`, `Request`, `Reply`.

A request is either a conversation (`messages`) or a text to be continued (`prompt`), never both. It is frozen, and its
`key_fields` are what the ledger identifies a reply by: everything that may change the answer, and nothing else (the
hint about the shared prefix is left out).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sharpen.core.digest import Json
from sharpen.core.usage import NOTHING, Usage

_ROLES = ("system", "user", "assistant")


@dataclass(frozen=True, slots=True)
class Message:
    role: str
    content: str


def read_conversation(value: Json) -> tuple[Message, ...] | None:
    """The conversation that a list of objects with `role` and `content` stands for, as chat endpoints take it; None for any
    other value. `ValueError`, in words, for one that can't be asked."""
    if not isinstance(value, list | tuple) or not value:
        return None
    if not all(isinstance(message, Mapping) and "role" in message for message in value):
        return None
    messages = tuple(_message(number, message) for number, message in enumerate(value, start=1))
    if messages[-1].role != "user":
        raise ValueError(
            "a conversation must end with a message of the user; an answer belongs into the column of answers"
        )
    return messages


def _message(number: int, message: Mapping[str, Json]) -> Message:
    for key in message:
        if key not in ("role", "content"):
            raise ValueError(f"message {number} of the conversation has {key!r}; only role and content can be sent")
    content = message.get("content")
    if isinstance(content, list) and all(isinstance(part, Mapping) and part.get("type") == "text" for part in content):
        content = "".join(str(part.get("text", "")) for part in content)
    if message["role"] not in _ROLES or not isinstance(content, str):
        raise ValueError(
            f"message {number} of the conversation needs a role ({', '.join(_ROLES)}) and a text as content"
        )
    return Message(str(message["role"]), content)


@dataclass(frozen=True, slots=True)
class Request:
    """One call of a model. `shared` says how many leading messages (or characters of `prompt`) other requests begin
    with too, so that an endpoint which can may compute them once."""

    messages: tuple[Message, ...] = ()
    prompt: str | None = None
    max_tokens: int = 1024
    temperature: float = 0.0
    stop: tuple[str, ...] = ()
    schema: Mapping[str, Json] | None = None
    tools: tuple[Mapping[str, Json], ...] = ()
    seed: int | None = None
    shared: int = 0

    def key_fields(self) -> list[Json]:
        return [
            [[m.role, m.content] for m in self.messages],
            self.prompt,
            self.max_tokens,
            self.temperature,
            list(self.stop),
            None if self.schema is None else dict(self.schema),
            [dict(tool) for tool in self.tools],
        ]


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model said. `parsed` holds the validated value when a schema was asked for."""

    text: str
    usage: Usage = NOTHING
    finish: str = "stop"
    parsed: Json = None
    tool_calls: tuple[Mapping[str, Json], ...] = ()
