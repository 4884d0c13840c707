"""Any endpoint that speaks OpenAI's protocol, through the `openai` SDK on its aiohttp transport.

`openai/gpt-5.5` is OpenAI itself (`OPENAI_API_KEY`; `OPENAI_BASE_URL` is respected); `http://host:port/v1#model` is any
compatible server (`SHARPEN_API_KEY`, else `OPENAI_API_KEY`, else none). Settings may stand in the name:
`http://host:port/v1#model?timeout=300&render=completion`. Conversations go to Chat Completions, texts to be
continued to Completions. Servers differ in which fields they take: what one refuses by name is replaced by the next best
form (`Dialect`), and that is remembered for all further calls. The SDK's own retries are off: the engine retries.

Bodies are posted and read as plain JSON rather than through the SDK's typed methods, which costs less and lets a malformed
answer be seen for what it is.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qsl, urlsplit

from sharpen.core.chat import Reply, Request
from sharpen.core.digest import Json
from sharpen.core.errors import ModelError, UsageError
from sharpen.core.redact import names_secret, remember, remember_settings
from sharpen.core.usage import Usage
from sharpen.models import http_errors, prices
from sharpen.models.settings import check

if TYPE_CHECKING:
    from openai import AsyncOpenAI

OPENAI_URL = "https://api.openai.com/v1"
SHARED_HEADER = "Sharpen-Shared"
"""Carries `Request.shared` to a server that can use it. A header, since no server refuses one it does not know."""
_MOST_CONNECTIONS = 1000
_CONNECT_TIMEOUT = 10.0
# A token is at least one byte of the text, save for those a chat template adds around it.
_TEMPLATE_TOKENS = 64
_MESSAGE_TOKENS = 16


@dataclass(frozen=True, slots=True)
class Settings:
    """`temperature` overrides what requests ask for; `extra` is merged into every body (`{"reasoning_effort": "low"}`).
    `deterministic` is the user's word that the server repeats itself at temperature 0; `render` is what suits its model."""

    base_url: str | None = None
    timeout: float = 120.0
    concurrency: int = 64
    temperature: float | None = None
    extra: Mapping[str, Json] = field(default_factory=dict)
    deterministic: bool = False
    render: Literal["system", "turns", "completion"] = "system"

    def __post_init__(self) -> None:
        if not self.timeout > 0:
            raise UsageError(f"timeout must be more than 0 seconds, got {self.timeout!r}")
        if not 1 <= self.concurrency <= _MOST_CONNECTIONS:
            raise UsageError(f"concurrency must be from 1 to {_MOST_CONNECTIONS}, got {self.concurrency!r}")


@dataclass(frozen=True, slots=True)
class Dialect:
    """Which fields an endpoint takes. `schema_form`: 0 a JSON schema, 1 only "some JSON object", 2 nothing."""

    tokens_field: str
    switched: bool = False
    schema_form: int = 0
    dropped: frozenset[str] = frozenset()

    def without(self, refused: str) -> Dialect | None:
        """The next best dialect once a field has been refused, or None where there is no other way to say it."""
        if refused == "response_format":
            return replace(self, schema_form=self.schema_form + 1) if self.schema_form < 2 else None
        if refused in ("max_tokens", "max_completion_tokens"):
            other = "max_tokens" if self.tokens_field == "max_completion_tokens" else "max_completion_tokens"
            return None if self.switched else replace(self, tokens_field=other, switched=True)
        return replace(self, dropped=self.dropped | {refused})


_REPLACEABLE = ("response_format", "max_completion_tokens", "max_tokens", "temperature", "seed", "stop")
# A field may also be named because its value is out of range; saying it otherwise would not help then.
_UNSUPPORTED = re.compile(
    r"unsupported|not? (?:be )?support|unrecogni[sz]ed|unknown|unexpected|not (?:permitted|allowed)|extra",
    re.IGNORECASE,
)


