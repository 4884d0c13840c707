"""What an answer in OpenAI's protocol says: from the bytes of a 200 to a `Reply`, or to a `ModelError` with the right kind.

Any bytes end in one or the other. The rules:

- An upstream failure inside a 200 (`error` in the body or in the choice, `finish_reason: "error"`) is a failed call. It is
  tried again unless it names a status that does not heal.
- `content_filter` means that the provider cut the answer: a failed call, not tried again, whatever text came with it.
- A refusal in words, as text or in the field `refusal`, is the model's answer and is scored.
- An empty text with `finish_reason: "stop"` is an answer too: the model said nothing. No text at all (null, and no tool
  call) is a failed call, and so is nothing said before `max_tokens` were used up.
- Whatever came, the call counts as paid: at the tokens the endpoint reports, else at the most it can have used.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from sharpen.core.chat import Reply, Request
from sharpen.core.digest import Json
from sharpen.core.errors import ModelError, ModelErrorKind
from sharpen.core.usage import Usage
from sharpen.models import http_errors
from sharpen.models.prices import Price

MOST_TOKENS = 10**9
"""A larger count is no count of tokens."""
# A token is at least one byte of the text, save for those a chat template adds around it.
_TEMPLATE_TOKENS = 64
_MESSAGE_TOKENS = 16
_STATUS = re.compile(r"[45][0-9]{2}", re.ASCII)
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class ReplyReader:
    """Reads the answers of one endpoint, which `name` stands for in messages."""

    name: str
    price: Price | None

    def read(self, data: bytes, request: Request) -> Reply:
        """The reply that the body of a 200 holds."""
        answer = parse_json(data)
        if not isinstance(answer, Mapping):
            what = "not a JSON object" if answer is not None else "no JSON"
            raise self._unusable(request, None, f"{what}: {shown(data)}")
        usage = answer.get("usage")
        if answer.get("error"):
            raise self._failed(request, usage, answer["error"])
        choices = answer.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, Mapping):
            raise self._unusable(request, usage, f"no choices: {shown(data)}")
        if choice.get("error"):
            raise self._failed(request, usage, choice["error"])
        message = choice.get("message") if request.prompt is None else {"content": choice.get("text")}
        if not isinstance(message, Mapping):
            raise self._unusable(request, usage, f"a choice without a message: {shown(data)}")
        finish = _word(choice.get("finish_reason")) or "stop"
        return self._reply(request, usage, message, finish)

    def bound(self, request: Request) -> Usage:
        """The most a request can use."""
        return self._usage(request, None, request.max_tokens)

    def _reply(self, request: Request, usage: Json, message: Mapping[str, Json], finish: str) -> Reply:
        calls = _tool_calls(message.get("tool_calls"))
        if calls is None:
            raise self._unusable(request, usage, "tool calls that can't be read")
        text = message.get("content")
        if text is None:
            text = message.get("refusal")
        if text is not None and not isinstance(text, str):
            raise self._unusable(request, usage, f"the content is {type(text).__name__}, not a text")
        if finish == "error":
            raise self._failed(request, usage, {"message": "finish_reason is error"})
        if finish == "content_filter":
            raise self._error(
                ModelErrorKind.BAD_REQUEST, request, usage, "the provider's content filter withheld the answer"
            )
        if not text and not calls and finish == "length":
            raise self._error(
                ModelErrorKind.BAD_REPLY,
                request,
                usage,
                f"all {request.max_tokens} tokens (max_tokens) were used before anything was said, as happens where a model "
                "reasons; allow more of them, or turn reasoning down",
            )
        if text is None and not calls:
            raise self._unusable(request, usage, "a message with no text and no tool call")
        text = text or ""
        return Reply(text, self._usage(request, usage, len(text.encode(errors="replace"))), finish, tool_calls=calls)

    def _failed(self, request: Request, usage: Json, error: Json) -> ModelError:
        """Some gateways answer 200 and put the upstream's status and error into the body."""
        code = error.get("code") if isinstance(error, Mapping) else None
        code = str(code) if isinstance(code, int | str) else ""
        if code == "content_filter":
            return self._error(ModelErrorKind.BAD_REQUEST, request, usage, http_errors.message_in(error))
        if _STATUS.fullmatch(code) is None:
            message = f"the model behind the endpoint failed: {http_errors.message_in(error)}"
            return self._error(ModelErrorKind.UNAVAILABLE, request, usage, message)
        # The endpoint took the key, so 403 is about this request: moderation.
        status = 400 if code == "403" else int(code)
        failure = http_errors.from_status(self.name, status, {"error": error}, {}, counts=True)
        failure.usage = self._usage(request, usage, request.max_tokens)
        return failure

    def _unusable(self, request: Request, usage: Json, why: str) -> ModelError:
        failure = http_errors.bad_reply(self.name, why)
        failure.usage = self._usage(request, usage, request.max_tokens)
        return failure

    def _error(self, kind: ModelErrorKind, request: Request, usage: Json, why: str) -> ModelError:
        paid = self._usage(request, usage, request.max_tokens)
        return ModelError(kind, f"{self.name}: {why}", usage=paid, counts=True)

    def _usage(self, request: Request, usage: Json, most_completion: int) -> Usage:
        # What a server does not count is charged at the most it can have been, so that no cap is passed unseen.
        prompt = _count(usage, "prompt_tokens") or _most_prompt_tokens(request)
        completion = _count(usage, "completion_tokens") or most_completion
        details = usage.get("prompt_tokens_details") if isinstance(usage, Mapping) else None
        cached = min(prompt, _count(details, "cached_tokens") or 0)
        money = None if self.price is None else self.price.cost(prompt, cached, completion)
        return Usage(1, prompt, cached, completion, money)


def parse_json(data: bytes) -> Json:
    """The value that JSON text has; None where it is none, or is nested deeper than can be read."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def shown(data: bytes) -> str:
    """The beginning of an answer, for a message."""
    return ascii(data[:_SHOWN].decode("utf-8", "replace"))


def _word(value: Json) -> str:
    """A short text as it can be stored; empty where it is none."""
    return value[:40].encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _count(usage: Json, name: str) -> int | None:
    """A count that an endpoint reports; None where it is missing or no count."""
    value = usage.get(name) if isinstance(usage, Mapping) else None
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or (isinstance(value, float) and math.isnan(value))
    ):
        return None
    return int(value) if 1 <= value <= MOST_TOKENS else None


def _tool_calls(calls: Json) -> tuple[Mapping[str, Json], ...] | None:
    """The calls of tools in a message; None where they can't be read."""
    if calls is not None and not isinstance(calls, list):
        return None
    read = []
    for call in calls or []:
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            return None
        number, arguments = call.get("id"), function.get("arguments", "")
        if not isinstance(number, str | None) or not isinstance(arguments, str):
            return None
        read.append({"id": number, "name": function["name"], "arguments": arguments})
    return tuple(read)


def _most_prompt_tokens(request: Request) -> int:
    size = len((request.prompt or "").encode(errors="replace"))
    size += sum(len(m.content.encode(errors="replace")) + _MESSAGE_TOKENS for m in request.messages)
    if request.schema is not None:
        size += len(json.dumps(dict(request.schema)))
    size += sum(len(json.dumps(dict(tool))) for tool in request.tools)
    return size + _TEMPLATE_TOKENS
