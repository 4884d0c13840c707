"""Own files that end the process, in every way Python has: never a silent success, and the file is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = [sys.executable, "-c", "from sharpen.cli import main; main()"]
STUDY = """
tasks: [{name: rows.jsonl, ratio: "1:1:1", metric: "own.py:metric"}]
trainers: [noop]
models: {target: scripted/rules}
"""
METRIC = "\ndef metric(answer, item):\n    return 1.0\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = "".join(json.dumps({"input": f"q{n}", "answer": f"a{n}"}) + "\n" for n in range(9))
    (tmp_path / "rows.jsonl").write_text(rows)
    (tmp_path / "s.yaml").write_text(STUDY)
    return tmp_path


def called(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PROGRAM, *words], cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("leaving", "command"),
    [
        ("import os; os._exit(0)", "validate"),
        ("import posix; posix._exit(0)", "run"),
        ("from os import _exit as leave; leave(0)", "train"),
        ("import os; os.execvp('true', ['true'])", "validate"),
        ("import sys; sys.exit(0)", "run"),
    ],
)
def test_leaving_at_import_is_an_error_with_the_file_and_the_line(folder: Path, leaving: str, command: str) -> None:
    (folder / "own.py").write_text(leaving + METRIC)
    data = ["rows.jsonl", "--ratio", "1:1:1", "--metric", "own.py:metric", "--model", "scripted/rules"]
    done = called(folder, command, *(data if command == "train" else ["s.yaml"]))
    assert done.returncode == 2, done.stdout + done.stderr
    assert "own.py, line 1:" in done.stderr and "Traceback" not in done.stderr


def test_leaving_in_the_middle_of_a_training_is_no_success(folder: Path) -> None:
    (folder / "own.py").write_text("import os\ndef metric(answer, item):\n    os._exit(0)\n")
    done = called(
        folder, "train", "rows.jsonl", "--ratio", "1:1:1", "--metric", "own.py:metric", "--model", "scripted/rules"
    )
    assert done.returncode == 1
    assert "os._exit(0) would end the whole program" in done.stderr


def test_a_process_that_own_code_forks_may_leave_as_it_likes(folder: Path) -> None:
    (folder / "own.py").write_text(
        "import os\ndef metric(answer, item):\n    child = os.fork()\n    if child == 0:\n        os._exit(3)\n"
        "    return float(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3)\n"
    )
    words = ["rows.jsonl", "--ratio", "1:1:1", "--metric", "own.py:metric", "--model", "scripted/rules"]
    done = called(folder, "train", *words, "--trainer", "noop", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["test"]["initial"]["mean"] == 1.0


def test_a_job_of_a_study_that_leaves_fails_with_the_reason(folder: Path) -> None:
    (folder / "own.py").write_text("import os\ndef metric(answer, item):\n    os._exit(0)\n")
    done = called(folder, "run", "s.yaml", "-q")
    assert done.returncode == 1, done.stdout + done.stderr
    (process,) = (folder / "runs").glob("s/jobs/*/process.json")
    assert "os._exit(0) would end the whole program" in json.loads(process.read_text())["reason"]
    assert os.path.exists(folder / "runs/s/summary.json")
