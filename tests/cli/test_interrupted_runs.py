"""Real trainings against a real endpoint that are ended in order, from outside or by the endpoint, and resumed: the same
events as without, and no question paid for twice."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from test_keyboard import PROGRAM, told

from sharpen.models.scripted import script
from sharpen.testing.http import FakeEndpoint, answer_with

GROUP = 6
"""Questions to the optimizer that are out at the same time in the first step."""


class Optimizer(FakeEndpoint):
    """An optimizer's endpoint at which something happens when its `at`-th question arrives. Those after it are answered
    first."""

    def __init__(self) -> None:
        super().__init__(answer_with(script("rules")))
        self.at, self.happens = 0, ""
        self.process: subprocess.Popen[str] | None = None
        self.arrived = 0
        self._gone = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def interrupt(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)

    def come_back(self) -> None:
        """Listen again where it listened before."""
        if self._gone:
            self._gone = False
            assert self._loop is not None
            asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()

    async def _listen(self) -> None:
        assert self._runner is not None
        await web.TCPSite(self._runner, "127.0.0.1", int(self.url.split(":")[2].split("/")[0])).start()

    async def _go_away(self) -> None:
        """Nobody listens any more, as while an endpoint is restarted."""
        assert self._runner is not None
        self._gone, self._loop = True, asyncio.get_running_loop()
        for site in list(self._runner.sites):
            await site.stop()

    async def _respond(self, http: web.Request) -> web.StreamResponse:
        self.arrived += 1
        number = self.arrived
        if self._gone:
            return self._hang_up(http)
        if number == self.at:
            return await self._act(http)
        await asyncio.sleep(0.05 + 0.1 * (number * 7 % 3))
        return self._hang_up(http) if self._gone else await super()._respond(http)

    async def _act(self, http: web.Request) -> web.StreamResponse:
        match self.happens:
            case "401":
                return web.json_response({"error": {"message": "no"}}, status=401)
            case "wait":
                asyncio.get_running_loop().call_later(0.3, self.interrupt)
                return web.json_response({"error": {"message": "no"}}, status=429, headers={"Retry-After": "2"})
            case "restart":
                await self._go_away()
                return self._hang_up(http)
            case "twice":
                self.interrupt()
                asyncio.get_running_loop().call_later(0.12, self.interrupt)
            case "once":
                self.interrupt()
        await asyncio.sleep(0.4)
        return await super()._respond(http)

    def _hang_up(self, http: web.Request) -> web.StreamResponse:
        if http.transport is not None:
            http.transport.abort()
        return web.Response()


@dataclass
class Training:
    """Trainings in one folder, against one endpoint."""

    home: Path
    server: Optimizer
    questions: set[str] = field(default_factory=set)

    def run(self, *words: str) -> tuple[int, str]:
        process = subprocess.Popen(
            [*PROGRAM, *words, "-q"], cwd=self.home, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        self.server.process = process
        _, err = process.communicate(timeout=120)
        return process.returncode, err

    def train(self, runs: str, *words: str) -> tuple[int, str]:
        optimizer = f"{self.server.url}#m?deterministic=true"
        size = ("--steps", "1", "--limit", "12", "--workers", "8", "trainer.params.minibatch_size=2")
        models = ("--model", "scripted/rules", "--optimizer", optimizer)
        return self.run("train", "codebook", *models, *size, "--runs", runs, *words)

    def events(self, runs: str) -> list[Any]:
        (path,) = self.home.glob(f"{runs}/*/jobs/*/events.jsonl")
        return told(path)


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    """With a training that was not disturbed, in `whole`."""
    with Optimizer().in_thread() as server:
        training = Training(tmp_path_factory.mktemp("interrupted"), server)
        assert training.train("whole")[0] == 0
        training.questions = set(server.served)
        assert len(training.questions) >= GROUP and set(server.served.values()) == {1}
        yield training


def check(training: Training, happens: str, at: int, code: int) -> None:
    server, runs = training.server, f"{happens}-{at}"
    server.served.clear()
    server.at, server.happens = server.arrived + at, happens
    ended, err = training.train(runs)
    assert ended == code and "Traceback" not in err, err
    server.at = 0
    server.come_back()
    ended, err = training.run("resume", "latest", "--runs", runs)
    assert ended == 0, err
    assert training.events(runs) == training.events("whole")
    assert set(server.served) == training.questions
    if happens != "twice":
        assert max(server.served.values()) == 1, "something was paid for twice"


@pytest.mark.parametrize("happens,at,code", [("twice", 2, 130), ("wait", 1, 130)])
def test_ended_and_resumed(training: Training, happens: str, at: int, code: int) -> None:
    check(training, happens, at, code)


@pytest.mark.slow
@pytest.mark.parametrize("at", [1, 5])
@pytest.mark.parametrize("happens,code", [("401", 1), ("once", 130), ("twice", 130), ("restart", 1)])
def test_ended_anywhere_and_resumed(training: Training, happens: str, at: int, code: int) -> None:
    check(training, happens, at, code)


def test_a_budget_of_seconds_that_ended_and_was_raised(training: Training) -> None:
    training.server.served.clear()
    ended, err = training.train("seconds", "--budget", "seconds=0.5")
    assert ended == 3 and "Traceback" not in err, err
    assert any(event["type"] == "budget_ended" for event in training.events("seconds"))
    ended, err = training.run("resume", "latest", "--runs", "seconds", "--budget", "seconds=600")
    assert ended == 0, err
    assert training.events("seconds") == training.events("whole")


def test_a_log_that_an_earlier_version_broke_is_mended_in_a_line(training: Training) -> None:
    """Also where progress is not to be shown."""
    (whole,) = training.home.glob("whole/*")
    shutil.copytree(whole, training.home / "broken" / whole.name)
    (path,) = training.home.glob("broken/*/jobs/*/events.jsonl")
    events = [json.loads(line) for line in path.read_text().splitlines()]
    events[0]["clock"].pop("log")
    first = next(n for n, event in enumerate(events) if event["type"] == "asked")
    shifted = [*events[:first], *events[first + 1 : first + 3]]
    path.write_text("".join(json.dumps({**event, "n": n}) + "\n" for n, event in enumerate(shifted)))
    shutil.rmtree(path.parent / "checkpoints")
    training.server.served.clear()
    ended, err = training.run("resume", "latest", "--runs", "broken")
    assert ended == 0 and err.count(f"they are now in events-cut-{first}.jsonl") == 1, err
    assert training.events("broken") == training.events("whole") and not training.server.served
