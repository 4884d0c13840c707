"""A model behind our own server: over HTTP it is the model it was, and failures are told in the words of the protocol."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest

from sharpen.bench.config import load
from sharpen.bench.runner import Session, prepare
from sharpen.core.chat import Message, Reply, Request
from sharpen.core.errors import ModelError, ModelErrorKind, UsageError
from sharpen.core.usage import Usage
from sharpen.models.base import Model
from sharpen.models.local import NAME, LocalModel
from sharpen.models.openai import OpenAIModel
from sharpen.models.registry import open_model
from sharpen.models.scripted import ScriptedModel
from sharpen.models.server import name_for, served_id, serving
from sharpen.testing.models import ModelContract, opened

KEY = "serve-key-0123456789"
ASK = Request(messages=(Message("user", "Say seven."),), max_tokens=16)


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "SHARPEN_API_KEY", "SHARPEN_PRICES", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)


class Behind(ScriptedModel):
    """A model that keeps what it was asked and how much at once; `answer` stands in for thinking."""

    def __init__(self, answer: Callable[[Request], Awaitable[Reply]], concurrency: int = 64) -> None:
        super().__init__("scripted/echo", concurrency=concurrency)
        self.answer = answer
        self.asked: list[Request] = []
        self.under_way = self.most_under_way = self.given_up = 0

    async def complete(self, request: Request) -> Reply:
        self.asked.append(request)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            return await self.answer(request)
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        finally:
            self.under_way -= 1


@asynccontextmanager
async def over_http(model: Model, **settings: Any) -> AsyncIterator[OpenAIModel]:
    """`model`, reached through a server of its own."""
    async with serving(model) as url, opened(OpenAIModel(name_for(model, url), **settings)) as client:
        assert isinstance(client, OpenAIModel)
        yield client


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def answering(text: str, **fields: Any) -> Callable[[Request], Awaitable[Reply]]:
    async def answer(request: Request) -> Reply:
        return Reply(text, Usage(1, 9, 4, 2, 0.0), **fields)

    return answer


class TestScriptedOverHttp(ModelContract):
    @pytest.fixture(autouse=True)
    def port_of_its_own(self) -> None:
        # The identity of a served model holds its address, so all the servers of a test have the same one.
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Model]:
        model = open_model("scripted/rules")
        async with serving(model, port=self.port) as url, opened(OpenAIModel(name_for(model, url))) as client:
            yield client


REQUESTS = [
    Request(prompt="User: five\nAssistant: 5\nUser: six\nAssistant:", stop=("\n", "User:"), shared=30, max_tokens=7),
    Request(prompt="half a 🙂, \t and more", temperature=0.75, seed=2**31 - 1),
    Request(
        messages=(Message("system", "Be brief."), Message("user", "Hello"), Message("assistant", ""), ASK.messages[0]),
        schema={"type": "object", "properties": {"z": {"type": "integer"}, "a": {"const": None}}, "required": ["z"]},
        shared=2,
    ),
    Request(messages=ASK.messages, tools=({"type": "function", "function": {"name": "add", "parameters": {}}},)),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=["prompt", "warm", "schema", "tools"])
def test_the_model_is_asked_what_the_client_was_asked(request_: Request) -> None:
    async def main() -> tuple[Reply, list[Request]]:
        model = Behind(answering("seven", finish="length"))
        async with over_http(model) as client:
            return await client.complete(request_), model.asked

    reply, asked = asyncio.run(main())
    assert asked == [request_]
    assert reply == Reply("seven", Usage(1, 9, 4, 2, None), "length")


def test_tool_calls_come_back_as_they_were_made() -> None:
    calls = ({"id": "call-1", "name": "add", "arguments": '{"a": 1}'},)

    async def main() -> Reply:
        async with over_http(Behind(answering("", finish="tool_calls", tool_calls=calls))) as client:
            return await client.complete(REQUESTS[-1])

    reply = asyncio.run(main())
    assert reply.tool_calls == calls and reply.finish == "tool_calls" and reply.text == ""


def test_the_vendors_own_client_understands_it() -> None:
    async def main() -> None:
        async with (
            serving(open_model("scripted/echo")) as url,
            openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client,
        ):
            (listed,) = (await client.models.list()).data
            chat = await client.chat.completions.create(
                model=listed.id, messages=[{"role": "user", "content": [{"type": "text", "text": "one two"}]}], n=1
            )
            assert chat.choices[0].message.content == "one two" and chat.choices[0].finish_reason == "stop"
            assert chat.usage is not None and chat.usage.total_tokens == 4
            text = await client.completions.create(model="echo", prompt=["a b c"], max_tokens=2)
            assert text.choices[0].text == "a b" and text.choices[0].finish_reason == "length"
            with pytest.raises(openai.NotFoundError, match="there is no model"):
                await client.completions.create(model="gpt-5.5", prompt="x")

    asyncio.run(main())


GOOD: dict[str, Any] = {"model": "echo", "messages": [{"role": "user", "content": "hi"}]}


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("chat/completions", {**GOOD, "model": "other"}, 404, 'no model "other" here; there is "echo"'),
        ("chat/completions", {"messages": GOOD["messages"]}, 400, "model: Field required"),
        ("chat/completions", {**GOOD, "messages": []}, 400, "messages: "),
        ("chat/completions", {**GOOD, "messages": [{"role": "tool", "content": "3"}]}, 400, "messages.0.role: "),
        ("chat/completions", {**GOOD, "stream": True}, 400, "stream can only be false here, got true"),
        ("chat/completions", {**GOOD, "n": 2}, 400, "n can only be 1 here"),
        ("chat/completions", {**GOOD, "max_tokens": 0}, 400, "max_tokens: "),
        ("chat/completions", {**GOOD, "temperature": "warm"}, 400, 'temperature: .* got "warm"'),
        ("chat/completions", {**GOOD, "frobnicate": 1}, 400, "frobnicate: "),
        ("chat/completions", {**GOOD, "response_format": {"type": "json_schema"}}, 400, "json_schema: "),
        ("completions", {"model": "echo", "prompt": [[1, 2]]}, 400, "prompt"),
        ("completions", ["no object"], 400, "must be an object"),
        ("completions", b"{nonsense", 400, "not JSON"),
        ("completions", b"[" * 100_000, 400, "not JSON"),
        ("embeddings", {"model": "echo"}, 404, "there is no /v1/embeddings"),
        ("models", {}, 405, "POST /v1/models"),
    ],
)
def test_what_cannot_be_answered_is_an_error_object(path: str, body: Any, status: int, words: str) -> None:
    async def main() -> tuple[int, Any]:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        async with (
            serving(open_model("scripted/echo")) as url,
            aiohttp.ClientSession() as session,
            session.post(f"{url}/{path}", data=content, headers=headers) as response,
        ):
            return response.status, await response.json()

    found, answer = asyncio.run(main())
    assert found == status
    assert set(answer["error"]) == {"message", "type", "param", "code"}
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(answer["error"]["message"])


def test_a_page_in_a_browser_cannot_ask() -> None:
    async def main() -> int:
        async with (
            serving(open_model("scripted/echo")) as url,
            aiohttp.ClientSession() as session,
            session.post(f"{url}/chat/completions", data=json.dumps(GOOD)) as response,
        ):
            return response.status

    assert asyncio.run(main()) == 415


def test_with_a_key_only_those_who_have_it_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask(url: str) -> Reply:
        async with opened(open_model(f"{url}#echo")) as client:
            return await client.complete(ASK)

    async def main() -> None:
        async with serving(open_model("scripted/echo"), key=KEY) as url, aiohttp.ClientSession() as session:
            for wrong in (None, "wrong-key", KEY[:-1], KEY + "é"):
                if wrong is not None:
                    monkeypatch.setenv("SHARPEN_API_KEY", wrong)
                if wrong is None or wrong.isascii():
                    with pytest.raises(ModelError) as caught:
                        await ask(url)
                    assert caught.value.kind is ModelErrorKind.AUTH and KEY not in str(caught.value)
            monkeypatch.setenv("SHARPEN_API_KEY", KEY)
            assert (await ask(url)).text == "Say seven."
            async with session.get(f"{url}/models", headers={"Authorization": f"Bearer {KEY}é"}) as response:
                assert response.status == 401 and KEY not in await response.text()
            async with session.get(url.removesuffix("/v1") + "/health") as response:
                assert response.status == 200

    asyncio.run(main())


@pytest.mark.parametrize("kind", list(ModelErrorKind))
def test_a_failure_keeps_its_meaning_over_http(kind: ModelErrorKind, monkeypatch: pytest.MonkeyPatch) -> None:
    # Trouble further on is the server's own trouble to who asks it: to be tried again, and not the agent's fault.
    further_on = (ModelErrorKind.TIMEOUT, ModelErrorKind.UNREACHABLE, ModelErrorKind.BAD_REPLY)
    monkeypatch.setenv("SHARPEN_API_KEY", KEY)

    async def fail(request: Request) -> Reply:
        raise ModelError(kind, f"no, with {KEY}", retry_after=2.5)

    async def main() -> None:
        model = Behind(fail)
        async with serving(model, key=KEY) as url, opened(OpenAIModel(name_for(model, url))) as client:
            await client.complete(ASK)

    with pytest.raises(ModelError, match=r"no, with \[redacted\]") as caught:
        asyncio.run(main())
    assert caught.value.kind is (ModelErrorKind.UNAVAILABLE if kind in further_on else kind)
    assert caught.value.retry_after == 3


def test_sixty_four_at_once_are_all_answered_and_the_model_is_not_pressed() -> None:
    async def answer(request: Request) -> Reply:
        await asyncio.sleep(0.01)
        return Reply(request.messages[-1].content, Usage(1, 1, 0, 1, 0.0))

    async def main() -> None:
        model = Behind(answer, concurrency=8)
        async with over_http(model) as client:
            questions = [Request(messages=(Message("user", str(number)),)) for number in range(64)]
            replies = await asyncio.gather(*map(client.complete, questions))
        assert [reply.text for reply in replies] == [str(number) for number in range(64)]
        assert model.most_under_way == 8

    asyncio.run(main())


def test_a_client_that_hangs_up_takes_its_call_with_it() -> None:
    async def answer(request: Request) -> Reply:
        if request.prompt == "long":
            await asyncio.sleep(3600)
        return Reply("done", Usage(1, 1, 0, 1, 0.0))

    async def main() -> None:
        model = Behind(answer, concurrency=1)
        async with over_http(model, timeout=5) as client:
            waiting = [asyncio.ensure_future(client.complete(Request(prompt="long"))) for _ in range(3)]
            await until(lambda: model.asked)
            for call in waiting:
                call.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            assert (await client.complete(Request(prompt="short"))).text == "done"
            assert model.given_up == len([request for request in model.asked if request.prompt == "long"]) >= 1

    asyncio.run(main())


def test_a_server_that_stops_does_not_wait_for_ever() -> None:
    async def answer(request: Request) -> Reply:
        await asyncio.sleep(3600)
        raise AssertionError

    async def main() -> None:
        model = Behind(answer)
        async with serving(model) as url:
            client = OpenAIModel(name_for(model, url))
            await client.open()
            call = asyncio.ensure_future(client.complete(ASK))
            await until(lambda: model.asked)
        assert model.given_up == 1
        with pytest.raises(ModelError) as caught:
            await call
        assert caught.value.kind is ModelErrorKind.UNAVAILABLE
        await client.close()

    asyncio.run(asyncio.wait_for(main(), 20))


def test_two_servers_do_not_share_a_port() -> None:
    async def main() -> None:
        async with serving(open_model("scripted/echo")) as url:
            port = int(url.rsplit(":", 1)[1].removesuffix("/v1"))
            with pytest.raises(UsageError, match=f"port {port} of 127.0.0.1 is taken"):
                async with serving(open_model("scripted/echo"), port=port):
                    pass

    asyncio.run(main())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("local/smollm2-135m", "smollm2-135m"),
        ("scripted/rules?noise=0.1", "rules"),
        ("openai/gpt-5.5", "gpt-5.5"),
        ("https://host/v1?version=2#org/model?timeout=9", "org/model"),
        ("record:some/talk.jsonl:local/smollm2-135m", "smollm2-135m"),
    ],
)
def test_a_model_is_served_under_its_own_name(name: str, expected: str) -> None:
    assert served_id(name) == expected


def test_settings_may_stand_in_the_name_of_an_endpoint() -> None:
    plain = OpenAIModel("http://127.0.0.1:1/v1?version=2#org/model")
    model = OpenAIModel("http://127.0.0.1:1/v1?version=2#org/model?deterministic=true&render=turns&timeout=9")
    assert (model.deterministic, model.render, model.settings.timeout) == (True, "turns", 9)
    assert (plain.deterministic, plain.render) == (False, "system")
    assert (
        (model.endpoint, model._model)
        == (plain.endpoint, plain._model)
        == ("http://127.0.0.1:1/v1?version=2", "org/model")
    )
    assert model.identity != plain.identity
    with pytest.raises(UsageError, match=r"no setting 'rendr' \(did you mean 'render'\?\)"):
        OpenAIModel("http://127.0.0.1:1/v1#model?rendr=turns")
    with pytest.raises(UsageError, match="render: Input should be 'system', 'turns' or 'completion', got 'loud'"):
        OpenAIModel("openai/gpt-5.5?render=loud")


async def train(model: str, root: Path) -> list[Any]:
    """The story of a small training, apart from when it was, who the model is and what it charges."""
    settings = {"task": {"name": "number-words", "limit": 5}, "models": {"target": model}}
    params = [f"trainer.params.{set_}" for set_ in ("max_steps=1", "alternatives=2", "screen_items=0", "gate=force")]
    folder, parts = prepare(load(None, settings, params), root)
    session = Session(parts, folder)
    assert await session.run() == "done"
    lines = (session.job_folder / "events.jsonl").read_text().splitlines()
    return [apart(json.loads(line)) for line in lines]


def apart(event: Any) -> Any:
    kept = {key: value for key, value in event.items() if key not in ("clock", "job_id", "models")}
    return {**kept, "usage": without_money(kept["usage"])} if "usage" in kept else kept


def without_money(usage: Any) -> Any:
    if isinstance(usage, dict):
        return {key: without_money(value) for key, value in usage.items()}
    calls, prompt_tokens, completion_tokens, _ = usage
    return calls, prompt_tokens, completion_tokens


def test_the_embedded_model_trains_over_http_as_it_does_in_process(tmp_path: Path) -> None:
    async def main() -> tuple[list[Any], list[Any]]:
        inside = await train(NAME, tmp_path / "inside")
        model = LocalModel()
        async with serving(model) as url:
            return inside, await train(name_for(model, url), tmp_path / "outside")

    inside, outside = asyncio.run(main())
    assert inside == outside
    assert [event["action"] for event in inside if event["type"] == "step_done"] == ["accept"]
    scores = [group["hard"] for event in inside if event["type"] == "measured" for group in event["groups"]]
    assert any(any(hard) for hard in scores) and not all(all(hard) for hard in scores), "nothing to tell apart"


def test_a_request_while_the_model_dies_fails_and_the_next_is_answered() -> None:
    async def main() -> None:
        model = LocalModel(workers=1)
        async with over_http(model) as client:
            call = asyncio.ensure_future(client.complete(Request(prompt="Once upon a time", max_tokens=2000)))
            await until(lambda: model._serving)
            for worker in model._all:
                os.kill(worker.process.pid, signal.SIGKILL)
            with pytest.raises(ModelError, match=r"503: .*ended with code -9") as caught:
                await call
            assert caught.value.kind is ModelErrorKind.UNAVAILABLE
            assert (await client.complete(Request(prompt="One, two, three,", max_tokens=3))).text.strip()

    asyncio.run(main())
