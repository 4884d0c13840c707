"""What the body of a 200 becomes: a reply or a failed call of the right kind, never anything else, whatever the bytes."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp import web
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sharpen.core.chat import Message, Reply, Request
from sharpen.core.errors import FATAL, HEALS, ModelError, ModelErrorKind
from sharpen.ledger.store import Ledger
from sharpen.models import http_errors
from sharpen.models.openai import OpenAIModel
from sharpen.models.openai_reply import MOST_TOKENS, ReplyReader
from sharpen.models.prices import Price
from sharpen.testing.http import FakeEndpoint

K = ModelErrorKind
ASK = Request(messages=(Message("user", "What is two and two?"),), max_tokens=50)
PLAIN = Request(prompt="2 + 2 =", max_tokens=50)
READER = ReplyReader("http://host/v1#m", Price(1.0, 0.5, 2.0))


def body(finish: Any = "stop", **message: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}}]}


def read(answer: Any, request: Request = ASK) -> Reply:
    return READER.read(answer if isinstance(answer, bytes) else json.dumps(answer).encode(), request)


def failure(answer: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        read(answer)
    return caught.value


class TestRules:
    @pytest.mark.parametrize(
        "answer",
        [
            body("error", content=None),
            body("error", content="half an ans"),
            body(content="four") | {"error": {"message": "overloaded", "code": "server_error"}},
            {"error": "overloaded"},
            {"error": {"message": "overloaded"}, "choices": []},
            {
                "choices": [
                    {"finish_reason": "stop", "message": {"content": "x"}, "error": {"code": 502, "message": "x"}}
                ]
            },
            {"error": {"code": "503", "message": "upstream is down"}},
            {"error": {"code": 429, "message": "upstream is busy"}},
        ],
    )
    def test_an_upstream_failure_inside_a_200_is_a_failed_call_that_heals_and_counts(self, answer: Any) -> None:
        error = failure(answer)
        assert error.kind in HEALS and error.counts and error.usage.calls == 1

    @pytest.mark.parametrize(
        "answer",
        [
            body("content_filter", content=None),
            body("content_filter", content=""),
            body("content_filter", content="and then he took the"),
            {"error": {"code": "content_filter", "message": "the prompt triggered the filter"}},
            {"error": {"code": 403, "message": "flagged by moderation"}},
            {"error": {"code": 400, "message": "too long"}},
        ],
    )
    def test_what_is_filtered_or_refused_by_the_provider_is_a_failed_call_that_does_not_heal(self, answer: Any) -> None:
        error = failure(answer)
        assert error.kind is K.BAD_REQUEST and error.kind not in HEALS | FATAL and error.counts

    def test_a_refusal_in_words_is_the_models_answer(self) -> None:
        assert read(body(content="I can't help with that.")).text == "I can't help with that."
        assert read(body(content=None, refusal="I can't help with that.")).text == "I can't help with that."

    def test_saying_nothing_is_an_answer_and_no_text_at_all_is_none(self) -> None:
        assert read(body(content="")).text == ""
        assert read({"choices": [{"text": ""}]}, PLAIN).text == ""
        for missing in (body(content=None), body(), body(None), body("tool_calls", content=None, tool_calls=[])):
            assert failure(missing).kind is K.BAD_REPLY

    def test_tokens_used_up_before_anything_was_said_are_named(self) -> None:
        for content in (None, ""):
            error = failure(body("length", content=content))
            assert error.kind is K.BAD_REPLY and "all 50 tokens (max_tokens) were used" in str(error)
        assert read(body("length", content="an answer that is cut")).finish == "length"

    def test_a_call_of_a_tool_needs_no_text(self) -> None:
        call = {"id": "c1", "function": {"name": "look", "arguments": "{}"}}
        assert read(body("tool_calls", content=None, tool_calls=[call])).tool_calls[0]["name"] == "look"

    @pytest.mark.parametrize("code", ["²", "²³¹", "٤٢٩", 4.29, True, None, [], {}, "99", "1e3", 10**30, -500, "429 "])
    def test_an_error_code_that_is_no_status_is_an_upstream_failure(self, code: Any) -> None:
        assert failure({"error": {"code": code, "message": "odd"}}).kind is K.UNAVAILABLE

    @pytest.mark.parametrize("count", ["1e999", "NaN", "-5", "0", '"many"', "true", "null", "[]", "1e300", str(10**40)])
    def test_a_count_that_is_none_is_charged_at_the_most_it_can_have_been(self, count: str) -> None:
        usage = f'{{"prompt_tokens": {count}, "completion_tokens": {count}, "prompt_tokens_details": {count}}}'
        answer = json.dumps(body(content="four"))[:-1] + f', "usage": {usage}}}'
        used = read(answer.encode()).usage
        assert used.calls == 1 and 0 < used.prompt_tokens < 1000 and used.completion_tokens == 4
        assert used.money is not None and math.isfinite(used.money)

    def test_what_an_unreadable_answer_cost_is_the_bound_where_it_does_not_say(self) -> None:
        most = READER.bound(ASK)
        for unreadable in (b"", b"{", b'"text"', b"data: {}\n\ndata: [DONE]\n", b"\xff\xfe\x00", b"[" * 100_000):
            error = failure(unreadable)
            assert error.kind is K.BAD_REPLY and error.usage == most and "\n" not in str(error)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=12,
)
ODD = JSON | st.sampled_from(
    ["²", "error", "stop", "length", "content_filter", 1e999, -1e999, 10**40, "\ud800", 429, "502"]
)


@st.composite
def answers(draw: st.DrawFn) -> Any:
    """Answers that are nearly right: every field is there, missing, or anything at all."""

    def maybe(**fields: Any) -> dict[str, Any]:
        return {name: draw(value | ODD) for name, value in fields.items() if draw(st.integers(0, 5))}

    text = st.text() | st.none()
    function = maybe(name=st.text(), arguments=st.text())
    calls = [maybe(id=text, function=st.just(function))] if draw(st.booleans()) else None
    message = maybe(content=text, refusal=text, tool_calls=st.just(calls))
    choice = maybe(finish_reason=st.just("stop"), message=st.just(message), text=text, error=st.none())
    count = st.integers(0, 100)
    usage = maybe(
        prompt_tokens=count, completion_tokens=count, prompt_tokens_details=st.just(maybe(cached_tokens=count))
    )
    return maybe(choices=st.just([choice]), usage=st.just(usage), error=st.none())


BODIES = st.binary() | st.builds(lambda value: json.dumps(value).encode(), answers() | JSON)


def check(data: bytes, request: Request, ledger: Ledger) -> None:
    """Either a reply that can be stored and read back, or a model's error that can be written down."""
    try:
        reply = READER.read(data, request)
    except ModelError as error:
        assert error.counts and error.usage.calls == 1 and 0 < error.usage.tokens <= 2 * MOST_TOKENS
        str(error).encode()
        assert len(str(error)) < 1000
        return
    assert isinstance(reply.text, str) and isinstance(reply.finish, str)
    assert reply.usage.calls == 1 and 0 <= reply.usage.tokens <= 2 * MOST_TOKENS
    assert reply.usage.money is not None and math.isfinite(reply.usage.money)
    ledger.add_reply(data[:32].ljust(32), "m", "target", reply)
    ledger.flush()


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    with Ledger(tmp_path_factory.mktemp("fuzz") / "ledger.db") as opened:
        yield opened


