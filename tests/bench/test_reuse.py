"""Jobs that another run has finished are taken over, where they are the same in everything a result depends on."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sharpen.bench import reuse
from sharpen.bench.layout import RunFolder
from sharpen.bench.matrix import lay_out
from sharpen.bench.study import load

Program = Callable[..., subprocess.CompletedProcess[str]]

STUDY = """
tasks: [{name: codebook, limit: 12}]
trainers: [noop, few-shot]
seeds: 2
models: {target: "scripted/rules?noise=0.1"}
budget: {calls: 400}
"""


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory, program_in: Any) -> Path:
    """A folder in which the study was carried out, as the run `first`."""
    made = tmp_path_factory.mktemp("reuse")
    (made / "s.yaml").write_text(STUDY)
    assert program_in(made)("run", "s.yaml", "--name", "first", "parallel=2", "-q").returncode == 0
    return made


@pytest.fixture
def folder(first: Path, tmp_path: Path) -> Path:
    shutil.copytree(first, tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_the_same_jobs_are_taken_over_and_cost_nothing(folder: Path, program: Program, table: Any) -> None:
    done = program("run", "s.yaml", "--reuse", "first", "--name", "again", "seeds=3", "total.calls=800", "--json")
    assert done.returncode == 0, done.stderr
    rows, before = table("again"), {row["job_id"]: row for row in table("first")}
    assert [row["reused_from"] for row in rows] == ["first", "first", "", "first", "first", ""]
    own = ("run_id", "reused_from")
    for row in rows:
        if row["reused_from"]:
            assert {**row, **dict.fromkeys(own)} == {**before[row["job_id"]], **dict.fromkeys(own)}
    said = json.loads(done.stdout)
    new = [row for row in rows if not row["reused_from"]]
    assert said["totals"]["calls"] == sum(int(row["calls"]) for row in new) > 0
    assert said["reused"]["totals"]["calls"] == sum(int(row["calls"]) for row in before.values())
    # 4 x 400 calls would not have left room under the total of 800 if those taken over counted.
    assert said["counts"] == {"ok": 6}
    for job_id in before:
        stories = [folder / "runs" / run / "jobs" / job_id / "events.jsonl" for run in ("first", "again")]
        assert stories[0].read_bytes() == stories[1].read_bytes() and not stories[0].samefile(stories[1])


def test_who_paid_first_is_named_however_often_a_job_is_handed_on(folder: Path, program: Program, table: Any) -> None:
    assert program("run", "s.yaml", "reuse=[first]", "--name", "second", "-q").returncode == 0
    shutil.rmtree(folder / "runs" / "first")
    assert program("run", "s.yaml", "--reuse", "second", "--name", "third", "-q").returncode == 0
    assert {row["reused_from"] for row in table("third")} == {"first"}
    assert program("resume", "second", "-q").returncode == 0, (
        "a run that is gone does not matter to one that is carried on"
    )


def test_what_is_not_the_same_is_run_afresh_and_validate_says_why(folder: Path, program: Program) -> None:
    shutil.copytree(folder / "runs/first", folder / "runs/older")
    manifest = folder / "runs/older/meta/manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "sharpen": "0.0.1"}))
    shutil.copytree(folder / "runs/first", folder / "runs/half")
    for story in (folder / "runs/half").glob("jobs/*/events.jsonl"):
        story.write_bytes(b"".join(story.read_bytes().splitlines(keepends=True)[:-1]))

    def said(runs: str, *overrides: str) -> set[str]:
        jobs = lay_out(load(folder / "s.yaml", overrides)).checked()
        found = reuse.find(jobs, reuse.sources(runs.split(), folder / "runs"))
        return {one.why if one.run is None else f"from {one.run.path.name}" for one in found.values()}

    assert said("first") == {"from first"}
    assert said("first", "models.target=scripted/rules") == {"first has it with other models"}
    assert said("first", "budget.calls=500") == {"first has it with other caps"}
    assert said("first", "seeds=[7]") == {"first has no such job"}
    assert said("older") == {"older was made by sharpen 0.0.1"}
    assert said("half") == {"half has it, not finished"}
    assert said("half first") == {"from first"}
    shown = program("validate", "s.yaml", "--reuse", "first", "seeds=3").stdout
    assert "4 jobs taken over from first, at no cost." in shown
    assert "2 jobs to run afresh: first has no such job." in shown
    missing = program("run", "s.yaml", "--reuse", "frist", "--name", "x")
    assert missing.returncode == 2 and "no run 'frist'" in missing.stderr and not (folder / "runs/x").exists()


def test_a_larger_budget_begins_a_job_anew_whose_answers_another_ledger_holds(
    tmp_path: Path, program: Program, table: Any
) -> None:
    (tmp_path / "s.yaml").write_text(STUDY.replace("noop, few-shot", "few-shot").replace("calls: 400", "calls: 150"))
    assert program("run", "s.yaml", "--name", "first", "-q").returncode == 0
    assert program("run", "s.yaml", "--name", "again", "--reuse", "first", "-q").returncode == 0
    assert {row["reused_from"] for row in table("again")} == {"first"}
    done = program("run", "s.yaml", "--name", "again", "--reuse", "first", "budget.calls=400", "-q")
    assert done.returncode == 0, done.stderr
    rows = table("again")
    assert {row["reused_from"] for row in rows} == {""} and all(int(row["calls"]) > 150 for row in rows)


def test_killed_in_the_middle_a_job_is_taken_over_whole_or_not_at_all(folder: Path) -> None:
    source, run = RunFolder(folder / "runs/first"), RunFolder(folder / "runs/again")
    job = source.jobs()[0].name
    wanted = {path.relative_to(source.job(job)) for path in source.job(job).rglob("*") if path.is_file()}
    wanted = {path for path in wanted if path.name not in ("lock", "durable.json")} | {Path(reuse.MARK)}
    fsyncs = 0
    while (ended := _killed_after(fsyncs, lambda: reuse.take_over(job, source, run))) != 0:
        assert ended == -signal.SIGKILL
        if run.job(job).exists():  # killed when it was in its place, and only its name was not on the disk yet
            assert {path.relative_to(run.job(job)) for path in run.job(job).rglob("*") if path.is_file()} == wanted
            shutil.rmtree(run.job(job))
        fsyncs += 1
    assert fsyncs > 3 and [home.name for home in run.jobs()] == [job]
    assert {path.relative_to(run.job(job)) for path in run.job(job).rglob("*") if path.is_file()} == wanted


def _killed_after(fsyncs: int, work: Callable[[], None]) -> int:
    """How a process ends that does some work and is killed when it has waited for the disk so many times."""
    child = os.fork()
    if child == 0:
        real, done = os.fsync, itertools.count()

        def killing(descriptor: int) -> None:
            if next(done) == fsyncs:
                os.kill(os.getpid(), signal.SIGKILL)
            real(descriptor)

        os.fsync = killing  # type: ignore[assignment]
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
