"""Every command that the README and the docs show is run, in the order it stands there, in a folder of the page's own.

Lines with `$ ` in ```console blocks are commands. A block under `<!-- file: NAME -->` is written to that file first; a block
under `<!-- not run: WHY -->` is left out. Where a console block shows output too, it is an illustration: times and names
of runs differ.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(
    r"(?:<!-- (?P<mark>not run|file): (?P<note>[^>]*?) -->\n)?^```(?P<kind>\w*)[^\n]*\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    kind: str
    mark: str
    note: str
    body: str

    @property
    def commands(self) -> list[str]:
        return [line[2:] for line in self.body.splitlines() if line.startswith("$ ")]


def blocks(page: Path) -> list[Block]:
    found = BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [Block(m["kind"], m["mark"] or "", m["note"] or "", m["body"]) for m in found]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_commands_shown_work(page: Path, tmp_path: Path) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for block in blocks(page):
        if block.mark == "file":
            (tmp_path / block.note).write_text(block.body, encoding="utf-8")
        if block.mark or block.kind != "console":
            continue
        for command in block.commands:
            done = subprocess.run(
                ["bash", "-c", command], cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True
            )
            assert done.returncode == 0, f"{page.name}: {command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_is_left_out_says_why(page: Path) -> None:
    assert all(block.note for block in blocks(page) if block.mark)


def test_the_readme_shows_the_two_commands() -> None:
    commands = [command for block in blocks(ROOT / "README.md") for command in block.commands]
    assert {"make demo", "make test"} <= set(commands)
    assert any(command.startswith("sharpen resume") for command in commands)
