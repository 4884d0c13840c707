"""Models that are Python functions: deterministic, offline, free. For tests, documentation and demonstrations.

A script turns a `Request` into a text. `scripted/rules` plays target and optimizer of the `codebook` task
(`scripted_rules.py`), `scripted/game` and `scripted/explorer` play text games, `scripted/echo` repeats the last thing said.
Settings may stand in the name: `scripted/rules?latency=0.05&noise=0.1&seed=3`. With noise, a share of the answers (not of
an optimizer's replies) comes out wrong, decided by a hash of the request, its seed and the model's seed, so that drawing
again can change the answer while the same draw always gives the same one. Tokens are words.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl

from sharpen.core.chat import Reply, Request
from sharpen.core.digest import Json, digest
from sharpen.core.errors import UsageError, nearest
from sharpen.core.rng import Stream
from sharpen.core.usage import Usage
from sharpen.models.settings import check

Script = Callable[[Request], str]

SCRIPTS = {
    "rules": "sharpen.models.scripted_rules:rules",
    "echo": "sharpen.models.scripted:echo",
    "game": "sharpen.tasks.game:scripted_player",
    "explorer": "sharpen.tasks.textworld_express.player:player",
}
DATA_HEADING = "## Data"
"""The line after which an optimizer's prompt holds its data as a fenced JSON block."""
_VERSION = 2
_WRONG = "unknown"


@dataclass(frozen=True, slots=True)
class Settings:
    latency: float = 0.0
    noise: float = 0.0
    seed: int = 0
    concurrency: int = 1024

    def __post_init__(self) -> None:
        if not self.latency >= 0:
            raise UsageError(f"latency must be at least 0 seconds, got {self.latency!r}")
        if not 0 <= self.noise <= 1:
            raise UsageError(f"noise must be a share from 0 to 1, got {self.noise!r}")
        if self.concurrency < 1:
            raise UsageError(f"concurrency must be at least 1, got {self.concurrency!r}")


class ScriptedModel:
    """A model that is a function. Pass `target` to use your own; without it the name says which script plays."""

    family = "scripted"
    in_process = True

    def __init__(self, name: str, target: Script | None = None, *, render: str = "system", **settings: Any) -> None:
        path, _, query = name.partition("?")
        self.name = name
        self.settings = check(name, Settings, {**dict(parse_qsl(query, keep_blank_values=True)), **settings})
        self._path = path
        self._script = script(path.removeprefix("scripted/")) if target is None else target
        self._render = render

    @property
    def identity(self) -> Json:
        return {"kind": "scripted", "script": self._path, "version": _VERSION, **self._randomness()}

    @property
    def deterministic(self) -> bool:
        return self.settings.noise == 0

    @property
    def render(self) -> str:
        return self._render

    @property
    def endpoint(self) -> str:
        return self._path

    @property
    def concurrency(self) -> int:
        return self.settings.concurrency

    def bound(self, request: Request) -> tuple[int, float | None]:
        return _prompt_words(request) + request.max_tokens, 0.0

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def complete(self, request: Request) -> Reply:
        if self.settings.latency:
            await asyncio.sleep(self.settings.latency)
        text = self._script(request)
        if self.settings.noise and not for_optimizer(request):
            text = self._with_noise(request, text)
        words = len(text.split())
        finish = "stop"
        if words > request.max_tokens:
            text, words, finish = " ".join(text.split()[: request.max_tokens]), request.max_tokens, "length"
        return Reply(text, Usage(1, _prompt_words(request), 0, words, 0.0), finish)

    def _with_noise(self, request: Request, text: str) -> str:
        draw = Stream(self.settings.seed, digest([request.key_fields(), request.seed]))
        if draw.random() >= self.settings.noise:
            return text
        return _WRONG if text != _WRONG else "noise"

    def _randomness(self) -> dict[str, Json]:
        return {"noise": self.settings.noise, "seed": self.settings.seed} if self.settings.noise else {}


def script(name: str) -> Script:
    """A built-in script by its name."""
    if name not in SCRIPTS:
        raise UsageError(f"no script {name!r}{nearest(name, tuple(SCRIPTS))}; there are {', '.join(SCRIPTS)}")
    module, _, function = SCRIPTS[name].partition(":")
    found: Script = getattr(importlib.import_module(module), function)
    return found


def echo(request: Request) -> str:
    """The last thing said."""
    return last_said(request)


def last_said(request: Request) -> str:
    """The last user message, or the whole prompt."""
    if request.prompt is not None:
        return request.prompt
    return next((m.content for m in reversed(request.messages) if m.role == "user"), "")


def for_optimizer(request: Request) -> bool:
    """Whether a request carries an optimizer's data block, rather than a task's item."""
    return any(m.role == "user" and DATA_HEADING in m.content.splitlines() for m in request.messages)


def _prompt_words(request: Request) -> int:
    return _words(request.prompt or "") + sum(_words(message.content) for message in request.messages)


@lru_cache(maxsize=64)
def _words(text: str) -> int:
    return len(text.split())
