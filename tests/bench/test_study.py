"""Studies: the matrix, jobs in processes of their own, what misbehaves, and the tables that come of it."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from sharpen.bench.layout import RunFolder
from sharpen.bench.matrix import lay_out
from sharpen.bench.study import StudyConfig, arms, cells, load, task_labels
from sharpen.core.errors import UsageError

PROGRAM = [sys.executable, "-c", "from sharpen.cli import main; main()"]
STUDY = """
tasks: [{name: codebook, limit: 24}]
trainers:
  - {name: reflact, label: seq, params: {epochs: 1, batch_size: 12}}
  - {name: reflact, params: {epochs: 1, batch_size: 12}, grid: {gate: [strict, force]}}
seeds: 2
models: {target: "scripted/rules?noise=0.1", optimizer: scripted/rules}
"""

MISBEHAVING = """
import ctypes, os, subprocess, sys, time
from sharpen.core.candidate import Candidate
from sharpen.core.item import Item
from sharpen.core.outcome import scored
from sharpen.core.task import Splits, Task

class Base(Task):
    def splits(self):
        return Splits(*[tuple(Item(f"{s}-{n}", {"input": f"{s} {n}"}, "x") for n in range(3)) for s in ("a", "b", "c")])
    def seed(self):
        return Candidate("Say x.")
    async def rollout(self, item, candidate, attempt):
        self.misbehave()
        return scored(item.id, 1.0)
    def misbehave(self): ...

class Good(Base):
    name = "good"

class Loops(Base):
    name = "loops"
    def misbehave(self):
        while True: pass

class Detaches(Base):
    name = "detaches"
    def misbehave(self):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                open("MARK", "w").write("there")
                while True:
                    time.sleep(0.05); os.utime("MARK")
            os._exit(0)
        time.sleep(600)

class Eats(Base):
    name = "eats"
    def misbehave(self):
        self.fat = [bytearray(1 << 26) for _ in range(64)]

class Crashes(Base):
    name = "crashes"
    def misbehave(self):
        ctypes.string_at(0)

class Raises(Base):
    name = "raises"
    def misbehave(self):
        raise RuntimeError("what a day, key SECRET")

class Prints(Base):
    name = "prints"
    def misbehave(self):
        line = "SECRET " + "x" * 1000 + "\\n"
        for _ in range(20_000):
            sys.stdout.write(line)

class NothingThere(Base):
    name = "nothing"
    def splits(self):
        raise SystemExit(7)
