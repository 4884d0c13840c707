"""Trainers in a file of one's own: by path, with the file's content in the job's id; and what becomes of bad ones."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sharpen.bench.study import StudyConfig, arms
from sharpen.core.errors import UsageError
from sharpen.trainers import registry
from sharpen.trainers.noop import NoOp

Program = Callable[..., subprocess.CompletedProcess[str]]

OWN = """
import ctypes, os, sys, time
from pydantic import Field
from sharpen.core.candidate import Candidate
from sharpen.trainers.noop import NoOp
from sharpen.trainers.search.course import Course, CourseParams, CourseTrainer

class Params(CourseParams):
    line: str = Field("- kind-01: ruby", description="What is added.")

class AddLine(CourseTrainer):
    description = "adds one line and keeps it if it does better on val"
    Params = Params

    async def train(self, job):
        course = Course(job, self.params)
        course.open(1, 1, 0)
        await course.begin()
        new = Candidate(job.initial.text + "\\n" + self.params.line + "\\n")
        (score,) = await course.measure([new], "validate")
        course.tell(1, course.challenge(1, new, score), new, score)
        return course.trained()

class Bad(AddLine):
    async def train(self, job):
        self.misbehave()
        return await super().train(job)

class Loops(Bad):
    def misbehave(self):
        while True: time.sleep(0.01)

class Detaches(Bad):
    def misbehave(self):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                while True:
                    open("MARK", "w").write("there")
                    time.sleep(0.05)
            os._exit(0)
        time.sleep(600)

class Eats(Bad):
    def misbehave(self):
        self.fat = [bytearray(1 << 26) for _ in range(64)]

class Crashes(Bad):
    def misbehave(self):
        ctypes.string_at(0)

class Raises(Bad):
    def misbehave(self):
        raise KeyError("what a trainer")

class Prints(Bad):
    def misbehave(self):
        page = ("x" * 1023 + "\\n") * 1024
        for _ in range(1024):
            sys.stdout.write(page)

class Wanders(Bad):
    async def train(self, job):
        return None
"""
KINDS = ("AddLine", "Loops", "Detaches", "Eats", "Crashes", "Raises", "Prints", "Wanders")


def test_a_trainer_is_found_by_its_file_and_its_source_is_part_of_the_job(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(OWN)
    first = registry.get(f"{path}:AddLine")
    assert first.name == "AddLine" and first.description.startswith("adds one line")
    assert registry.get(f"{path}:AddLine").version == first.version
    path.write_text(OWN + "# changed\n")
    assert registry.get(f"{path}:AddLine").version != first.version
    assert registry.get(f"{path}:NoOp").version != NoOp.version, "what a file imports keeps its own version"
    assert registry.get("sharpen.trainers.noop:NoOp").version == NoOp.version


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("own.py:AdLine", "did you mean 'AddLine'"),
        ("own.py", "name the trainer's class too"),
        ("own.py:Params", "not a subclass"),
        ("nix.py:AddLine", "no such file"),
        ("no.such.module:X", "no Python module"),
        ("reflct", "did you mean 'reflact'"),
    ],
)
def test_a_trainer_that_is_not_there_is_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(OWN)
    with pytest.raises(UsageError, match=message):
        registry.get(name)


def test_an_arm_goes_by_the_name_of_the_class() -> None:
    found = StudyConfig.model_validate({"tasks": [{"name": "a"}], "trainers": [{"name": "x/own.py:AddLine"}]})
    assert [label for label, _ in arms(found)] == ["AddLine"]


def test_a_training_by_an_own_trainer_can_be_verified(program: Program, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    words = ("train", "codebook", "--trainer", "own.py:AddLine", "--model", "scripted/rules", "--limit", "24", "-q")
    done = program(*words)
    assert done.returncode == 0, done.stderr
    assert [path.name.partition("-2")[0] for path in (tmp_path / "runs").iterdir()] == ["codebook-AddLine"]
    assert "all identical" in program("resume", "latest", "--verify").stdout
    (tmp_path / "own.py").write_text(OWN + "# changed\n")
    assert "own.py, changed since it ran here" in program("resume", "latest").stderr
    assert "the trainer's version is not what it was" in program("resume", "latest", "--trust").stderr


def test_what_misbehaves_as_a_trainer_fails_alone_and_with_a_reason(
    program: Program, tmp_path: Path, table: Any
) -> None:
    mark, home = tmp_path / "mark", tmp_path / "study"
    home.mkdir()
    (home / "own.py").write_text(OWN.replace("MARK", str(mark)))
    (home / "s.yaml").write_text(
        "tasks: [{name: codebook, limit: 12}]\ntrainers: [" + ", ".join(f"'own.py:{kind}'" for kind in KINDS) + "]\n"
        "models: {target: scripted/rules}\nparallel: 2\ntimeout: 6\nmemory: 1500\n"
    )
    done = program("run", "study/s.yaml")
    assert done.returncode == 1, done.stderr
    found = {row["trainer_id"]: row for row in table("s")}
    why = {kind: row["feedback"] for kind, row in found.items()}
    fine = ("AddLine", "Prints")
    assert {kind: row["status"] for kind, row in found.items()} == {
        kind: "ok" if kind in fine else "failed" for kind in KINDS
    }, why
    assert "6 seconds" in why["Loops"] and "6 seconds" in why["Detaches"]
    assert "memory" in why["Eats"] and "segmentation" in why["Crashes"] and "what a trainer" in why["Raises"]
    assert "AttributeError" in why["Wanders"]
    for kind, row in found.items():
        home = tmp_path / "runs/s/jobs" / row["job_id"]
        assert json.loads((home / "results.json").read_text())["status"] == ("done" if kind in fine else "unfinished")
    before = mark.stat().st_mtime_ns
    time.sleep(0.3)
    assert mark.stat().st_mtime_ns == before, "a detached grandchild is still alive"
    assert sum(path.stat().st_size for path in (tmp_path / "runs").rglob("*") if path.is_file()) < 32 << 20
    assert all(found[kind]["score_best"] and found[kind]["tb_logdir"] for kind in fine)
