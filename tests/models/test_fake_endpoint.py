"""The fake endpoint itself: beside a program in a thread, and as a process of its own."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

from sharpen.core.chat import Message, Reply, Request
from sharpen.models.openai import OpenAIModel
from sharpen.testing.http import FakeEndpoint


def ask(url: str, *messages: Message) -> Reply:
    async def main() -> Reply:
        model = OpenAIModel(f"{url}#m")
        await model.open()
        try:
            return await model.complete(Request(messages=messages))
        finally:
            await model.close()

    return asyncio.run(main())


def test_it_serves_from_a_thread_and_counts_what_it_was_asked() -> None:
    with FakeEndpoint(lambda body: "four").in_thread() as server:
        for _ in range(2):
            assert ask(server.url, Message("user", "two and two")).text == "four"
        ask(server.url, Message("user", "something else"))
    assert sorted(server.served.values()) == [1, 2]


def test_it_serves_a_script_as_a_process() -> None:
    command = [
        sys.executable,
        "-m",
        "sharpen.testing.http",
        "--script",
        "rules",
        "--fault",
        "429:2",
        "--refuse",
        "seed",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = json.loads(process.stdout.readline())["url"]
            reply = ask(url, Message("system", "- kind-01: azure"), Message("user", "kind-01: hello"))
        finally:
            process.terminate()
    assert reply.text == "azure"
