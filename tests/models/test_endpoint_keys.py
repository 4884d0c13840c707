"""A key goes to the endpoint it is configured for, and to no other: seen by real servers that write down what they get."""

from __future__ import annotations

import asyncio
import gzip
import socket
import zlib
from typing import Any

import pytest
from aiohttp import web

from sharpen.core.chat import Message, Reply, Request
from sharpen.core.errors import ModelError, ModelErrorKind
from sharpen.models import http_client
from sharpen.models.openai import OpenAIModel
from sharpen.testing.http import FakeEndpoint

OPENAI, SHARPEN = "sk-openai-0123456789abcdef", "key-sharpen-0123456789"
ASK = Request(messages=(Message("user", "hi"),), shared=1)
VARIABLES = (
    "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "SHARPEN_API_KEY", "SHARPEN_BASE_URL",
    "SHARPEN_PRICES", "HTTP_PROXY", "http_proxy",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _both_keys_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", OPENAI)
    monkeypatch.setenv("OPENAI_ORG_ID", "org-mine")


class Recorder(FakeEndpoint):
    """Writes down every header it is sent."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.headers: list[str] = []
        self.paths: list[str] = []

    async def _respond(self, http: Any) -> Any:
        self.headers.append(str(dict(http.headers)))
        self.paths.append(http.path_qs)
        return await super()._respond(http)


def sent(name: str = "{url}#m", environment: dict[str, str] | None = None) -> str:
    """The headers that reached a server that is asked under `name`, with these variables set; `{url}` is its address."""

    async def main() -> str:
        async with Recorder() as server:
            with pytest.MonkeyPatch.context() as patch:
                for variable, value in (environment or {}).items():
                    patch.setenv(variable, value.format(url=server.url))
                model = OpenAIModel(name.format(url=server.url))
                await model.open()
                try:
                    await model.complete(ASK)
                finally:
                    await model.close()
            return " ".join(server.headers)

    return asyncio.run(main())


def test_openais_key_does_not_go_to_just_any_address() -> None:
    headers = sent()
    assert OPENAI not in headers and "org-mine" not in headers and "Bearer none" in headers
    assert OPENAI not in sent("openai/gpt-5.5?base_url={url}"), "also where a name calls itself OpenAI's"


def test_openais_key_goes_to_the_address_it_is_configured_for() -> None:
    here = {"OPENAI_BASE_URL": "{url}/"}
    assert OPENAI in sent("openai/gpt-5.5", here) and OPENAI in sent(environment=here)
    elsewhere = {"OPENAI_BASE_URL": "{url}/deeper"}
    assert OPENAI not in sent(environment=elsewhere), "another path of the same server is another endpoint"


def test_our_key_goes_where_the_user_names_it_for() -> None:
    assert SHARPEN in sent(environment={"SHARPEN_API_KEY": SHARPEN})
    bound = {"SHARPEN_API_KEY": SHARPEN, "SHARPEN_BASE_URL": "http://gpu:8000/v1 {url}"}
    assert SHARPEN in sent(environment=bound)
    headers = sent(environment=bound | {"SHARPEN_BASE_URL": "http://gpu:8000/v1"})
    assert SHARPEN not in headers and OPENAI not in headers


def test_each_of_two_keys_goes_to_its_own_endpoint() -> None:
    both = {"SHARPEN_API_KEY": SHARPEN, "OPENAI_BASE_URL": "{url}"}
    headers = sent(environment=both)
    assert OPENAI in headers and SHARPEN not in headers
    headers = sent(environment=both | {"SHARPEN_BASE_URL": "{url}"})
    assert SHARPEN in headers and OPENAI not in headers


@pytest.mark.parametrize(
    "url", ["http://api.openai.com/v1", "https://api.openai.com:444/v1", "https://api.openai.com.evil.org/v1"]
)
def test_what_only_looks_like_openai_gets_no_key(url: str) -> None:
    assert OpenAIModel(f"{url}#gpt-5.5")._key is None
    assert OpenAIModel("https://api.openai.com/v1#gpt-5.5")._key == OPENAI


def test_who_wants_a_key_and_got_none_says_how_to_configure_one() -> None:
    async def main() -> None:
        async with FakeEndpoint(key="another") as server:
            model = OpenAIModel(f"{server.url}#m")
            await model.open()
            try:
                await model.complete(ASK)
            finally:
                await model.close()

    why = r"check the API key: none was sent; OPENAI_API_KEY goes only to https://api\.openai\.com/v1; set SHARPEN_API_KEY"
    with pytest.raises(ModelError, match=why):
        asyncio.run(main())


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_carries_the_key_nowhere(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARPEN_API_KEY", SHARPEN)

    class Redirects(FakeEndpoint):
        target = ""

        async def _respond(self, http: Any) -> Any:
            return web.Response(status=status, headers={"Location": self.target})

    async def main() -> list[str]:
        async with Recorder() as other, Redirects() as server:
            server.target = f"{other.url}/chat/completions"
            model = OpenAIModel(f"{server.url}#m")
            await model.open()
            try:
                with pytest.raises(ModelError, match="redirects are not followed") as caught:
                    await model.complete(ASK)
                assert caught.value.kind is ModelErrorKind.NOT_FOUND and not caught.value.counts
            finally:
                await model.close()
            return other.headers

    assert asyncio.run(main()) == []


def test_what_stands_before_the_model_in_an_address_is_part_of_every_request() -> None:
    """Such as `?api-version=`; it used to end up in the middle of the path."""

    async def main() -> list[str]:
        async with Recorder() as server:
            model = OpenAIModel(f"{server.url}/?api-version=7&x=%20#m?timeout=9")
            await model.open()
            try:
                await model.complete(ASK)
                await model.complete(Request(prompt="hi"))
            finally:
                await model.close()
            return server.paths

    assert asyncio.run(main()) == [f"/v1/{path}?api-version=7&x=%20" for path in ("chat/completions", "completions")]


def packed(wbits: int) -> bytes:
    packer = zlib.compressobj(1, wbits=wbits)
    return packer.compress(b" " * (2 * http_client.LARGEST)) + packer.flush()


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("form", ["plain", "chunked", "gzip", "deflate", "br", "broken", "small"])
def test_an_answer_is_read_up_to_a_limit_whatever_its_form(form: str, status: int) -> None:
    right = b'{"choices": [{"message": {"content": "four"}}]}'

    class Large(FakeEndpoint):
        async def _respond(self, http: Any) -> Any:
            match form:
                case "plain":
                    return web.Response(body=b" " * (http_client.LARGEST + 1), status=status)
                case "chunked":
                    response = web.StreamResponse(status=status)
                    await response.prepare(http)
                    for _ in range((http_client.LARGEST >> 20) + 1):
                        await response.write(b" " * (1 << 20))
                    return response
                case "small":
                    return web.Response(body=gzip.compress(right), headers={"Content-Encoding": "gzip"}, status=status)
            encoding = "deflate" if form == "broken" else form
            body = b"not compressed at all" if form == "broken" else packed(15 if form == "deflate" else 31)
            return web.Response(body=body, headers={"Content-Encoding": encoding}, status=status)

    async def main() -> Reply:
        async with Large() as server:
            model = OpenAIModel(f"{server.url}#m")
            await model.open()
            try:
                return await model.complete(ASK)
            finally:
                await model.close()

    if (form, status) == ("small", 200):
        assert asyncio.run(main()).text == "four"
        return
    with pytest.raises(ModelError) as caught:
        asyncio.run(main())
    assert caught.value.kind is (ModelErrorKind.BAD_REPLY if status == 200 else ModelErrorKind.UNAVAILABLE)
    assert caught.value.counts == (status == 200)


def test_an_answer_that_is_no_http_is_a_broken_connection() -> None:
    async def main() -> None:
        async def answer(reader: Any, writer: Any) -> None:
            await reader.read(100)
            writer.write(b"SSH-2.0-OpenSSH_9.9\r\n")
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0, family=socket.AF_INET)
        port = server.sockets[0].getsockname()[1]
        model = OpenAIModel(f"http://127.0.0.1:{port}/v1#m")
        await model.open()
        try:
            await model.complete(ASK)
        finally:
            await model.close()
            server.close()

    with pytest.raises(ModelError) as caught:
        asyncio.run(main())
    assert caught.value.kind is ModelErrorKind.UNAVAILABLE and caught.value.counts
