"""The client against a server that nobody here wrote: llama.cpp's own HTTP server with the embedded model's weights."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from pydantic import BaseModel

from sharpen.core.chat import Message, Reply, Request
from sharpen.core.errors import ModelError, ModelErrorKind
from sharpen.models import weights
from sharpen.models.openai import OpenAIModel
from sharpen.models.schema import json_schema, validate

SERVER = """
import sys
import xllamacpp
params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.n_ctx, params.n_parallel, params.warmup = 512, 1, False
params.cpuparams.n_threads = 1
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


class Sum(BaseModel):
    sum: int


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    command = [sys.executable, "-c", SERVER, str(weights.locate())]
    environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        try:
            yield f"{process.stdout.readline().strip()}/v1"
        finally:
            process.kill()


def ask(url: str, request: Request) -> Reply:
    async def main() -> Reply:
        model = OpenAIModel(f"{url}#smollm2")
        await model.open()
        try:
            return await model.complete(request)
        finally:
            await model.close()

    return asyncio.run(main())


def test_a_prompt_is_continued_up_to_its_stop(url: str) -> None:
    prompt = "User: two\nAssistant: 2\nUser: three\nAssistant: 3\nUser: four\nAssistant:"
    reply = ask(url, Request(prompt=prompt, max_tokens=8, stop=("\n",)))
    assert reply.text.strip().isdigit()
    assert reply.finish == "stop"
    assert reply.usage.prompt_tokens > 10


def test_a_schema_is_obeyed(url: str) -> None:
    request = Request(messages=(Message("user", "What is two plus two?"),), max_tokens=30, schema=json_schema(Sum))
    reply = ask(url, request)
    assert validate(reply.text, Sum).error == ""
    assert reply.usage.completion_tokens > 0


def test_a_reply_keeps_to_max_tokens(url: str) -> None:
    reply = ask(url, Request(messages=(Message("user", "Tell me a long story."),), max_tokens=5))
    assert (reply.finish, reply.usage.completion_tokens) == ("length", 5)


def test_a_request_that_does_not_fit_is_refused_with_the_servers_reason(url: str) -> None:
    with pytest.raises(ModelError, match=r"answered 400: .*512") as caught:
        ask(url, Request(messages=(Message("user", "word " * 2000),)))
    assert caught.value.kind is ModelErrorKind.BAD_REQUEST
