"""What `sharpen validate` says before anything is paid for: every problem at once, every job, and what it would take."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sharpen.bench.matrix import lay_out
from sharpen.bench.outlook import Outlook, of_all, of_job
from sharpen.bench.study import look_at

Program = Callable[..., subprocess.CompletedProcess[str]]

TASKS = """
from sharpen.core.task import Requirements, Task

class Needs(Task):
    name = "needs"
    requirements = Requirements(packages=("nowhere_to_be_found",))

class Fixed(Task):
    name = "fixed"
    untrainable = "its agent may not change"
"""

FAULTY = """
tasks: [codebook, codebok, "own.py:Needs", "own.py:Fixed", {name: codebook, limit: many}]
trainers:
  - {name: noop, params: {epochs: 2}}
  - {name: few-shot, params: {max_length: long}}
  - reflct
  - {name: noop, label: one}
  - {name: noop, label: two}
models: {target: scripted/rules, optimizer: nonsense}
paralel: 2
strict: true
total: {calls: 100}
"""

ALL = """
tasks: [{name: codebook, limit: 12}]
trainers:
  - {name: reflact, params: {epochs: 1, batch_size: 6}}
  - {name: gepa-base, params: {iterations: 4}}
  - {name: gepa-beam, params: {iterations: 3}}
  - {name: priority-search, params: {iterations: 3}}
  - {name: basic-search, params: {iterations: 2, acceptance: sequential}}
  - {name: beam-search, params: {max_depth: 2}}
  - {name: ucb-search, params: {iterations: 4}}
  - {name: minibatch, params: {epochs: 1}}
  - {name: opro, params: {iterations: 3}}
  - {name: few-shot, params: {num_candidate_programs: 4}}
  - noop
models: {target: "scripted/rules?noise=0.1", optimizer: scripted/rules}
"""


def told(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def foretold(folder: Path, *overrides: str) -> tuple[list[Outlook], Outlook]:
    """What each job of the study in a folder would take, and all together."""
    study, said = look_at(folder / "s.yaml", overrides)
    assert study is not None and not said
    every = [of_job(job, folder / "runs" / "doctor") for job in lay_out(study).checked()]
    return every, of_all(every, study.total, study.parallel)


def test_eleven_faults_are_eleven_problems_and_nothing_is_written(program: Program, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(TASKS)
    (tmp_path / "s.yaml").write_text(FAULTY)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    done = program("validate", "s.yaml", "--manifest", "jobs.json", PYTHONDONTWRITEBYTECODE="1")
    assert done.returncode == 2 and not done.stdout
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before
    first, *problems = done.stderr.splitlines()
    wanted = (
        "unknown key 'paralel' (did you mean 'parallel'?)", "tasks.4.limit: Input should be a valid integer",
        "total.calls can only be kept where budget.calls caps", "unknown task 'codebok' (did you mean 'codebook'?)",
        "it needs Python package nowhere_to_be_found",
        "'fixed' can't be trained: its agent may not change", "models.optimizer: 'nonsense' is not a model name",
        "trainer noop: unknown key 'epochs'", "trainer few-shot: max_length: Input should be a valid integer",
        "unknown trainer 'reflct' (did you mean 'reflact'?)", "one and two: the same job twice",
    )  # fmt: skip
    for words in wanted:
        assert sum(words in problem for problem in problems) == 1, words
    assert "problems:" in first and len(problems) == len(wanted) + 1  # without its limit, codebook is there twice
    assert "is named twice" in done.stderr


def test_what_stands_in_the_way_of_every_job_is_said_once(program: Program, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(TASKS)
    (tmp_path / "s.yaml").write_text(
        "tasks: ['own.py:Fixed']\ntrainers: [noop, few-shot]\nseeds: 3\nmodels: {target: scripted/rules}\n"
    )
    said = told(program("validate", "s.yaml", "--json"))
    assert said["jobs"] == {} and len(said["problems"]) == 1 and "its agent may not change" in said["problems"][0]


@pytest.mark.parametrize("text", ["tasks: []\n", "tasks: 5\n", "trainers: [noop]\n", "tasks: [{nam: x}]\n", ""])
def test_a_study_without_any_cell_is_a_problem(tmp_path: Path, text: str) -> None:
    (tmp_path / "s.yaml").write_text(text)
    study, said = look_at(tmp_path / "s.yaml")
    assert study is None and "tasks" in said[0]


def test_no_trainer_takes_more_calls_than_were_foretold(program: Program, tmp_path: Path, table: Any) -> None:
    (tmp_path / "s.yaml").write_text(ALL)
    said = told(program("validate", "s.yaml", "--json"))
    assert program("run", "s.yaml", "parallel=2", "-q").returncode == 0
    taken = {row["job_id"]: int(row["calls"]) for row in table("s")}
    foretold = {job: about["estimate"]["most"]["calls"] for job, about in said["jobs"].items()}
    assert len(taken) == 11 and taken.keys() == foretold.keys()
    assert all(0 < taken[job] <= foretold[job] for job in taken), (taken, foretold)
    assert said["estimate"]["most"]["calls"] == sum(foretold.values())
    assert said["estimate"]["most"]["money"] == 0 and said["estimate"]["most"]["seconds"] is None


def test_caps_and_prices_are_reckoned_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "s.yaml").write_text("tasks: [{name: codebook, limit: 12}]\ntrainers: [noop]\nseeds: 4\n")
    (tmp_path / "prices.yaml").write_text("models: {'http://127.0.0.1:9/v1#m': {input: 100, output: 1000}}\n")
    target = "models.target=http://127.0.0.1:9/v1#m"
    _, unknown = foretold(tmp_path, target)
    assert unknown.most.money is None and (unknown.most.tokens or 0) > 0
    capped, whole = foretold(tmp_path, target, "budget.calls=70", "total.calls=150", "budget.seconds=60")
    assert all(one.most.calls == 70 for one in capped)
    assert (whole.most.calls, whole.most.money, whole.most.seconds) == (150, None, 240)
    assert whole.capped == {"calls", "seconds"}
    monkeypatch.setenv("SHARPEN_PRICES", str(tmp_path / "prices.yaml"))
    _, priced = foretold(tmp_path, target)
    assert 0 < (priced.most.money or 0) < 100


def test_what_the_doctor_timed_is_reckoned_with(program: Program, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("tasks: [{name: codebook, limit: 12}]\ntrainers: [noop]\nworkers: 1\n")
    slow = "scripted/rules?latency=0.05"
    assert "sharpen doctor" in program("validate", "s.yaml", f"models.target={slow}").stdout
    assert program("doctor", "codebook", "--model", slow, "--limit", "12", "-q").returncode in (0, 1)
    _, timed = foretold(tmp_path, f"models.target={slow}")
    assert (timed.most.seconds or 0) >= 0.05 * (timed.most.calls or 0) * 0.9 > 0


def test_a_study_may_be_one_configuration_of_a_training(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("task: codebook\nmodels: {target: scripted/rules}\n")
    assert len(foretold(tmp_path)[0]) == 1
