"""Any endpoint that speaks OpenAI's protocol.

`openai/gpt-5.5` is OpenAI itself (`OPENAI_BASE_URL` is respected); `http://host:port/v1#model` is any compatible server;
which key goes to which is said in `keys.py`. Settings may stand in the name: `http://host:port/v1#model?timeout=300`. A `?`
before the `#` belongs to the address: what follows it is part of every request's. Conversations go to Chat Completions,
texts to be continued to Completions. Servers differ in which fields they take: what one refuses by name is replaced by the
next best form (`Dialect`), and that is remembered for all further calls. What an answer says is read in `openai_reply.py`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from sharpen.core.chat import Reply, Request
from sharpen.core.digest import Json
from sharpen.core.errors import ModelError, ModelErrorKind, UsageError
from sharpen.core.redact import remember, remember_settings
from sharpen.models import http_errors, keys, prices
from sharpen.models.address import check_address, fill_in
from sharpen.models.http_client import MOST_CONNECTIONS, HttpClient
from sharpen.models.openai_reply import ReplyReader, parse_json
from sharpen.models.settings import check

SHARED_HEADER = "Sharpen-Shared"
"""Carries `Request.shared` to a server that can use it. A header, since no server refuses one it does not know."""
_ACCOUNT = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
"""Headers that go to OpenAI itself, from the environment."""
_LONGEST_ERROR = 4000


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
        if not 1 <= self.concurrency <= MOST_CONNECTIONS:
            raise UsageError(f"concurrency must be from 1 to {MOST_CONNECTIONS}, got {self.concurrency!r}")


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
        self._base_url, self._query, self._model = _resolve(plain, self.settings)
        self._key = keys.find_key(self._base_url)
        remember(self._key)
        self._own = urlsplit(self._base_url).hostname == "api.openai.com"
        reasons = self._own and self._model.startswith(("gpt-5", "o1", "o3", "o4"))
        self._dialect = Dialect(
            tokens_field="max_completion_tokens" if self._own else "max_tokens",
            # OpenAI's reasoning models take neither.
            dropped=frozenset({"temperature", "stop"} if reasons else ()),
        )
        self._reader = ReplyReader(name, prices.lookup(plain))
        self._address = fill_in(self._base_url)
        self._client = HttpClient(name, self._address, self.settings.timeout)

    @property
    def identity(self) -> Json:
        return {
            "kind": "openai",
            "base_url": self._base_url + self._query,
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
        address = self._base_url + self._query
        return f"{address}#{self._model}" if self._own else address

    @property
    def concurrency(self) -> int:
        return self.settings.concurrency

    def bound(self, request: Request) -> tuple[int, float | None]:
        most = self._reader.bound(request)
        return most.tokens, most.money

    async def open(self) -> None:
        if self._key is None and self._own:
            raise UsageError(f"{self.name} needs an API key: set OPENAI_API_KEY")
        await self._client.open()

    async def close(self) -> None:
        await self._client.close()

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
            reply = self._reader.read(answer, request)
            if "stop" in dialect.dropped:
                reply = replace(reply, text=_cut_at(reply.text, request.stop))
            return reply

    async def _post(self, request: Request, dialect: Dialect) -> bytes:
        """The body of a 200."""
        path = "/completions" if request.prompt is not None else "/chat/completions"
        body = self._body(request, dialect)
        answer = await self._client.post(f"{self._address}{path}{fill_in(self._query)}", body, self._headers(request))
        if 200 <= answer.status < 300:
            return answer.body
        if answer.status < 400:
            raise http_errors.from_redirect(self.name, answer.status, answer.headers)
        said = parse_json(answer.body)
        if said is None:
            said = answer.body[:_LONGEST_ERROR].decode("utf-8", "replace")
        advice = http_errors.ADVICE
        if self._key is None:
            advice = {**advice, ModelErrorKind.AUTH: keys.advise()}
        failure = http_errors.from_status(self.name, answer.status, said, answer.headers, advice=advice)
        if answer.status in (400, 422) and (refused := _refused_field(answer.body, body)):
            raise _Refused(refused, failure)
        raise failure

    def _headers(self, request: Request) -> dict[str, str]:
        headers = {"Authorization": f"Bearer {self._key or 'none'}", "User-Agent": "sharpen"}
        if self._own:
            named = {header: os.environ.get(variable) for header, variable in _ACCOUNT.items()}
            headers.update({header: value for header, value in named.items() if value})
        elif request.shared:
            headers[SHARED_HEADER] = str(request.shared)
        return headers

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


class _Refused(Exception):
    """The endpoint does not take a field of the body that there is another way to say."""

    def __init__(self, field: str, error: ModelError) -> None:
        self.field = field
        self.error = error


def split_name(name: str) -> tuple[str, dict[str, str]]:
    """A name without the settings that stand in it, and those settings. A `?` before the `#` belongs to the address."""
    address, mark, model = name.partition("#") if not name.startswith("openai/") else ("", "", name)
    plain, _, query = model.partition("?")
    return f"{address}{mark}{plain}", dict(parse_qsl(query, keep_blank_values=True))


def _resolve(name: str, settings: Settings) -> tuple[str, str, str]:
    """Base URL, what of its query every request repeats, and model that a name stands for."""
    if name.startswith("openai/"):
        model = name.removeprefix("openai/")
        url = settings.base_url or os.environ.get(keys.OPENAI_BASE) or keys.OPENAI_URL
    else:
        url, _, model = name.partition("#")
    if not model:
        raise UsageError(f"{name!r} names no model; write openai/MODEL or http://host:port/v1#MODEL")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"{url!r} is not an endpoint; expected something like http://host:port/v1")
    check_address(url)
    plain = urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))
    return plain, f"?{parts.query}" if parts.query else "", model


def _refused_field(error: bytes, body: Mapping[str, Json]) -> str | None:
    """The replaceable field of `body` that an error says the endpoint does not take."""
    said = error[:_LONGEST_ERROR].decode("utf-8", "replace")
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


def _cut_at(text: str, stops: tuple[str, ...]) -> str:
    return text[: min((at for stop in stops if (at := text.find(stop)) >= 0), default=len(text))]
