"""Running the program in this process, in a folder of the test's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sharpen.cli.app import run


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Program = Callable[..., Ran]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Program:
    """`program("train", "codebook")` is `sharpen train codebook` in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> Ran:
        capfd.readouterr()
        code = run(arguments)
        said = capfd.readouterr()
        return Ran(code, said.out, said.err)

    return call


SCRIPTED = ("--model", "scripted/rules", "--optimizer", "scripted/rules", "--gate", "strict")


@pytest.fixture
def trained(program: Program) -> Program:
    """The program, beside one small finished run."""
    assert program("train", "codebook", *SCRIPTED, "--steps", "3", "--limit", "40", "-q").code == 0
    return program
