"""A real HTTP server that speaks OpenAI's protocol and misbehaves on request, for testing whatever talks to an endpoint.

It listens on a free loopback port, answers Chat Completions and Completions through a Python function, and counts what it
was asked by content, so that a test can tell whether anything was paid for twice. `Fault`s make it refuse, hang, garble or
hang up on every k-th request; `key` makes it check the bearer key; `refuse` names body fields it answers 400 to.

    async with FakeEndpoint(lambda body: "four") as server:          # in the running event loop
    with FakeEndpoint(lambda body: "four").in_thread() as server:    # beside a program of its own
    python -m sharpen.testing.http --script rules --latency 0.05     # as a process; prints its URL
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType

from aiohttp import web

from sharpen.core.chat import Message, Request
from sharpen.core.digest import Json, canonical

Answer = Callable[[Mapping[str, Json]], str]


class FaultKind(StrEnum):
    RATE_LIMITED = "429"
    OVERLOADED = "529"
    BROKEN = "500"
    HANG = "hang"
    MALFORMED = "malformed"
    """A 200 whose body is no JSON."""
    TRUNCATED = "truncated"
    """A 200 whose body ends before the length it announced."""
    EMPTY = "empty"
    """A 200 without choices."""
    UPSTREAM = "upstream"
    """A 200 that says that the model behind the endpoint failed."""
    DROPPED = "dropped"
    """The connection is reset instead of an answer."""
    LATE = "late"
    """The right answer, `LATENESS` seconds too late."""


REFUSALS = (FaultKind.RATE_LIMITED, FaultKind.OVERLOADED, FaultKind.BROKEN)
LATENESS = 1.0


@dataclass(frozen=True, slots=True)
class Fault:
    """Befalls every `every`-th request, at most `times` times."""

    kind: FaultKind
    every: int = 1
    times: int | None = None
    retry_after: str | None = None


def last_message(body: Mapping[str, Json]) -> str:
    """The default answer: what was said last."""
    return str(body["prompt"] if "prompt" in body else body["messages"][-1]["content"])


class FakeEndpoint:
    """The server. `served` counts answered requests and `seen` all of them, by the content that decides the answer. `billed`
    and `billed_tokens` are what it would send a bill for: everything it did not refuse with an error status, whether the
    answer could be read or even reached anybody. With `cut`, an answer of more words than `max_tokens` is cut off there."""

    def __init__(
        self,
        answer: Answer = last_message,
        *,
        faults: Sequence[Fault] = (),
        key: str | None = None,
        refuse: Sequence[str] = (),
        latency: float = 0.0,
        usage: bool = True,
        cut: bool = False,
    ) -> None:
        self._answer = answer
        self._faults = tuple(faults)
        self._key = key
        self._refuse = tuple(refuse)
        self._latency = latency
        self._usage = usage
        self._cut = cut
        self._befell = [0] * len(self._faults)
        self._runner: web.AppRunner | None = None
        self.url = ""
        self.requests = 0
        self.billed = 0
        self.billed_tokens = 0
        self.in_flight = 0
        self.most_in_flight = 0
        self.bodies: list[Mapping[str, Json]] = []
        self.seen: Counter[str] = Counter()
        self.served: Counter[str] = Counter()

    async def __aenter__(self) -> FakeEndpoint:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/chat/completions", self._handle)
        app.router.add_post("/v1/completions", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}/v1"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    @contextlib.contextmanager
    def in_thread(self) -> Iterator[FakeEndpoint]:
        """Serve from an event loop in a thread of its own."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="fake-endpoint", daemon=True)
        thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self.__aenter__(), loop).result()
            try:
                yield self
            finally:
                asyncio.run_coroutine_threadsafe(self.__aexit__(None, None, None), loop).result()
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    async def _handle(self, http: web.Request) -> web.StreamResponse:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return await self._respond(http)
        finally:
            self.in_flight -= 1

    async def _respond(self, http: web.Request) -> web.StreamResponse:
        body = await http.json()
        self.requests += 1
        self.bodies.append(body)
        content = canonical([body.get("prompt"), body.get("messages"), body.get("seed")])
        self.seen[content] += 1
        if self._key is not None and http.headers.get("Authorization") != f"Bearer {self._key}":
            given = http.headers.get("Authorization", "").removeprefix("Bearer ")
            return _error(401, f"Incorrect API key provided: {given}", code="invalid_api_key")
        for name in self._refuse:
            if name in body:
                return _error(
                    400, f"Unsupported parameter: '{name}' is not supported here", code="unsupported_parameter"
                )
        if self._latency:
            await asyncio.sleep(self._latency)
        fault = self._due()
        if fault is None or fault.kind not in REFUSALS:
            self.billed += 1
            self.billed_tokens += sum(self._counts(body))
        if fault is not None:
            return await self._misbehave(http, fault, body)
        self.served[content] += 1
        return web.json_response(self._completion(body, "prompt" in body))

    def _due(self) -> Fault | None:
        for index, fault in enumerate(self._faults):
            if self.requests % fault.every == 0 and (fault.times is None or self._befell[index] < fault.times):
                self._befell[index] += 1
                return fault
        return None

    async def _misbehave(self, http: web.Request, fault: Fault, body: Mapping[str, Json]) -> web.StreamResponse:
        match fault.kind:
            case FaultKind.HANG:
                await asyncio.sleep(3600)
            case FaultKind.DROPPED:
                if http.transport is not None:
                    http.transport.abort()
            case FaultKind.LATE:
                await asyncio.sleep(LATENESS)
                return web.json_response(self._completion(body, "prompt" in body))
            case FaultKind.TRUNCATED:
                response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": "1000"})
                await response.prepare(http)
                await response.write(b'{"choices": [')
                if http.transport is not None:
                    http.transport.abort()
                return response
            case FaultKind.EMPTY:
                return web.json_response({"id": "reply", "choices": []})
            case FaultKind.UPSTREAM:
                error = {"message": "the model behind this endpoint failed", "code": 502}
                choice = {"index": 0, "finish_reason": "error", "message": {"content": None}, "error": error}
                return web.json_response({"choices": [choice]})
            case FaultKind.MALFORMED:
                return web.Response(text='{"choices": [{"mess', content_type="application/json")
            case _:
                return _error(int(fault.kind), "not now", retry_after=fault.retry_after)
        return web.Response()

    def _completion(self, body: Mapping[str, Json], plain: bool) -> Json:
        text, finish = self._answer(body), "stop"
        if self._cut and len(text.split()) > body["max_tokens"]:
            text, finish = " ".join(text.split()[: body["max_tokens"]]), "length"
        said: Json = {"text": text} if plain else {"message": {"role": "assistant", "content": text}}
        reply: dict[str, Json] = {
            "id": f"reply-{self.requests}",
            "object": "text_completion" if plain else "chat.completion",
            "model": body.get("model"),
            "choices": [{"index": 0, "finish_reason": finish, **said}],
        }
        if self._usage:
            prompt, completion = self._counts(body)
            reply["usage"] = {
                "prompt_tokens": prompt,
                "completion_tokens": completion,
                "total_tokens": prompt + completion,
                "prompt_tokens_details": {"cached_tokens": 1},
            }
        return reply

    def _counts(self, body: Mapping[str, Json]) -> tuple[int, int]:
        """The tokens of the question and of its answer: words."""
        prompt = body["prompt"] if "prompt" in body else " ".join(m["content"] for m in body["messages"])
        return len(prompt.split()), len(self._answer(body).split())


