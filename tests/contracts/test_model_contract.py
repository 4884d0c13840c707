"""The built-in models hold to the contract of models. The embedded one is tried in tests/models/test_local.py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from sharpen.models.base import Model
from sharpen.models.registry import open_model
from sharpen.testing.http import FakeEndpoint
from sharpen.testing.models import ModelContract, Watched, opened


class TestScripted(ModelContract):
    def opened(self) -> AbstractAsyncContextManager[Model]:
        return opened(open_model("scripted/rules"))


class TestNoisyEcho(ModelContract):
    def opened(self) -> AbstractAsyncContextManager[Model]:
        return opened(open_model("scripted/echo?noise=0.5&latency=0.001"))


class TestWatched(ModelContract):
    def opened(self) -> AbstractAsyncContextManager[Model]:
        return opened(Watched(open_model("scripted/echo"), jitter=0.01))


class TestRecording(ModelContract):
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        self.path = tmp_path / "talk.jsonl"

    def opened(self) -> AbstractAsyncContextManager[Model]:
        return opened(open_model(f"record:{self.path}:scripted/echo"))


class TestOpenAI(ModelContract):
    @pytest.fixture(autouse=True)
    def server(self) -> Iterator[None]:
        with FakeEndpoint(lambda body: "seven").in_thread() as server:
            self.url = server.url
            yield

    def opened(self) -> AbstractAsyncContextManager[Model]:
        return opened(open_model(f"{self.url}#fake"))
