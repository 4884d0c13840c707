"""The blueprint's arrows: who may import whom, what the small rooms may load, and what a cold start costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sharpen.cli.app import COMMANDS

SOURCE = Path(__file__).parents[1] / "src" / "sharpen"

# A room may import the rooms named behind it, and itself.
MAY_IMPORT = {
    "core": set(),
    "files": {"core"},
    "stats": set(),
    "skill": {"core"},
    "gates": {"core", "stats"},
    "ledger": {"core", "files"},
    "models": {"core", "files"},
    "sandbox": {"core", "files"},
    "tasks": {"core", "files", "skill", "sandbox"},
    "engine": {"core", "files", "skill", "sandbox", "gates", "ledger", "models", "tasks"},
    "trainers": {"core", "files", "skill", "gates", "ledger", "models", "tasks", "engine", "stats"},
    "bench": {"core", "files", "skill", "sandbox", "gates", "ledger", "models", "tasks", "engine", "trainers", "stats"},
    "report": {"core", "files", "skill", "stats", "engine", "bench"},
}
MAY_IMPORT["testing"] = {"bench", *MAY_IMPORT["bench"]}
MAY_IMPORT["cli"] = {"bench", "report", *MAY_IMPORT["bench"]}
THIRD_PARTY = {
    "core": set(),
    "files": set(),
    "stats": {"numpy"},
    "skill": set(),
    "ledger": set(),
    "sandbox": set(),
}
HEAVY = ("numpy", "scipy", "pydantic", "yaml", "openai", "aiohttp", "rich", "xllamacpp", "sqlite3", "asyncio")


def sources() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            if node.module == "sharpen":
                yield from (f"sharpen.{alias.name}" for alias in node.names)
            else:
                yield node.module


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_the_way_the_blueprint_says(path: Path) -> None:
    room = room_of(path)
    if room in ("__init__", "__main__"):
        return
    for name in imports(path):
        parts = name.split(".")
        if parts[0] == "sharpen" and len(parts) > 1 and parts[1] in MAY_IMPORT:
            assert parts[1] == room or parts[1] in MAY_IMPORT[room], f"{room} imports {name}"


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_the_small_rooms_need_no_package_beyond_what_they_are_allowed(path: Path) -> None:
    allowed = THIRD_PARTY.get(room_of(path))
    if allowed is None:
        return
    outside = {name.split(".")[0] for name in imports(path)} - sys.stdlib_module_names - {"sharpen"}
    assert outside <= allowed


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_file_has_at_most_400_lines_and_says_what_it_owns(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= 400
    assert ast.get_docstring(ast.parse(text)), "no module docstring"


def loaded_by(code: str) -> set[str]:
    """The top-level modules that are loaded after `code` ran in a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint(*{{name.split('.')[0] for name in sys.modules}})"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.splitlines()[-1].split())


def test_importing_sharpen_loads_nothing_heavy() -> None:
    assert not loaded_by("import sharpen").intersection(HEAVY)


def test_asking_for_help_loads_nothing_heavy_and_no_command() -> None:
    code = (
        "import sys\nfrom sharpen.cli.app import run\nassert run(['--help']) == 0\n"
        "assert not [name for name in sys.modules if name in ('sharpen.cli.train', 'sharpen.cli.demo')]"
    )
    assert not loaded_by(code).intersection(set(HEAVY) - {"asyncio"})


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_loads_nothing_heavy(name: str) -> None:
    code = f"from sharpen.cli.app import run\nassert run([{name!r}, '--help']) == 0"
    assert not loaded_by(code).intersection(set(HEAVY) - {"asyncio"})
