"""The Java program behind the games: started when the first game is opened, one per process, ended with the process.

Java is reached over a socket on this machine with a token, so that nobody else can use it. All calls are made in one thread
of our own: they take about a millisecond each, and the event loop never waits for them. What goes wrong between us and
Java is `SandboxFailed`, which is no fault of the agent's.
"""

from __future__ import annotations

import asyncio
import atexit
import importlib
import json
import logging
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from sharpen.core.errors import SandboxFailed, UsageError

T = TypeVar("T")

_OPTIONS = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx512m"]


@dataclass(frozen=True, slots=True)
class Scene:
    """What there is to see after a command, what can be done now, and how far the game has come."""

    text: str
    commands: tuple[str, ...]
    score: float
    won: bool
    lost: bool


class Game:
    """One game under way. Made by `Server.open`."""

    def __init__(self, server: Server, handle: Any, goal: str, first: Scene) -> None:
        self.goal = goal
        self.scene = first
        self._server = server
        self._handle = handle

    async def step(self, command: str) -> Scene:
        """Give a command, which must be one of the scene's."""
        self.scene = await self._server.call(lambda: _scene(self._handle.stepJSON(command)))
        return self.scene


class Server:
    def __init__(self) -> None:
        self.process = os.getpid()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="textworld-express")
        self._gateway: Any = None

    async def open(self, name: str, settings: str, fold: str, seed: int) -> Game:
        """A game from its first scene on."""
        return await self.call(partial(self._open, name, settings, fold, seed))

    def check(self, name: str, settings: str) -> None:
        """Whether a game takes these settings; a `UsageError` with Java's own words if not."""
        self._thread.submit(self._load, name, settings).result()

    async def call(self, function: Callable[[], T]) -> T:
        java = importlib.import_module("py4j.protocol")
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, function)
        except java.Py4JError as error:
            raise SandboxFailed(f"the game's Java program failed: {error}") from error

    def close(self) -> None:
        if self._gateway is not None and self.process == os.getpid():
            self._gateway.shutdown()
            self._gateway.java_process.stdin.close()  # it ends when its input does
            self._gateway.java_process.wait(5)
            self._gateway = None

    def _load(self, name: str, settings: str) -> Any:
        if self._gateway is not None and self._gateway.java_process.poll() is not None:
            self.close()  # it died; another takes its place
        if self._gateway is None:
            jar = importlib.import_module("textworld_express.constants").JAR_PATH
            java = importlib.import_module("py4j.java_gateway")
            # Every object of a Java that has ended would log an error of its own when it is collected.
            logging.getLogger("py4j").setLevel(logging.CRITICAL)
            self._gateway = java.JavaGateway.launch_gateway(
                classpath=jar, javaopts=_OPTIONS, die_on_exit=True, enable_auth=True, cwd=os.path.dirname(jar)
            )
            atexit.register(self.close)
        handle = self._gateway.jvm.textworldexpress.runtime.PythonInterface()
        problem = handle.load(name, settings)
        if problem:
            raise UsageError(f"textworld-express/{name}: {problem.strip()}")
        return handle

    def _open(self, name: str, settings: str, fold: str, seed: int) -> Game:
        handle = self._load(name, settings)
        first = _scene(handle.generateNewGameJSON(seed, fold, False))
        return Game(self, handle, str(handle.getTaskDescription()).strip(), first)


def _scene(answer: str) -> Scene:
    told = json.loads(answer)
    score = min(1.0, max(0.0, float(told["score"])))
    won, lost = bool(told["tasksuccess"]), bool(told["taskfailure"])
    return Scene(told["observation"].strip(), tuple(sorted(set(told["validActions"]))), score, won, lost)


_server: Server | None = None


def server() -> Server:
    """This process's own: one that was forked starts another."""
    global _server
    if _server is None or _server.process != os.getpid():
        _server = Server()
    return _server
