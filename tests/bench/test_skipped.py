"""What needs a package or a program that is not here is left out with the reason; everything else of a study runs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Program = Callable[..., subprocess.CompletedProcess[str]]

OWN = """
from sharpen.core.errors import MissingRequirement
from sharpen.core.task import Requirements, Task
from sharpen.trainers.adapters.host import needed
from sharpen.trainers.noop import NoOp

class Needs(Task):
    name = "needs"
    requirements = Requirements(packages=("nowhere_to_be_found",), programs=("no-such-program",))

def lean(**settings):
    raise MissingRequirement("lean is not installed")
"""
TRAINER = """
from sharpen.trainers.adapters.host import needed

needed("nowhere-to-be-found", "nowhere")
"""
STUDY = """
tasks: [{name: codebook, limit: 6}, "own.py:Needs", "own.py:lean"]
trainers: [noop, {name: "adapter.py:Theirs", label: theirs}]
seeds: 2
models: {target: scripted/rules}
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "adapter.py").write_text(TRAINER)
    (tmp_path / "s.yaml").write_text(STUDY)
    return tmp_path


def test_what_is_missing_is_a_row_with_its_reason_and_the_rest_runs(study: Path, program: Program, table: Any) -> None:
    done = program("run", "s.yaml")
    assert done.returncode == 4, done.stderr
    rows = table("s")
    assert len(rows) == 12 and len({row["job_id"] for row in rows}) == 12
    ran = [row for row in rows if row["status"] == "ok"]
    assert [(row["task_id"], row["arm"]) for row in ran] == [("codebook", "noop")] * 2
    reasons = {(row["task_id"], row["arm"]): row["feedback"] for row in rows if row["status"] == "skipped"}
    assert len(reasons) == 5
    assert "Python package nowhere_to_be_found, program no-such-program" in reasons["Needs", "noop"]
    assert "lean is not installed" in reasons["lean", "noop"]
    assert reasons["codebook", "theirs"].startswith("theirs: this trainer needs the package nowhere-to-be-found: pip")
    assert [row["arm"] for row in table("s", "leaderboard.csv")] == ["noop"]
    summary = json.loads((study / "runs/s/summary.json").read_text())
    assert summary["counts"] == {"ok": 2, "skipped": 10} and len(summary["skipped"]) == 10
    for said in (done.stdout, program("status", "s").stdout):
        assert "12 jobs: 2 ok, 10 skipped." in said and "4 skipped: task own.py:lean: lean is not installed" in said


def test_validate_counts_them_and_strict_makes_them_problems(study: Path, program: Program) -> None:
    done = program("validate", "s.yaml")
    assert done.returncode == 4 and "4 jobs skipped: " in done.stdout and done.stdout.count("codebook") == 2
    found = json.loads(program("validate", "s.yaml", "--json").stdout)
    assert len(found["jobs"]) == 2 and len(found["skipped"]) == 10 and found["problems"] == []
    strict = program("run", "s.yaml", "strict=true")
    assert strict.returncode == 2 and not (study / "runs").exists()
    for words in ("nowhere_to_be_found", "lean is not installed", "nowhere-to-be-found"):
        assert strict.stderr.count(words) >= 1


def test_a_study_of_which_nothing_can_run_says_so(study: Path, program: Program, table: Any) -> None:
    done = program("run", "s.yaml", 'tasks=["own.py:Needs"]', "-q")
    assert done.returncode == 4 and done.stdout == "4 skipped\n"
    assert {row["status"] for row in table("s")} == {"skipped"}
    shown = program("status", "s")
    assert shown.returncode == 0 and "4 jobs: 4 skipped." in shown.stdout


def test_a_skipped_row_becomes_a_job_once_what_it_needs_is_there(study: Path, program: Program, table: Any) -> None:
    assert program("run", "s.yaml", "tasks=[{name: codebook, limit: 6}]", "-q").returncode == 4
    (study / "adapter.py").write_text(
        "from sharpen.trainers.noop import NoOp\n\n\nclass Theirs(NoOp):\n    name = 'theirs'\n"
    )
    assert program("run", "s.yaml", "tasks=[{name: codebook, limit: 6}]", "-q").returncode == 0
    assert [row["status"] for row in table("s")] == ["ok"] * 4