def _error(status: int, message: str, *, code: str | None = None, retry_after: str | None = None) -> web.Response:
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    body = {"error": {"message": message, "type": "error", "param": None, "code": code}}
    return web.json_response(body, status=status, headers=headers)


def answer_with(script: Callable[[Request], str]) -> Answer:
    """An answer function from a scripted model's function."""

    def answer(body: Mapping[str, Json]) -> str:
        messages = tuple(Message(m["role"], m["content"]) for m in body.get("messages", ()))
        return script(Request(messages=messages, prompt=body.get("prompt"), seed=body.get("seed")))

    return answer


def _parse(arguments: Sequence[str] | None) -> FakeEndpoint:
    from sharpen.models.scripted import script

    parser = argparse.ArgumentParser(prog="python -m sharpen.testing.http", description="A fake OpenAI endpoint.")
    parser.add_argument("--script", default="echo", help="what answers: echo, rules, game")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--key", help="the only API key that is accepted")
    parser.add_argument("--refuse", action="append", default=[], metavar="FIELD", help="answer 400 to this body field")
    parser.add_argument("--fault", action="append", default=[], metavar="KIND:EVERY", help="such as 429:10 or hang:100")
    parser.add_argument("--retry-after", help="the Retry-After of 429, 529 and 500")
    options = parser.parse_args(arguments)
    faults = []
    for text in options.fault:
        kind, _, every = text.partition(":")
        faults.append(Fault(FaultKind(kind), int(every or 1), retry_after=options.retry_after))
    return FakeEndpoint(
        answer_with(script(options.script)),
        faults=faults,
        key=options.key,
        refuse=options.refuse,
        latency=options.latency,
    )


async def _serve(server: FakeEndpoint) -> None:
    async with server:
        print(json.dumps({"url": server.url}), flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(_parse(None)))
