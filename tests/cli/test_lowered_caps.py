"""Caps that are lowered after the fact: what was done and paid under the old ones stays on record."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import yaml

PROGRAM = [sys.executable, "-c", "from sharpen.cli import main; main()"]
MODELS = ["--model", "scripted/rules", "--optimizer", "scripted/rules"]
STUDY = """
tasks: [{name: codebook, limit: 12}]
trainers: [noop]
models: {target: scripted/rules}
budget: {calls: 500}
"""


def called(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PROGRAM, *words], cwd=folder, capture_output=True, text=True)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_run_that_its_budget_ended_is_not_ended_again_by_a_lower_one(tmp_path: Path) -> None:
    done = called(tmp_path, "train", "codebook", *MODELS, "--limit", "20", "--budget", "calls=150", "-q")
    assert done.returncode == 3, done.stderr
    before = files(tmp_path)
    for caps in ("calls=140", "calls=150"):
        done = called(tmp_path, "resume", "latest", "--budget", caps)
        assert done.returncode == 2, done.stdout
        assert "was ended by its budget of calls=150; to go on it takes more than that" in done.stderr
        assert files(tmp_path) == before
    done = called(tmp_path, "resume", "latest", "--budget", "calls=160,tokens=100")
    assert done.returncode == 2 and "budget.tokens=100 is below the" in done.stderr
    assert files(tmp_path) == before


def test_jobs_of_a_study_keep_the_caps_they_came_to_their_end_with(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(STUDY)
    assert called(tmp_path, "run", "s.yaml", "-q").returncode == 0
    (job,) = (tmp_path / "runs/s/jobs").iterdir()
    for stray in (".summary.json.abc.tmp~", "meta/.manifest.json.abc.tmp~"):
        (tmp_path / "runs/s" / stray).write_text("left by a killed process")
    assert called(tmp_path, "run", "s.yaml", "budget.calls=40", "-q").returncode == 0
    assert yaml.safe_load((job / "config.yaml").read_text())["budget"]["calls"] == 500
    assert not list((tmp_path / "runs").rglob(".*tmp~"))
    log = job / "events.jsonl"
    whole = log.read_text().splitlines(keepends=True)
    assert json.loads(whole[-1])["type"] == "job_ended"
    log.write_text("".join(whole[:-1]))
    before = files(tmp_path / "runs/s/jobs")
    done = called(tmp_path, "run", "s.yaml", "budget.tokens=13", "-q")
    assert done.returncode == 2 and "budget.tokens=13 is below the" in done.stderr, done.stderr
    assert files(tmp_path / "runs/s/jobs") == before