class OpenAIModel:
    """A model behind an OpenAI-compatible endpoint."""

    family = "openai"

    def __init__(self, name: str, **settings: Any) -> None:
        self.name = name
        plain, in_name = split_name(name)
        remember_settings(
            in_name
        )  # whoever writes a key there is told that there is no such setting, by the whole name
        self.settings = check(name, Settings, {**in_name, **settings})
        self._base_url, self._model, self._key = _resolve(plain, self.settings)
        remember(self._key)
        self._own = urlsplit(self._base_url).hostname == "api.openai.com"
        reasons = self._own and self._model.startswith(("gpt-5", "o1", "o3", "o4"))
        self._dialect = Dialect(
            tokens_field="max_completion_tokens" if self._own else "max_tokens",
            # OpenAI's reasoning models take neither.
            dropped=frozenset({"temperature", "stop"} if reasons else ()),
        )
        self._price = prices.lookup(plain)
        self._client: AsyncOpenAI | None = None

    @property
    def identity(self) -> Json:
        return {
            "kind": "openai",
            "base_url": self._base_url,
            "model": self._model,
            "temperature": self.settings.temperature,
            "extra": dict(self.settings.extra),
            # Left out where it is not claimed, so that what was paid for before there was this setting is still found.
            **({"deterministic": True} if self.settings.deterministic else {}),
        }

    @property
    def deterministic(self) -> bool:
        return self.settings.deterministic

    @property
    def render(self) -> str:
        return self.settings.render

    @property
    def endpoint(self) -> str:
        # OpenAI limits each model on its own; a server of one's own is one machine.
        return f"{self._base_url}#{self._model}" if self._own else self._base_url

    @property
    def concurrency(self) -> int:
        return self.settings.concurrency

    def bound(self, request: Request) -> tuple[int, float | None]:
        prompt = _most_prompt_tokens(request)
        money = None if self._price is None else self._price.cost(prompt, 0, request.max_tokens)
        return prompt + request.max_tokens, money

    async def open(self) -> None:
        import openai

        if self._client is not None:
            return
        if self._key is None and self._own:
            raise UsageError(f"{self.name} needs an API key: set OPENAI_API_KEY")
        self._client = openai.AsyncOpenAI(
            api_key=self._key or "none",
            base_url=self._base_url,
            max_retries=0,
            timeout=openai.Timeout(self.settings.timeout, connect=min(_CONNECT_TIMEOUT, self.settings.timeout)),
            http_client=openai.DefaultAioHttpClient(),
        )

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def complete(self, request: Request) -> Reply:
        while True:
            dialect = self._dialect
            try:
                answer = await self._post(request, dialect)
            except _Refused as refusal:
                if self._dialect is dialect:
                    adapted = dialect.without(refusal.field)
                    if adapted is None:
                        raise refusal.error from None
                    self._dialect = adapted
                continue
            return self._reply(request, answer, dialect)

    async def _post(self, request: Request, dialect: Dialect) -> Json:
        import aiohttp
        import openai

        path = "/completions" if request.prompt is not None else "/chat/completions"
        body = self._body(request, dialect)
        hint = {SHARED_HEADER: str(request.shared)} if request.shared and not self._own else {}
        if self._client is None:
            raise RuntimeError(f"{self.name} was asked before it was opened")
        try:
            # The transport's own timeouts run from one piece of an answer to the next; this one is for all of it.
            async with asyncio.timeout(self.settings.timeout):
                return await self._client.post(path, body=body, cast_to=object, options={"headers": hint})
        except TimeoutError:
            raise http_errors.from_timeout(self.name, self.settings.timeout) from None
        except openai.APIStatusError as error:
            failure = http_errors.from_status(self.name, error.status_code, error.body, error.response.headers)
            if error.status_code in (400, 422) and (refused := _refused_field(error.body, body)):
                raise _Refused(refused, failure) from None
            raise failure from None
        except (openai.APIConnectionError, aiohttp.ClientError, OSError) as error:
            raise http_errors.from_connection(self.name, error) from None
        except (ValueError, openai.APIResponseValidationError) as error:
            raise http_errors.bad_reply(self.name, f"not JSON ({error})") from None

    def _body(self, request: Request, dialect: Dialect) -> dict[str, Json]:
        schema = request.schema
        hint = "" if schema is None or dialect.schema_form == 0 else _in_words(schema)
        body: dict[str, Json] = {"model": self._model, dialect.tokens_field: request.max_tokens}
        if request.prompt is not None:
            body["prompt"] = request.prompt + hint
        else:
            body["messages"] = [{"role": m.role, "content": m.content} for m in request.messages]
            body["messages"][-1]["content"] += hint
        temperature = self.settings.temperature
        optional = {
            "temperature": request.temperature if temperature is None else temperature,
            "seed": request.seed,
            "stop": list(request.stop) or None,
        }
        body.update({k: v for k, v in optional.items() if v is not None and k not in dialect.dropped})
        if schema is not None and dialect.schema_form == 0:
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": "reply", "schema": dict(schema)}}
        elif schema is not None and dialect.schema_form == 1:
            body["response_format"] = {"type": "json_object"}
        if request.tools:
            body["tools"] = [dict(tool) for tool in request.tools]
        body.update(self.settings.extra)
        return body

    def _reply(self, request: Request, answer: Json, dialect: Dialect) -> Reply:
        if isinstance(answer, str):
            try:
                answer = json.loads(answer)
            except ValueError:
                raise self._unusable(f"not JSON: {answer[:200]!r}") from None
        if not isinstance(answer, Mapping):
            raise self._unusable(f"{type(answer).__name__} instead of an object")
        choices = answer.get("choices")
        if not choices:
            raise self._without_choices(answer)
        try:
            choice = choices[0]
            message = choice["message"] if request.prompt is None else {"content": choice["text"]}
            text = message.get("content") or message.get("refusal") or ""
            calls = tuple(_tool_call(call) for call in message.get("tool_calls") or ())
            finish = choice.get("finish_reason") or "stop"
            usage = self._usage(request, answer.get("usage"), text)
        except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
            raise self._unusable(f"{type(error).__name__}: {error}", answer) from None
        if not isinstance(text, str):
            raise self._unusable(f"the content is {type(text).__name__}, not a text", answer)
        if "stop" in dialect.dropped:
            text = _cut_at(text, request.stop)
        return Reply(text, usage, str(finish), tool_calls=calls)

    def _without_choices(self, answer: Mapping[str, Json]) -> ModelError:
        """Some gateways answer 200 and put the upstream's status and error into the body."""
        error = answer.get("error")
        if isinstance(error, Mapping) and str(error.get("code", "")).isdigit():
            return http_errors.from_status(self.name, int(error["code"]), answer, {})
        return self._unusable(f"no choices in {str(answer)[:200]}", answer)

    def _unusable(self, why: str, answer: Mapping[str, Json] | None = None) -> ModelError:
        """An answer that can't be used was a call all the same, and cost what it says it did."""
        error = http_errors.bad_reply(self.name, why)
        told = {} if answer is None else answer.get("usage")
        counts = [_counted(told, name) or 0 for name in ("prompt_tokens", "completion_tokens")]
        error.usage = self._paid(counts[0], 0, counts[1])
        return error

    def _usage(self, request: Request, usage: Json, text: str) -> Usage:
        # What a server does not count is charged at the most it can have been, so that no cap is passed unseen.
        prompt = _counted(usage, "prompt_tokens") or _most_prompt_tokens(request)
        completion = _counted(usage, "completion_tokens") or len(text.encode())
        details = usage.get("prompt_tokens_details") if isinstance(usage, Mapping) else None
        return self._paid(prompt, min(prompt, _counted(details, "cached_tokens") or 0), completion)

    def _paid(self, prompt: int, cached: int, completion: int) -> Usage:
        money = None if self._price is None else self._price.cost(prompt, cached, completion)
        return Usage(1, prompt, cached, completion, money)


