"""Any model as a server that speaks OpenAI's protocol, so that other programs, and sharpen itself, can ask it over HTTP.

`serving` opens a model, listens, and closes both again; what bodies mean is `server_bodies`'s. No more calls are under way
than the model finds worth having, the rest wait. A client that hangs up takes its call with it. Whatever goes wrong is an
error object with the status that the same failure has elsewhere, so a client of ours meets much the error that it would
have met in process. Replies come whole: there is no streaming.
"""

from __future__ import annotations

import asyncio
import errno
import hmac
import math
import socket
import time
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from urllib.parse import urlencode

from aiohttp import web
from aiohttp.typedefs import Handler

from sharpen.core.chat import Reply, Request
from sharpen.core.digest import Json
from sharpen.core.errors import ModelError, ModelErrorKind, SharpenError, UsageError
from sharpen.core.redact import redact, remember
from sharpen.models.base import Model
from sharpen.models.openai import SHARED_HEADER
from sharpen.models.server_bodies import Refusal, chat_body, completion_body, read_chat, read_completion

_LARGEST_BODY = 64 * 1024 * 1024
_FAREWELL = 1.0
"""Seconds that calls under way have to finish when the server stops."""
_PATHS = ("/v1/chat/completions", "/v1/completions", "/v1/models", "/health")
_STATUS = {
    ModelErrorKind.BAD_REQUEST: 400,
    ModelErrorKind.AUTH: 401,
    ModelErrorKind.NOT_FOUND: 404,
    ModelErrorKind.RATE_LIMITED: 429,
    ModelErrorKind.BAD_REPLY: 502,
    ModelErrorKind.UNREACHABLE: 502,
    ModelErrorKind.UNAVAILABLE: 503,
    ModelErrorKind.TIMEOUT: 504,
}


def served_id(name: str) -> str:
    """What a model is called by those who ask it here: `smollm2-135m` for `local/smollm2-135m`."""
    if name.startswith("record:"):
        name = name.partition(".jsonl:")[2]
    mark = "#" if name.startswith(("http://", "https://")) else "/"
    return name.partition(mark)[2].partition("?")[0]


def name_for(model: Model, url: str) -> str:
    """The name under which sharpen reaches `model` at `url` and treats it just as it would in process."""
    settings: dict[str, str] = {}
    if model.deterministic:
        settings["deterministic"] = "true"
    if model.render != "system":
        settings["render"] = model.render
    return f"{url}#{served_id(model.name)}" + (f"?{urlencode(settings)}" if settings else "")


@asynccontextmanager
async def serving(model: Model, host: str = "127.0.0.1", port: int = 0, key: str | None = None) -> AsyncIterator[str]:
    """Open `model` and serve it; gives the base URL. Port 0 is any free one. With a `key`, /v1 wants it from everyone."""
    remember(key)
    runner = web.AppRunner(
        _Server(model, key).application(),
        # Without this a call goes on for a client that has gone, and keeps its place.
        handler_cancellation=True,
        shutdown_timeout=_FAREWELL,
        access_log=None,
    )
    async with AsyncExitStack() as stack:
        # The port comes first: a second server on it should not have to load a model to be told.
        listening = stack.enter_context(_listener(host, port))
        await model.open()
        stack.push_async_callback(model.close)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await web.SockSite(runner, listening).start()
        yield _url(host, listening.getsockname()[1])


class _Server:
    """The handlers, and the one model behind them."""

    def __init__(self, model: Model, key: str | None) -> None:
        self._model = model
        self._id = served_id(model.name)
        self._key = None if key is None else f"Bearer {key}".encode()
        self._room = asyncio.Semaphore(model.concurrency)
        self._since = int(time.time())

    def application(self) -> web.Application:
        app = web.Application(client_max_size=_LARGEST_BODY, middlewares=[_with_error_objects, self._with_key])
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/completions", self._completion)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/health", self._health)
        return app

    @web.middleware
    async def _with_key(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self._key is not None and request.path.startswith("/v1/"):
            given = request.headers.get("Authorization", "").encode(errors="surrogateescape")
            if not hmac.compare_digest(given, self._key):
                raise Refusal(401, "the API key is missing or wrong", code="invalid_api_key")
        return await handler(request)

    async def _health(self, http: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def _models(self, http: web.Request) -> web.Response:
        row = {"id": self._id, "object": "model", "created": self._since, "owned_by": self._model.family}
        return web.json_response({"object": "list", "data": [row]})

    async def _chat(self, http: web.Request) -> web.Response:
        reply = await self._ask(read_chat(await _body(http), self._id, _shared(http)))
        return self._answer(chat_body(reply))

    async def _completion(self, http: web.Request) -> web.Response:
        reply = await self._ask(read_completion(await _body(http), self._id, _shared(http)))
        return self._answer(completion_body(reply))

    async def _ask(self, request: Request) -> Reply:
        async with self._room:
            return await self._model.complete(request)

    def _answer(self, body: Mapping[str, Json]) -> web.Response:
        stamp = {"id": f"reply-{uuid.uuid4().hex}", "created": int(time.time()), "model": self._id}
        return web.json_response({**stamp, **body})


@web.middleware
async def _with_error_objects(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Whatever is refused or fails, as a client of this protocol expects to be told."""
    try:
        return await handler(request)
    except Refusal as refusal:
        return _error(refusal.status, str(refusal), param=refusal.param, code=refusal.code)
    except ModelError as error:
        wait = {} if error.retry_after is None else {"Retry-After": str(math.ceil(error.retry_after))}
        return _error(_STATUS[error.kind], str(error), code=error.kind, headers=wait)
    except SharpenError as error:
        return _error(500, str(error))
    except web.HTTPNotFound:
        return _error(404, f"there is no {request.path}; there are {', '.join(_PATHS)}")
    except web.HTTPException as error:
        headers = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
        return _error(error.status, f"{request.method} {request.path}: {error.reason}", headers=headers)


def _error(
    status: int, message: str, *, param: str | None = None, code: str | None = None, headers: Mapping[str, str] = {}
) -> web.Response:
    kind = "server_error" if status >= 500 else "rate_limit_error" if status == 429 else "invalid_request_error"
    body = {"error": {"message": redact(message), "type": kind, "param": param, "code": code}}
    return web.json_response(body, status=status, headers=headers)


async def _body(http: web.Request) -> Json:
    # A page in a browser may post anything to this machine without asking, save for this type.
    if http.content_type != "application/json":
        raise Refusal(415, f"the body must be application/json, not {http.content_type}")
    try:
        return await http.json()
    except (ValueError, LookupError, RecursionError) as error:
        raise Refusal(400, f"the body is not JSON: {error}") from None


def _shared(http: web.Request) -> int:
    given = http.headers.get(SHARED_HEADER, "0")
    if not (given.isascii() and given.isdigit() and len(given) < 10):
        raise Refusal(400, f"{SHARED_HEADER} must be a whole number, got {given[:80]!r}")
    return int(given)


def _url(host: str, port: int) -> str:
    # Who listens everywhere is reached from this machine too, but not by the name for everywhere.
    near = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://{f'[{near}]' if ':' in near else near}:{port}/v1"


def _listener(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise UsageError(f"port {port} of {host} is taken; choose another, or 0 for any that is free") from None
        reason = (error.strerror or str(error)).partition(" (")[0]
        raise UsageError(f"cannot listen on {host}, port {port}: {reason}") from None
