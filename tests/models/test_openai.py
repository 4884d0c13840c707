"""OpenAI-compatible endpoints over real HTTP: what is sent, what is understood, and what every kind of failure becomes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from sharpen.core.chat import Message, Reply, Request
from sharpen.core.errors import ModelError, ModelErrorKind, UsageError
from sharpen.core.usage import Usage
from sharpen.engine.limits import Limiter
from sharpen.engine.retry import RetryPolicy, with_retries
from sharpen.models.openai import OpenAIModel
from sharpen.testing.http import FakeEndpoint, Fault, FaultKind

K = ModelErrorKind
KEY = "test-key-0123456789"
ASK = Request(messages=(Message("system", "Be brief."), Message("user", "What is two and two?")), max_tokens=50)
SCHEMA = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "SHARPEN_API_KEY", "SHARPEN_PRICES", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)


def talk(
    server: FakeEndpoint, use: Callable[[OpenAIModel], Awaitable[Any]], name: str = "{url}#test-model", **settings: Any
) -> Any:
    async def main() -> Any:
        async with server:
            model = OpenAIModel(name.format(url=server.url), **settings)
            await model.open()
            try:
                return await use(model)
            finally:
                await model.close()

    return asyncio.run(main())


def ask(server: FakeEndpoint, request: Request = ASK, **settings: Any) -> Reply:
    reply = talk(server, lambda model: model.complete(request), **settings)
    assert isinstance(reply, Reply)
    return reply


def failure(server: FakeEndpoint, **settings: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        ask(server, **settings)
    return caught.value


def test_a_conversation_goes_to_chat_completions() -> None:
    server = FakeEndpoint(lambda body: "four")
    reply = ask(server)
    assert reply.text == "four"
    assert reply.usage == Usage(1, 7, 1, 1, None)
    assert server.bodies == [
        {
            "model": "test-model",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "What is two and two?"},
            ],
            "max_tokens": 50,
            "temperature": 0.0,
        }
    ]


def test_a_prompt_goes_to_completions_with_its_stops_and_seed() -> None:
    server = FakeEndpoint(lambda body: " 4")
    reply = ask(server, Request(prompt="2 + 2 =", max_tokens=5, stop=("\n",), seed=7, temperature=0.5))
    assert reply.text == " 4"
    assert server.bodies[0] == {
        "model": "test-model",
        "prompt": "2 + 2 =",
        "max_tokens": 5,
        "stop": ["\n"],
        "seed": 7,
        "temperature": 0.5,
    }


def test_settings_override_temperature_and_add_fields() -> None:
    server = FakeEndpoint()
    ask(server, temperature=0.7, extra={"reasoning_effort": "low"})
    assert server.bodies[0]["temperature"] == 0.7
    assert server.bodies[0]["reasoning_effort"] == "low"


def test_a_server_that_counts_nothing_is_charged_the_most_it_can_have_used() -> None:
    async def use(model: OpenAIModel) -> tuple[Reply, tuple[int, float | None]]:
        return await model.complete(ASK), model.bound(ASK)

    reply, (most, money) = talk(FakeEndpoint(lambda body: "four", usage=False), use)
    assert reply.usage.prompt_tokens == most - ASK.max_tokens
    assert reply.usage.completion_tokens == 4
    assert money is None


def test_openai_itself_is_known_by_its_key_and_priced(monkeypatch: pytest.MonkeyPatch) -> None:
    server = FakeEndpoint(lambda body: "four", key=KEY)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    async def use(model: OpenAIModel) -> tuple[Reply, tuple[int, float | None]]:
        return await model.complete(ASK), model.bound(ASK)

    async def main() -> Any:
        async with server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            model = OpenAIModel("openai/gpt-5.5")
            await model.open()
            try:
                return await use(model)
            finally:
                await model.close()

    reply, (tokens, money) = asyncio.run(main())
    assert server.bodies[0]["model"] == "gpt-5.5"
    assert reply.usage.money == pytest.approx((6 * 5.0 + 1 * 0.5 + 1 * 30.0) / 1e6)
    assert money is not None
    assert money >= reply.usage.money
    assert tokens >= reply.usage.tokens


def test_openais_reasoning_models_get_only_the_fields_they_take() -> None:
    body = OpenAIModel("openai/gpt-5.5")._body(
        Request(prompt="x", stop=("\n",)), OpenAIModel("openai/gpt-5.5")._dialect
    )
    assert body == {"model": "gpt-5.5", "prompt": "x", "max_completion_tokens": 1024}


def test_a_missing_key_is_said_before_anything_is_sent() -> None:
    with pytest.raises(UsageError, match=r"openai/gpt-5\.5 needs an API key: set OPENAI_API_KEY"):
        asyncio.run(OpenAIModel("openai/gpt-5.5").open())


def test_a_wrong_key_is_named_as_such_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARPEN_API_KEY", "wrong-key-987654321")
    error = failure(FakeEndpoint(key=KEY))
    assert error.kind is K.AUTH
    assert "answered 401" in str(error)
    assert "check the API key" in str(error)
    assert "wrong-key-987654321" not in str(error)


@pytest.mark.parametrize(
    ("kind", "becomes"),
    [
        (FaultKind.RATE_LIMITED, K.RATE_LIMITED),
        (FaultKind.OVERLOADED, K.RATE_LIMITED),
        (FaultKind.BROKEN, K.UNAVAILABLE),
        (FaultKind.DROPPED, K.UNAVAILABLE),
        (FaultKind.MALFORMED, K.BAD_REPLY),
        (FaultKind.HANG, K.TIMEOUT),
    ],
)
def test_every_fault_becomes_its_kind_and_names_the_endpoint(kind: FaultKind, becomes: ModelErrorKind) -> None:
    server = FakeEndpoint(faults=[Fault(kind, retry_after="17")])
    error = failure(server, timeout=0.3 if kind is FaultKind.HANG else 30.0)
    assert error.kind is becomes
    assert f"{server.url}#test-model" in str(error)
    assert "\n" not in str(error)
    assert error.retry_after == (
        17.0 if kind in (FaultKind.RATE_LIMITED, FaultKind.OVERLOADED, FaultKind.BROKEN) else None
    )


def test_an_answer_that_only_trickles_in_runs_out_of_time() -> None:
    from aiohttp import web

    class Trickle(FakeEndpoint):
        async def _respond(self, http: Any) -> Any:
            response = web.StreamResponse(headers={"Content-Type": "application/json"})
            await response.prepare(http)
            for _ in range(200):
                await response.write(b" ")
                await asyncio.sleep(0.05)
            return response

    assert failure(Trickle(), timeout=0.5).kind is K.TIMEOUT


def test_nobody_listening_is_unreachable() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]

    async def main() -> None:
        model = OpenAIModel(f"http://127.0.0.1:{port}/v1#m")
        await model.open()
        try:
            await model.complete(ASK)
        finally:
            await model.close()

    with pytest.raises(ModelError, match=f"cannot reach http://127.0.0.1:{port}/v1#m") as caught:
        asyncio.run(main())
    assert caught.value.kind is K.UNREACHABLE


def test_an_unknown_path_is_not_found() -> None:
    error_of = FakeEndpoint()

    async def main() -> None:
        async with error_of:
            model = OpenAIModel(error_of.url.replace("/v1", "/v2") + "#m")
            await model.open()
            try:
                await model.complete(ASK)
            finally:
                await model.close()

    with pytest.raises(ModelError) as caught:
        asyncio.run(main())
    assert caught.value.kind is K.NOT_FOUND
    assert "check the model's name" in str(caught.value)


@pytest.mark.parametrize(
    ("refused", "form"),
    [((), "json_schema"), (("json_schema",), "json_object"), (("json_schema", "json_object"), None)],
)
def test_a_schema_is_asked_for_in_the_best_form_the_endpoint_takes(refused: tuple[str, ...], form: str | None) -> None:
    class Picky(FakeEndpoint):
        async def _respond(self, http: Any) -> Any:
            from aiohttp import web

            wanted = (await http.json()).get("response_format")
            if wanted and wanted["type"] in refused:
                return web.json_response({"error": {"message": "response_format is unavailable"}}, status=400)
            return await super()._respond(http)

    server = Picky(lambda body: '{"sum": 4}')
    request = Request(messages=ASK.messages, schema=SCHEMA)

    async def use(model: OpenAIModel) -> list[Reply]:
        return [await model.complete(request), *await asyncio.gather(*(model.complete(request) for _ in range(8)))]

    replies = talk(server, use)
    assert [reply.text for reply in replies] == ['{"sum": 4}'] * 9
    assert len(server.bodies) == 9
    said = server.bodies[0]["messages"][-1]["content"]
    if form is None:
        assert "response_format" not in server.bodies[0]
    else:
        assert server.bodies[0]["response_format"]["type"] == form
    assert ("JSON schema" in said) == (form != "json_schema")


def test_a_burst_that_meets_a_refused_field_together_adapts_only_as_far_as_needed() -> None:
    server = FakeEndpoint(lambda body: "{}", refuse=["max_tokens"])

    async def use(model: OpenAIModel) -> None:
        await asyncio.gather(*(model.complete(ASK) for _ in range(16)))

    talk(server, use)
    assert sum("max_completion_tokens" in body for body in server.bodies) == 16
    assert all(body["max_completion_tokens"] == 50 for body in server.bodies if "max_completion_tokens" in body)


def test_a_switch_is_made_once_and_then_given_up() -> None:
    server = FakeEndpoint(refuse=["max_tokens", "max_completion_tokens"])
    error = failure(server)
    assert error.kind is K.BAD_REQUEST
    assert len(server.bodies) == 2


def test_stops_an_endpoint_refuses_are_applied_here() -> None:
    server = FakeEndpoint(lambda body: "four\nfive", refuse=["stop", "temperature", "seed"])
    reply = ask(server, Request(prompt="x", stop=("\n",), seed=3))
    assert reply.text == "four"


def test_a_value_out_of_range_is_no_reason_to_say_it_otherwise() -> None:
    from aiohttp import web

    class Full(FakeEndpoint):
        async def _respond(self, http: Any) -> Any:
            self.requests += 1
            message = "max_tokens is too large: 50. This model has room for 10."
            return web.json_response({"error": {"message": message}}, status=400)

    server = Full()
    assert failure(server).kind is K.BAD_REQUEST
    assert server.requests == 1


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("[]", K.BAD_REPLY),
        ("{}", K.BAD_REPLY),
        ('{"choices": []}', K.BAD_REPLY),
        ('{"choices": [{}]}', K.BAD_REPLY),
        ('{"choices": 5}', K.BAD_REPLY),
        ('{"choices": [{"message": {"content": [1]}}]}', K.BAD_REPLY),
        ('{"error": {"code": 429, "message": "upstream is busy"}}', K.RATE_LIMITED),
        ("<html>gateway</html>", K.BAD_REPLY),
    ],
)
@pytest.mark.parametrize("content_type", ["application/json", "text/html"])
def test_an_answer_of_the_wrong_shape_is_a_bad_reply(body: str, kind: ModelErrorKind, content_type: str) -> None:
    from aiohttp import web

    class Odd(FakeEndpoint):
        async def _respond(self, http: Any) -> Any:
            return web.Response(text=body, content_type=content_type)

    assert failure(Odd()).kind is kind


@pytest.mark.parametrize(
    "usage",
    [None, {}, {"total_tokens": 9}, {"prompt_tokens": None, "completion_tokens": None}, {"prompt_tokens": "many"},
     {"prompt_tokens": 0, "completion_tokens": 0}, {"prompt_tokens": -5, "completion_tokens": True}, []],
)  # fmt: skip
def test_what_an_endpoint_does_not_count_is_charged_at_the_most_it_can_have_been(usage: Any) -> None:
    from aiohttp import web

    class Silent(FakeEndpoint):
        async def _respond(self, http: Any) -> Any:
            return web.json_response({"choices": [{"message": {"content": "x" * 90}}], "usage": usage})

    found = ask(Silent()).usage
    assert found.calls == 1 and found.completion_tokens == 90 and found.prompt_tokens >= 2


def test_an_answer_of_no_use_tells_what_it_cost() -> None:
    from aiohttp import web

    class Empty(FakeEndpoint):
        async def _respond(self, http: Any) -> Any:
            return web.json_response({"choices": [], "usage": {"prompt_tokens": 40, "completion_tokens": 2}})

    assert failure(Empty()).usage.row()[:4] == [1, 40, 0, 2]


def test_tool_calls_come_back() -> None:
    from aiohttp import web

    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}

    class Tools(FakeEndpoint):
        async def _respond(self, http: Any) -> Any:
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
            return web.json_response({"choices": [{"message": message, "finish_reason": "tool_calls"}]})

    reply = ask(Tools())
    assert (reply.text, reply.finish) == ("", "tool_calls")
    assert reply.tool_calls == ({"id": "c1", "name": "look", "arguments": "{}"},)


def test_with_retries_every_question_is_answered_once_despite_faults() -> None:
    faults = [
        Fault(FaultKind.RATE_LIMITED, every=5, retry_after="0.05"),
        Fault(FaultKind.BROKEN, every=7),
        Fault(FaultKind.DROPPED, every=11),
        Fault(FaultKind.OVERLOADED, every=13),
    ]
    server = FakeEndpoint(faults=faults)
    policy = RetryPolicy(first_pause=0.01)

    async def use(model: OpenAIModel) -> list[Reply]:
        limiter = Limiter(32)

        async def one(number: int) -> Reply:
            request = Request(messages=(Message("user", f"question {number}"),))
            return await with_retries(lambda: model.complete(request), policy=policy, limiter=limiter)

        replies = await asyncio.gather(*(one(number) for number in range(100)))
        assert limiter.history
        return replies

    replies = talk(server, use)
    assert [reply.text for reply in replies] == [f"question {number}" for number in range(100)]
    assert set(server.served.values()) == {1}
    assert server.most_in_flight <= 32


def test_many_at_once_share_one_client_and_all_come_back() -> None:
    server = FakeEndpoint(latency=0.2)

    async def use(model: OpenAIModel) -> list[Reply]:
        return await asyncio.gather(
            *(model.complete(Request(messages=(Message("user", str(number)),))) for number in range(200))
        )

    assert [reply.text for reply in talk(server, use)] == [str(number) for number in range(200)]
    assert server.most_in_flight > 20