class _Refused(Exception):
    """The endpoint does not take a field of the body that there is another way to say."""

    def __init__(self, field: str, error: ModelError) -> None:
        self.field = field
        self.error = error


def _counted(usage: Json, name: str) -> int | None:
    """A count that an endpoint reports; None where it is missing or no count."""
    value = usage.get(name) if isinstance(usage, Mapping) else None
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None


def split_name(name: str) -> tuple[str, dict[str, str]]:
    """A name without the settings that stand in it, and those settings. A `?` before the `#` belongs to the address."""
    address, mark, model = name.partition("#") if not name.startswith("openai/") else ("", "", name)
    plain, _, query = model.partition("?")
    return f"{address}{mark}{plain}", dict(parse_qsl(query, keep_blank_values=True))


def _resolve(name: str, settings: Settings) -> tuple[str, str, str | None]:
    """Base URL, model and key that a name stands for."""
    environ = os.environ
    if name.startswith("openai/"):
        model = name.removeprefix("openai/")
        url = settings.base_url or environ.get("OPENAI_BASE_URL") or OPENAI_URL
        key = environ.get("OPENAI_API_KEY")
    else:
        url, _, model = name.partition("#")
        key = environ.get("SHARPEN_API_KEY") or environ.get("OPENAI_API_KEY")
    if not model:
        raise UsageError(f"{name!r} names no model; write openai/MODEL or http://host:port/v1#MODEL")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"{url!r} is not an endpoint; expected something like http://host:port/v1")
    secret = next((value for key, value in parse_qsl(parts.query) if names_secret(key)), None)
    if parts.username or parts.password or secret:
        remember(secret)
        raise UsageError(
            f"the address of {parts.hostname} holds a password or a key; give it in SHARPEN_API_KEY instead"
        )
    return url.rstrip("/"), model, key or None


def _refused_field(error: Json, body: Mapping[str, Json]) -> str | None:
    """The replaceable field of `body` that an error says the endpoint does not take."""
    said = str(error)
    for name in _REPLACEABLE:
        if (
            name in body
            and re.search(rf"\b{name}\b", said)
            and (name == "response_format" or _UNSUPPORTED.search(said))
        ):
            return name
    return None


def _in_words(schema: Mapping[str, Json]) -> str:
    return (
        f"\n\nReply with one JSON object that matches this JSON schema, and nothing else:\n{json.dumps(dict(schema))}"
    )


def _tool_call(call: Mapping[str, Json]) -> Mapping[str, Json]:
    function = call["function"]
    return {"id": call.get("id"), "name": function["name"], "arguments": function.get("arguments", "")}


def _cut_at(text: str, stops: tuple[str, ...]) -> str:
    return text[: min((at for stop in stops if (at := text.find(stop)) >= 0), default=len(text))]


def _most_prompt_tokens(request: Request) -> int:
    size = len((request.prompt or "").encode())
    size += sum(len(m.content.encode()) + _MESSAGE_TOKENS for m in request.messages)
    if request.schema is not None:
        size += len(json.dumps(dict(request.schema)))
    size += sum(len(json.dumps(dict(tool))) for tool in request.tools)
    return size + _TEMPLATE_TOKENS