@pytest.mark.slow
@settings(max_examples=4000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=BODIES, request_=st.sampled_from([ASK, PLAIN]))
def test_thousands_of_bodies_are_replies_or_models_errors(ledger: Ledger, data: bytes, request_: Request) -> None:
    check(data, request_, ledger)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=BODIES, request_=st.sampled_from([ASK, PLAIN]))
@example(data=b"[" * 5000 + b"]" * 5000, request_=ASK)
@example(data=b'{"error":' * 400 + b"1" + b"}" * 400, request_=ASK)
@example(data=b'{"choices":[{"message":{"content":"x"},"finish_reason":"\\ud800"}]}', request_=ASK)
@example(data=b'{"choices":[{"message":{"content":"\\udc00 x"}}],"usage":{"prompt_tokens":1e999}}', request_=ASK)
@example(data=b'{"error":{"code":"\xc2\xb2","message":"\\ud83d"}}', request_=ASK)
def test_any_bytes_are_a_reply_or_a_models_error(ledger: Ledger, data: bytes, request_: Request) -> None:
    check(data, request_, ledger)


@settings(max_examples=100, deadline=None)
@given(st.text() | st.from_regex(r"\w{3}, \d{1,9} \w{3} -?\d{1,9} \d\d:\d\d:\d\d( GMT| [+-]\d{1,9})?"))
@example("Wed, 21 Oct 2015 07:28:00 GMT")
@example("Wed, 21 Oct 999999999 07:28:00 GMT")
@example("Mon, 01 Jan 0001 00:00:00 +2359")
@example("-0")
@example("1e308")
@example("²")
def test_any_retry_after_is_a_wait_or_none(value: str) -> None:
    for header in ("retry-after", "retry-after-ms"):
        wait = http_errors.retry_after({header: value})
        assert wait is None or (wait >= 0 and math.isfinite(wait))


@settings(max_examples=60, deadline=None)
@given(st.integers(100, 999), ODD | st.dictionaries(st.sampled_from(["error", "message", "code", "detail"]), ODD))
def test_any_error_body_is_a_models_error(status: int, said: Any) -> None:
    error = http_errors.from_status("here", status, said, {})
    str(error).encode()
    assert isinstance(error, ModelError) and not error.counts and len(str(error)) < 1000


class Says(FakeEndpoint):
    """Answers with given bytes and headers."""

    def __init__(self) -> None:
        super().__init__()
        self.data, self.status, self.headers = b"", 200, dict[str, str]()

    async def _respond(self, http: Any) -> Any:
        await http.read()
        return web.Response(body=self.data, status=self.status, headers=self.headers)


def test_a_sample_of_bodies_goes_through_the_real_client(tmp_path: Any) -> None:
    """Every seventh of them as an error status, some with a Retry-After."""
    samples: list[bytes] = []

    @settings(max_examples=60, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
    @given(BODIES)
    def collect(data: bytes) -> None:
        samples.append(data)

    collect()

    async def main() -> tuple[int, int]:
        replies = errors = 0
        async with Says() as server:
            model = OpenAIModel(f"{server.url}#m", timeout=5.0)
            await model.open()
            try:
                for number, data in enumerate(samples):
                    server.data, server.status = data, 500 if number % 7 == 0 else 200
                    waits = ("Wed, 21 Oct 99999 07:28:00 GMT", "-1", "1e999", "\xb2")
                    server.headers = {"Retry-After": waits[number % 4]} if number % 7 == 0 else {}
                    try:
                        assert isinstance(await model.complete(ASK), Reply)
                        replies += 1
                    except ModelError:
                        errors += 1
            finally:
                await model.close()
        return replies, errors

    replies, errors = asyncio.run(main())
    assert replies + errors == len(samples) and errors > 10
