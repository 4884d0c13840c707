"""What goes wrong with a study's jobs, from outside and from within: told truly, and made good by the same command."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from sharpen.bench import layout, story
from sharpen.bench.layout import RunFolder
from sharpen.core.errors import StorageError, UsageError

Program = Callable[..., subprocess.CompletedProcess[str]]
SLOW = """
tasks: [{name: codebook, limit: 12}]
trainers: [{name: minibatch, params: {max_steps: 2}}]
models: {target: "scripted/rules?noise=0.1&latency=0.02", optimizer: "scripted/rules?latency=0.02"}
workers: 2
seeds: 2
"""
ODD = """
import ctypes
import asyncio, os, signal, time
from sharpen.trainers.search.course import Course, CourseParams, CourseTrainer

class Params(CourseParams):
    how: str = "good"

class Odd(CourseTrainer):
    Params = Params

    async def train(self, job):
        course, how = Course(job, self.params), self.params.how
        course.open(steps=1, per_epoch=1, items=0)
        if how.startswith("exit"):
            print("the last line", flush=True)
            ctypes.CDLL(None)._exit(int(how.removeprefix("exit")))
        if how == "told": os.kill(os.getpid(), signal.SIGTERM); await asyncio.sleep(0.05)
        if how == "lines": raise ValueError("what is wrong\\nFor more see https://example.org")
        if how == "words": raise ValueError("no option 'out of memory'")
        if how == "thread":
            try: await asyncio.wait_for(asyncio.to_thread(time.sleep, 600), 0.05)
            except TimeoutError: pass
        await course.begin()
        return course.trained()
"""


def caps(run: Path) -> list[int]:
    """What each job's own configuration allows it, in calls."""
    found = RunFolder(run).jobs()
    return sorted(yaml.safe_load((job / "config.yaml").read_text())["budget"]["calls"] for job in found)


def test_a_raise_that_could_not_be_carried_out_is_not_forgotten(program: Program, table: Any, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(SLOW)
    run, raised = tmp_path / "runs" / "s", ["run", "s.yaml", "-q", "budget.calls=500"]
    assert program("run", "s.yaml", "-q", "budget.calls=70").returncode == 0
    assert all("cap of 70 calls" in row["feedback"] for row in table("s"))
    no_room = program("run", "s.yaml", "budget.calls=500", "total.calls=400")
    assert no_room.returncode == 3 and "2 jobs that the budget ended could go on" in no_room.stderr
    process = subprocess.Popen([sys.executable, "-c", "from sharpen.cli import main; main()", *raised], cwd=tmp_path)
    deadline = time.monotonic() + 60
    while caps(run) != [70, 500] and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    assert sorted(row["status"] for row in table("s")) == ["ok", "stopped"]
    assert caps(run) == [70, 500], "the one that has not gone on is still on record with the caps that ended it"
    assert program(*raised).returncode == 0
    assert [(row["status"], row["feedback"]) for row in table("s")] == [("ok", "")] * 2


def test_an_exit_code_alone_is_nobodys_word_and_a_reason_is_the_jobs_own(
    program: Program, table: Any, tmp_path: Path
) -> None:
    (tmp_path / "odd.py").write_text(ODD)
    kinds = ["exit0", "exit3", "exit130", "told", "lines", "words", "thread"]
    trainer = {"name": "odd.py:Odd", "label": "m", "grid": {"how": kinds}}
    study = {"tasks": [{"name": "codebook", "limit": 6}], "trainers": [trainer], "models": {"target": "scripted/rules"}}
    (tmp_path / "s.yaml").write_text(yaml.safe_dump({**study, "parallel": 2, "timeout": 30}))
    done = program("run", "s.yaml")
    assert done.returncode == 1, done.stderr
    rows = table("s")
    why = {kind: row["feedback"] for kind, row in zip(kinds, rows, strict=True)}
    assert [row["status"] for row in rows] == [*["failed"] * 6, "ok"], why
    for code in ("0", "3", "130"):
        assert f"exit code {code} before the job did; the last it printed: the last line" in why[f"exit{code}"]
    assert why["told"] == "told to stop by a signal from outside"
    assert why["lines"] == "ValueError: what is wrong" and why["words"] == "ValueError: no option 'out of memory'"
    for kind in kinds[:-1]:
        assert f"m[how={kind}] · seed 0: failed: {why[kind][:60]}" in done.stderr
    record = json.loads((tmp_path / "runs/s/jobs" / rows[0]["job_id"] / "process.json").read_text())
    assert (record["state"], record["code"]) == ("failed", 0)
    assert float(rows[-1]["time_seconds"]) < 20, "a thread that was left behind held the job up"


def test_a_limit_below_what_a_job_begins_with_is_told_as_that(program: Program, table: Any, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(SLOW + "memory: 64\n")
    assert program("run", "s.yaml", "trainers=[noop]", "seeds=1", "-q").returncode == 1
    (row,) = table("s")
    assert "memory: 64 is too little" in row["feedback"] and "megabytes of address space" in row["feedback"]


@pytest.mark.parametrize("line", ['{"type": "x', "5", "[]", "{}", "null"])
def test_a_line_that_is_no_event_is_damage(tmp_path: Path, line: str) -> None:
    (tmp_path / "jobs" / "a1").mkdir(parents=True)
    (tmp_path / "jobs" / "a1" / "events.jsonl").write_text('{"type": "noted"}\n' + line + "\n")
    found = story.read(tmp_path / "jobs" / "a1")
    assert found.lines == [] and found.damage == "its story is damaged at line 2; remove jobs/a1 to run it anew"


def test_one_damaged_story_does_not_stop_the_others(program: Program, table: Any, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(SLOW)
    words = ("run", "s.yaml", "trainers=[noop]", "models.target=scripted/rules", "-q")
    program(*words)
    job = tmp_path / "runs/s/jobs" / table("s")[0]["job_id"]
    lines = (job / "events.jsonl").read_text().splitlines()
    (job / "events.jsonl").write_text("\n".join([*lines[:2], "5", *lines[3:]]) + "\n")
    damage = f"its story is damaged at line 3; remove jobs/{job.name} to run it anew"
    again = program(*words)
    assert (again.returncode, again.stdout.strip()) == (1, "1 failed, 1 ok"), again.stderr
    assert [row["feedback"] for row in table("s")] == [damage, ""]
    for looking in (("report", "s", "--rebuild"), ("status", "s")):
        looked = program(*looking)
        assert looked.returncode == 0 and damage in looked.stdout, looked.stderr
    assert "1 taken over" in program("run", "s.yaml", "--name", "t", "--reuse", "s", *words[2:4]).stderr
    shutil.rmtree(job)
    assert program(*words).stdout.strip() == "2 ok"


@pytest.mark.parametrize("text", ["[]", "{}", '{"jobs": 3}', "{"])
def test_a_manifest_that_is_none_is_said_to_be_damaged(tmp_path: Path, text: str) -> None:
    (tmp_path / "meta").mkdir()
    (tmp_path / "meta" / "manifest.json").write_text(text)
    with pytest.raises(UsageError, match="is damaged; of a study"):
        _ = RunFolder(tmp_path).manifest


def test_a_folder_that_cannot_be_locked_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()
    with pytest.raises(StorageError, match=r"cannot write .*lock"), layout.locked(tmp_path):
        pass
