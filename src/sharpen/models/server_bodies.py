"""The bodies of OpenAI's protocol, as a server reads and writes them: to a `Request`, and from a `Reply`. All of it is pure.

A body is strict: what the model cannot be told is refused with its name, never ignored. Fields that may only change the
answer in ways a `Request` has no place for are accepted with the value that changes nothing (`n: 1`, `stream: false`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sharpen.core.chat import Message, Reply, Request
from sharpen.core.digest import Json
from sharpen.core.errors import SharpenError

_DEFAULT = Request()
_SHOWN = 80
# Fields that a `Request` has no place for: they may stand in a body with the value that changes nothing.
_ONLY: Mapping[str, Json] = {
    "stream": False,
    "n": 1,
    "best_of": 1,
    "echo": False,
    "logprobs": False,
    "top_logprobs": 0,
    "top_p": 1,
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "logit_bias": {},
    "suffix": "",
    "tool_choice": "auto",
    "parallel_tool_calls": True,
}
# Fields that are about the client and not about the answer.
_NOTES = ("user", "metadata", "store", "stream_options", "safety_identifier", "prompt_cache_key", "service_tier")


class Refusal(SharpenError):
    """A request that is answered with an error object before the model hears of it."""

    def __init__(self, status: int, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.param = param
        self.code = code


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class _Part(_Strict):
    type: Literal["text"]
    text: str


class _Message(_Strict):
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[_Part]

    @property
    def text(self) -> str:
        return self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)


class _Schema(_Strict):
    name: str = ""
    description: str = ""
    strict: bool = False
    schema_: dict[str, Any] = Field(alias="schema")


class _Format(_Strict):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: _Schema | None = None


class _Settings(_Strict):
    """What both kinds of body have in common. A missing field has the default of a `Request`."""

    model: str
    max_tokens: Annotated[int, Field(ge=1)] = _DEFAULT.max_tokens
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    temperature: Annotated[float, Field(ge=0, allow_inf_nan=False)] = _DEFAULT.temperature
    seed: int | None = None
    stop: str | list[str] = []
    response_format: _Format | None = None
    tools: list[dict[str, Any]] = []

    def request(self, shared: int, messages: tuple[Message, ...] = (), prompt: str | None = None) -> Request:
        return Request(
            messages=messages,
            prompt=prompt,
            max_tokens=self.max_completion_tokens or self.max_tokens,
            temperature=self.temperature,
            stop=(self.stop,) if isinstance(self.stop, str) else tuple(self.stop),
            schema=_schema(self.response_format),
            tools=tuple(self.tools),
            seed=self.seed,
            shared=shared,
        )


class _Chat(_Settings):
    messages: Annotated[list[_Message], Field(min_length=1)]


class _Completion(_Settings):
    prompt: str | Annotated[list[str], Field(min_length=1, max_length=1)]


def read_chat(body: Json, served: str, shared: int = 0) -> Request:
    """The request that a body of /v1/chat/completions makes of the model that is served under the id `served`."""
    if isinstance(body, Mapping) and isinstance(body.get("messages"), list):
        # Clients send an answer back with all the fields it came with, most of them null.
        body = {**body, "messages": [_told(message) for message in body["messages"]]}
    chat = _checked(_Chat, body, served)
    return chat.request(shared, messages=tuple(Message(m.role, m.text) for m in chat.messages))


def read_completion(body: Json, served: str, shared: int = 0) -> Request:
    """The request that a body of /v1/completions makes."""
    completion = _checked(_Completion, body, served)
    prompt = completion.prompt
    return completion.request(shared, prompt=prompt if isinstance(prompt, str) else prompt[0])


Body = TypeVar("Body", bound=_Settings)


def _checked(kind: type[Body], body: Json, served: str) -> Body:
    if not isinstance(body, Mapping):
        raise Refusal(400, f"the body must be an object, got {type(body).__name__}")
    told = _told(body)
    for name, only in _ONLY.items():
        value = told.pop(name, only)
        if value != only:
            raise Refusal(400, f"{name} can only be {json.dumps(only)} here, got {_short(value)}", param=name)
    for name in _NOTES:
        told.pop(name, None)
    try:
        checked = kind.model_validate(told)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        got = "" if first["type"] == "missing" else f", got {_short(first['input'])}"
        raise Refusal(400, f"{where}: {first['msg']}{got}", param=where) from None
    if checked.model != served:
        message = f"there is no model {_short(checked.model)} here; there is {_short(served)}"
        raise Refusal(404, message, param="model", code="model_not_found")
    return checked


def _told(value: Json) -> Json:
    """An object without what is null: that says no more than leaving it out."""
    return {key: inner for key, inner in value.items() if inner is not None} if isinstance(value, Mapping) else value


def _short(value: Json) -> str:
    text = json.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _schema(wanted: _Format | None) -> Mapping[str, Json] | None:
    if wanted is None or wanted.type == "text":
        return None
    if wanted.type == "json_object":
        return {"type": "object"}
    if wanted.json_schema is None:
        raise Refusal(400, "response_format.json_schema: Field required", param="response_format.json_schema")
    return wanted.json_schema.schema_


def chat_body(reply: Reply) -> dict[str, Json]:
    """What /v1/chat/completions answers, apart from its id and time."""
    message: dict[str, Json] = {"role": "assistant", "content": reply.text}
    if reply.tool_calls:
        message["tool_calls"] = [_tool_call(call) for call in reply.tool_calls]
    return _body("chat.completion", {"message": message}, reply)


def completion_body(reply: Reply) -> dict[str, Json]:
    """What /v1/completions answers, apart from its id and time."""
    return _body("text_completion", {"text": reply.text}, reply)


def _body(kind: str, said: Mapping[str, Json], reply: Reply) -> dict[str, Json]:
    usage = reply.usage
    return {
        "object": kind,
        "choices": [{"index": 0, **said, "logprobs": None, "finish_reason": reply.finish}],
        "usage": {
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "total_tokens": usage.tokens,
            "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        },
    }


def _tool_call(call: Mapping[str, Json]) -> Json:
    return {
        "id": call["id"],
        "type": "function",
        "function": {"name": call["name"], "arguments": call["arguments"]},
    }
