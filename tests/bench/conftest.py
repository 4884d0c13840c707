"""The program as a user runs it, in a folder of the test's own, and the tables it leaves there."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Program = Callable[..., subprocess.CompletedProcess[str]]
Table = Callable[..., list[dict[str, str]]]


@pytest.fixture(scope="session")
def program_in() -> Callable[[Path], Program]:
    """The program for a folder: `program("run", "s.yaml", NAME="value")`, with variables added to its environment."""

    def made(folder: Path) -> Program:
        def call(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [sys.executable, "-c", "from sharpen.cli import main; main()", *words], cwd=folder, capture_output=True,
                text=True, env={**os.environ, **environment},
            )  # fmt: skip

        return call

    return made


@pytest.fixture(scope="session")
def table_in() -> Callable[[Path], Table]:
    """The rows of a run's table, of `results.csv` where no other is named."""

    def made(folder: Path) -> Table:
        def read(run: str, name: str = "results.csv") -> list[dict[str, str]]:
            with (folder / "runs" / run / name).open(newline="", encoding="utf-8") as file:
                return list(csv.DictReader(file))

        return read

    return made


@pytest.fixture
def program(program_in: Callable[[Path], Program], tmp_path: Path) -> Program:
    return program_in(tmp_path)


@pytest.fixture
def table(table_in: Callable[[Path], Table], tmp_path: Path) -> Table:
    return table_in(tmp_path)
