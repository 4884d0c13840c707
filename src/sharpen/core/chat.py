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


@dataclass(frozen=True, slots=True)
class Message:
    role: str
    content: str


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
