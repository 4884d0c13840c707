"""A task, a metric or a trainer of the user's own is another one when a file that it imports has changed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sharpen.tasks import python_path

TASK = """
import importlib
import json
import numpy
import sys
sys.path.insert(0, {folder!r})
import {prefix}_client
from {prefix}_package import prompts
from {prefix}_package.inner.deep import value as imported
named = importlib.import_module("{prefix}_dynamic")

def metric(answer, item):
    from {prefix}_late import late
    return True
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """A file that imports from beside it in every way there is. Names are this test's own: modules stay loaded."""
    prefix = f"h{abs(hash(request.node.name)) % 10**9}"
    monkeypatch.setattr(sys, "path", [*sys.path])
    files = {
        "task.py": TASK.format(folder=str(tmp_path), prefix=prefix),
        f"{prefix}_client.py": f"from {prefix}_second import *\n",
        f"{prefix}_second.py": "a = 1\n",
        f"{prefix}_dynamic.py": "a = 1\n",
        f"{prefix}_late.py": "late = 1\n",
        f"{prefix}_package/__init__.py": "",
        f"{prefix}_package/prompts.py": "from . import sibling\nfrom .inner import deep\n",
        f"{prefix}_package/sibling.py": "a = 1\n",
        f"{prefix}_package/inner/__init__.py": "",
        f"{prefix}_package/inner/deep.py": "from ..cousin import a\nvalue = 1\n",
        f"{prefix}_package/cousin.py": "a = 1\n",
        f"{prefix}_unrelated.py": "a = 1\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def version(project: Path) -> str:
    return python_path.find(f"{project}/task.py:metric", "metric").source


IMPORTED = (
    "client", "second", "dynamic", "late", "package/__init__", "package/prompts", "package/sibling",
    "package/inner/__init__", "package/inner/deep", "package/cousin",
)  # fmt: skip


@pytest.mark.parametrize("changed", IMPORTED)
def test_a_change_in_an_imported_file_is_another_version(project: Path, changed: str) -> None:
    before = version(project)
    assert version(project) == before
    file = next(project.glob(f"*_{changed}.py"))
    file.write_text(file.read_text() + "# changed\n")
    assert version(project) != before


def test_what_is_not_imported_and_where_the_project_lies_do_not_matter(project: Path, tmp_path: Path) -> None:
    before = version(project)
    file = next(project.glob("*_unrelated.py"))
    file.write_text("a = 2\n")
    (project / "notes.txt").write_text("x")
    assert version(project) == before


def test_a_file_without_helpers_keeps_the_version_it_had(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(
        "import json, os.path\nfrom sharpen.core.item import Item\nimport numpy as np\nx = 1\n"
    )
    from sharpen.core.digest import digest

    assert python_path.find(f"{tmp_path}/m.py:x", "metric").source == digest((tmp_path / "m.py").read_text())[:16]


def test_a_module_of_the_users_own_counts_as_own_and_an_installed_one_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_own_module_for_this_test.py").write_text("def f(a, i): return True\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert python_path.find("my_own_module_for_this_test:f", "metric").own
    assert not python_path.find("json:dumps", "metric").own
    assert not python_path.find("pytest:fixture", "metric").own
    assert not python_path.find("sharpen.tasks.metrics:get", "metric").own


def test_a_file_that_imports_itself_or_in_a_circle_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "circle_one.py").write_text("import circle_two\n")
    (tmp_path / "circle_two.py").write_text("import circle_one\nimport circle_task\n")
    (tmp_path / "circle_task.py").write_text("import circle_one\ndef f(a, i): return True\n")
    assert python_path.find(f"{tmp_path}/circle_task.py:f", "metric").source