"""


def sharpen(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *words], cwd=folder, capture_output=True, text=True,
        env={**os.environ, **environment},
    )  # fmt: skip


def rows(run: Path) -> list[dict[str, str]]:
    with (run / "results.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def timeless(run: Path) -> list[dict[str, str]]:
    return [{k: v for k, v in row.items() if not k.startswith(("time", "seconds", "run_id"))} for row in rows(run)]


def study(**settings: Any) -> StudyConfig:
    whole = {"tasks": [{"name": "codebook"}], "trainers": [{"name": "reflact"}], **settings}
    return StudyConfig.model_validate(whole)


class TestMatrix:
    def test_a_grid_has_an_arm_for_each_combination(self) -> None:
        found = study(
            trainers=[{"name": "reflact", "params": {"epochs": 2}, "grid": {"gate": ["a", "b"], "alpha": [1, 2]}}]
        )
        assert [label for label, _ in arms(found)] == [
            "reflact[gate=a, alpha=1]", "reflact[gate=a, alpha=2]", "reflact[gate=b, alpha=1]", "reflact[gate=b, alpha=2]",
        ]  # fmt: skip
        assert arms(found)[3][1].params == {"epochs": 2, "gate": "b", "alpha": 2}

    def test_tasks_seeds_and_arms_are_multiplied(self) -> None:
        found = study(tasks=[{"name": "a"}, {"name": "a", "limit": 3}], seeds=[5, 7])
        assert [(cell.task, cell.config.seed) for cell in cells(found)] == [
            ("a", 5),
            ("a", 7),
            ("a[limit=3]", 5),
            ("a[limit=3]", 7),
        ]
        assert task_labels(study(tasks=[{"name": "x/y.csv"}])) == ["y"]

    def test_every_problem_is_told_at_once(self, tmp_path: Path) -> None:
        bad = study(
            tasks=[{"name": "codebook"}, {"name": "codebok"}],
            trainers=[
                {"name": "reflact", "params": {"epoch": 2}},
                {"name": "reflct"},
                {"name": "reflact"},
                {"name": "reflact"},
            ],
            models={"target": "scripted/rules"},
        )
        problems = "\n".join(lay_out(bad).problems)
        for expected in ("'epoch'", "reflct", "codebok", "the same job twice"):
            assert expected in problems
        with pytest.raises(UsageError, match="codebok"):
            lay_out(bad).checked()

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("tasks: []\n", "tasks"),
            ("tasks: [a]\nseeds: 0\n", "at least one seed"),
            ("tasks: [a]\ntrainers: [{name: r, variants: [{a: 1}], grid: {b: [1]}}]\n", "not both"),
            ("tasks: [a]\ntotal: {calls: 10}\n", "budget.calls"),
            ("tasks: [a]\nparalel: 2\n", "parallel"),
            ("tasks: [{nam: a}]\n", "name"),
        ],
    )
    def test_what_is_wrong_with_the_file_is_said(self, tmp_path: Path, text: str, message: str) -> None:
        (tmp_path / "s.yaml").write_text(text)
        with pytest.raises(UsageError, match=message):
            load(tmp_path / "s.yaml")


class TestRuns:
    def test_parallel_serial_killed_and_resumed_runs_have_the_same_results(self, tmp_path: Path) -> None:
        (tmp_path / "s.yaml").write_text(STUDY)
        assert sharpen(tmp_path, "run", "s.yaml", "--name", "one").returncode == 0
        assert sharpen(tmp_path, "run", "s.yaml", "parallel=4", "--name", "four").returncode == 0
        for kills in range(2):
            process = subprocess.Popen(
                [*PROGRAM, "run", "s.yaml", "--name", "killed", "-q"], cwd=tmp_path,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            deadline = time.monotonic() + 60
            while _done(tmp_path / "runs" / "killed") <= kills and time.monotonic() < deadline:
                time.sleep(0.02)
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert sharpen(tmp_path, "run", "s.yaml", "--name", "killed").returncode == 0
        one, four, killed = (timeless(tmp_path / "runs" / name) for name in ("one", "four", "killed"))
        assert one == four == killed and len(one) == 6
        assert len({row["score_best"] for row in one}) > 1

    def test_the_order_of_trainers_changes_no_score_and_a_grown_study_adds_jobs(self, tmp_path: Path) -> None:
        (tmp_path / "s.yaml").write_text(STUDY)
        (tmp_path / "t.yaml").write_text(
            "_base_: s.yaml\ntrainers: [{name: reflact, params: {epochs: 1, batch_size: 12}}]\n"
        )
        assert sharpen(tmp_path, "run", "t.yaml", "seeds=1", "--name", "x").returncode == 0
        first = {row["job_id"]: row["score_best"] for row in timeless(tmp_path / "runs" / "x")}
        before = {job: (tmp_path / f"runs/x/jobs/{job}/events.jsonl").stat().st_mtime_ns for job in first}
        assert sharpen(tmp_path, "run", "s.yaml", "--name", "x").returncode == 0
        both = {row["job_id"]: row["score_best"] for row in timeless(tmp_path / "runs" / "x")}
        assert len(both) == 6 and first.items() <= both.items()
        assert before == {job: (tmp_path / f"runs/x/jobs/{job}/events.jsonl").stat().st_mtime_ns for job in first}

    def test_the_tables_can_be_made_again_from_the_stories(self, tmp_path: Path) -> None:
        (tmp_path / "s.yaml").write_text(STUDY)
        sharpen(tmp_path, "run", "s.yaml", "seeds=1", "-q")
        run = tmp_path / "runs" / "s"
        kept = {name: (run / name).read_bytes() for name in ("results.csv", "leaderboard.csv", "summary.json")}
        for name in kept:
            (run / name).unlink()
        done = sharpen(tmp_path, "report", "s", "--rebuild")
        assert done.returncode == 0 and "reflact[gate=strict]" in done.stdout
        assert {name: (run / name).read_bytes() for name in kept} == kept

    def test_a_total_budget_leaves_the_rest_undone(self, tmp_path: Path) -> None:
        (tmp_path / "s.yaml").write_text(STUDY + "budget: {calls: 400}\ntotal: {calls: 900}\n")
        done = sharpen(tmp_path, "run", "s.yaml", "-q")
        assert done.returncode == 3
        found = rows(tmp_path / "runs" / "s")
        assert sum(int(row["calls"]) for row in found) <= 900
        assert {row["status"] for row in found} == {"ok", "not_run"}

    def test_a_total_budget_holds_for_jobs_that_start_at_the_same_moment(self, tmp_path: Path) -> None:
        (tmp_path / "s.yaml").write_text(STUDY + "parallel: 4\nbudget: {calls: 300}\ntotal: {calls: 400}\n")
        assert sharpen(tmp_path, "run", "s.yaml", "-q").returncode == 3
        assert sum(int(row["calls"]) for row in rows(tmp_path / "runs" / "s")) <= 400


def test_what_misbehaves_fails_alone_and_with_a_reason(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(
        MISBEHAVING.replace("MARK", str(tmp_path / "mark")).replace("SECRET", "geheimnis-42")
    )
    kinds = ("Good", "Loops", "Detaches", "Eats", "Crashes", "Raises", "Prints")
    (tmp_path / "s.yaml").write_text(
        "tasks: [" + ", ".join(f"bad.py:{kind}" for kind in kinds) + "]\n"
        "trainers: [{name: reflact, params: {epochs: 1, proposers: [examples]}}]\n"
        "models: {target: scripted/echo}\nparallel: 2\ntimeout: 6\nmemory: 1500\n"
    )
    done = sharpen(tmp_path, "run", "s.yaml", MY_API_KEY="geheimnis-42")
    assert done.returncode == 1, done.stderr
    found = {row["task_id"].partition(":")[2] or row["task_id"]: row for row in rows(tmp_path / "runs" / "s")}
    why = {kind: row["feedback"] for kind, row in found.items()}
    assert {kind: row["status"] for kind, row in found.items()} == {
        kind: "ok" if kind in ("Good", "Prints") else "failed" for kind in kinds
    }, why
    assert "6 seconds" in why["Loops"] and "6 seconds" in why["Detaches"]
    assert "memory" in why["Eats"] and "segmentation" in why["Crashes"] and "what a day" in why["Raises"]
    marked = (tmp_path / "mark").stat().st_mtime_ns
    time.sleep(0.3)
    assert (tmp_path / "mark").stat().st_mtime_ns == marked, "a detached grandchild is still alive"
    log = next((tmp_path / "runs/s/jobs").glob(f"{found['Prints']['job_id']}/stdout.log"))
    assert log.stat().st_size < 6 << 20
    for path in (tmp_path / "runs").rglob("*"):
        assert not path.is_file() or b"geheimnis-42" not in path.read_bytes(), path


def test_ctrl_c_stops_cleanly_and_the_same_command_goes_on(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(STUDY.replace("noise=0.1", "noise=0.1&latency=0.02"))
    process = subprocess.Popen(
        [*PROGRAM, "run", "s.yaml"], cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE
    )
    deadline = time.monotonic() + 60
    while _done(tmp_path / "runs" / "s") < 1 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130 and b"stopping" in said
    states = {row["status"] for row in rows(tmp_path / "runs" / "s")}
    assert "failed" not in states and "not_run" in states
    assert sharpen(tmp_path, "resume", "s", "-q").stdout.strip() == "6 ok"
    shown = sharpen(tmp_path, "status", "s").stdout
    assert shown.count("finished") == 6 and "reflact[gate=strict]" in shown


def test_a_study_goes_on_from_its_snapshot_under_the_same_names(tmp_path: Path) -> None:
    study = STUDY.replace("limit: 24}", "limit: 8}, {name: codebook, limit: 10}")
    (tmp_path / "s.yaml").write_text(study)
    sharpen(tmp_path, "run", "s.yaml", "seeds=1", "trainers=[noop]", "-q")
    before = (tmp_path / "runs/s/results.csv").read_bytes()
    assert b"codebook[limit=10]" in before
    sharpen(tmp_path, "resume", "s", "-q")
    assert (tmp_path / "runs/s/results.csv").read_bytes() == before


def test_jobs_that_a_study_no_longer_has_are_kept_and_told(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(STUDY)
    sharpen(tmp_path, "run", "s.yaml", "-q", "seeds=3", "trainers=[noop]")
    smaller = sharpen(tmp_path, "run", "s.yaml", "seeds=1", "trainers=[noop]")
    assert "2 jobs that the study no longer has: kept" in smaller.stderr
    assert len(rows(tmp_path / "runs/s")) == 1 and len(RunFolder(tmp_path / "runs/s").jobs()) == 3


@pytest.mark.parametrize("victim", ["conductor", "nursery"])
def test_jobs_of_a_killed_study_are_stopped_and_not_as_if_never_begun(tmp_path: Path, victim: str) -> None:
    (tmp_path / "s.yaml").write_text(STUDY.replace("noise=0.1", "noise=0.1&latency=0.02") + "parallel: 2\n")
    process = subprocess.Popen([*PROGRAM, "run", "s.yaml"], cwd=tmp_path, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    stories = "runs/s/jobs/*/events.jsonl"
    while sum(path.stat().st_size > 0 for path in tmp_path.glob(stories)) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(process.pid if victim == "conductor" else int(children[0]), signal.SIGKILL)
    _, said = process.communicate(timeout=60)
    assert b"Traceback" not in said
    shown = sharpen(tmp_path, "status", "s").stdout
    assert "6 jobs: 2 stopped, 4 not run." in shown
    assert "seq, seed 0" in shown


def test_validate_writes_nothing_unless_asked(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(STUDY)
    done = sharpen(tmp_path, "validate", "s.yaml")
    assert done.returncode == 0 and "6 jobs" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.yaml"]
    sharpen(tmp_path, "validate", "s.yaml", "--manifest", "jobs.json")
    jobs = json.loads((tmp_path / "jobs.json").read_text())["jobs"]
    assert len(jobs) == 6 and {job["arm"] for job in jobs.values()} >= {"seq", "reflact[gate=force]"}
    assert sharpen(tmp_path, "validate", "s.yaml", "models.target=scripted/rulez").returncode == 2


def _done(run: Path) -> int:
    folder = RunFolder(run)
    return sum((job / "process.json").exists() for job in folder.jobs()) if run.exists() else 0
