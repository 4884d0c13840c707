"""A run that somebody sent names an address of theirs: no command sends them a key of the user's unasked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sharpen.models.scripted import script
from sharpen.testing.http import FakeEndpoint, answer_with

Program = Callable[..., Any]
OPENAI, SHARPEN = "sk-openai-0123456789abcdef", "key-sharpen-0123456789"


class Recorder(FakeEndpoint):
    """Writes down every header it is sent."""

    def __init__(self) -> None:
        super().__init__(answer_with(script("rules")))
        self.headers = ""

    async def _respond(self, http: Any) -> Any:
        self.headers += str(dict(http.headers))
        return await super()._respond(http)


@pytest.fixture
def servers() -> Iterator[tuple[Recorder, Recorder]]:
    """The user's own endpoint, and somebody else's."""
    with Recorder().in_thread() as mine, Recorder().in_thread() as theirs:
        assert isinstance(mine, Recorder) and isinstance(theirs, Recorder)
        yield mine, theirs


@pytest.fixture(autouse=True)
def _keys_are_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("OPENAI_BASE_URL", "SHARPEN_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", OPENAI)
    monkeypatch.setenv("SHARPEN_API_KEY", SHARPEN)
    monkeypatch.setenv("SHARPEN_STATE", str(tmp_path / "state"))


def readdress(run: Path, address: str) -> None:
    path = run / "meta" / "config.snapshot.yaml"
    config = yaml.safe_load(path.read_text())
    config["models"]["target"] = address
    path.write_text(yaml.safe_dump(config))


def test_a_key_goes_to_an_address_that_the_user_named_and_to_none_that_a_run_names(
    program: Program, servers: tuple[Recorder, Recorder], monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, theirs = servers
    ran = program("train", "codebook", "--model", f"{mine.url}#m", "--limit", "6", "--steps", "1", "-q")
    assert ran.code == 0 and SHARPEN in mine.headers and OPENAI not in mine.headers
    assert program("eval", "latest", "--split", "val").code == 0, "what the user named once is known"
    [run] = Path("runs").glob("codebook-*")
    for address in (f"{theirs.url}#m", f"openai/gpt-5.5?base_url={theirs.url}"):
        readdress(run, address)
        for words in (
            ("eval", "latest"),
            ("resume", "latest", "--budget", "calls=900"),
            ("explain", "latest", "--fresh"),
        ):
            refused = program(*words)
            assert refused.code == 2 and f"sends SHARPEN_API_KEY to {theirs.url}" in refused.err, refused.err
    assert theirs.requests == 0
    readdress(run, f"{theirs.url}#m")
    monkeypatch.setenv("SHARPEN_BASE_URL", mine.url)
    assert program("eval", "latest").code == 0, "a key that is bound elsewhere is not sent, and need not be asked about"
    assert theirs.requests > 0 and SHARPEN not in theirs.headers and OPENAI not in theirs.headers
    monkeypatch.delenv("SHARPEN_BASE_URL")
    assert program("eval", "latest", "--split", "val", "--trust").code == 0
    assert SHARPEN in theirs.headers and OPENAI not in theirs.headers


def test_an_address_on_the_command_line_is_the_users(program: Program, servers: tuple[Recorder, Recorder]) -> None:
    mine, theirs = servers
    assert program("train", "codebook", "--model", "scripted/rules", "--limit", "6", "--steps", "1", "-q").code == 0
    [run] = Path("runs").glob("codebook-*")
    readdress(run, f"{theirs.url}#m")
    assert program("eval", "latest", "--model", f"{mine.url}#m").code == 0
    assert SHARPEN in mine.headers and theirs.requests == 0
