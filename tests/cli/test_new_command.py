"""`sharpen new task`: what it makes trains at once, passes its own tests, and never writes over anything."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sharpen.tasks import registry

Program = Callable[..., Any]
FILES = {"README.md", "SKILL.md", "config.yaml", "data.jsonl", "scorer.py", "task.py", "test_task.py"}


def test_a_new_task_trains_at_once_and_learns(program: Program, tmp_path: Path) -> None:
    made = program("new", "task", "support-desk")
    assert made.code == 0 and "cd support-desk && sharpen train config.yaml" in made.out
    assert {path.name for path in (tmp_path / "support-desk").iterdir()} == FILES
    trained = program("train", "support-desk/config.yaml", "--json")
    assert trained.code == 0, trained.err
    assert trained.json["task"] == "support-desk"
    assert (trained.json["test"]["initial"]["mean"], trained.json["test"]["best"]["mean"]) == (0.0, 1.0)
    assert trained.json["best"]["confirmed"]["value"] == 1.0
    assert program("resume", "latest", "--verify").code == 0


def test_a_new_task_passes_its_own_tests(program: Program, tmp_path: Path) -> None:
    assert program("new", "task", "my_Task2").code == 0
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path / "my_Task2", capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "class MyTask2(TextTask)" in (tmp_path / "my_Task2" / "task.py").read_text()


def test_an_edited_task_or_scorer_is_another_version(program: Program, tmp_path: Path) -> None:
    program("new", "task", "desk", "--folder", "some/where")
    home = tmp_path / "some" / "where"
    versions = [registry.get(f"{home}/task.py:Desk").version for _ in range(2)]
    for name in ("task.py", "scorer.py"):
        with (home / name).open("a") as file:
            file.write("\n# another remark\n")
        versions.append(registry.get(f"{home}/task.py:Desk").version)
    assert versions[0] == versions[1]
    assert len(set(versions)) == 3


def test_nothing_is_written_over(program: Program, tmp_path: Path) -> None:
    (tmp_path / "desk").mkdir()
    assert program("new", "task", "desk").code == 0, "an empty folder will do"
    (tmp_path / "desk" / "task.py").write_text("mine")
    again = program("new", "task", "desk")
    assert again.code == 2 and "desk is there already; nothing was written" in again.err
    assert (tmp_path / "desk" / "task.py").read_text() == "mine"
    (tmp_path / "file").write_text("mine")
    assert program("new", "task", "other", "--folder", "file").code == 2


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("7up", "can't be the name of a task"),
        ("a b", "can't be the name of a task"),
        ("../x", "can't be the name of a task"),
        ("naïve", "can't be the name of a task"),
        ("", "can't be the name of a task"),
        ("class", "a word of Python's own"),
        ("codebook", "there is a task 'codebook' already"),
    ],
)
def test_a_name_that_cannot_be_is_refused_before_anything_is_written(
    program: Program, tmp_path: Path, name: str, says: str
) -> None:
    done = program("new", "task", name)
    assert done.code == 2 and says in done.err
    assert not list(tmp_path.iterdir())
