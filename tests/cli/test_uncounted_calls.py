"""A task that asks a model with a client of its own: the caps cannot hold, and every command says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Program = Callable[..., Any]

TASK = """
import hashlib
from sharpen.core.candidate import Candidate
from sharpen.core.item import Item
from sharpen.core.outcome import scored
from sharpen.core.task import Splits, Task

class Agent(Task):
    name = "agent"
    calls_per_rollout = {calls}

    def splits(self):
        numbers = [(split, n) for split in "rvt" for n in range(12)]
        texts = {{pair: hashlib.sha256(str(pair).encode()).hexdigest() for pair in numbers}}
        items = [Item(f"{{split}}-{{n}}", {{"input": texts[split, n]}}, "yes") for split, n in numbers]
        return Splits(*(tuple(item for item in items if item.id[0] == split) for split in "rvt"))

    def seed(self):
        return Candidate("Answer.")

    async def rollout(self, item, candidate, attempt):
        with open("calls.txt", "a") as file:  # here a client of its own would ask
            file.write(item.id + "\\n")
        return scored(item.id, int(item.id[2:]) % 2 == 0, answer="no")
"""
REMEDY = "calls made by your own client are not counted, not capped and not stored"


@pytest.fixture
def task(tmp_path: Path, program: Program) -> Callable[[int], str]:
    def write(calls: int) -> str:
        (tmp_path / "agent.py").write_text(TASK.format(calls=calls))
        return "agent.py:Agent"

    return write


MODEL = ("--model", "scripted/rules", "--trainer", "noop")


def test_training_warns_where_a_model_or_a_cap_is_configured(program: Program, task: Callable[[int], str]) -> None:
    done = program("train", task(0), *MODEL, "--budget", "calls=60", "-q")
    assert done.code == 0
    assert "warning: task 'agent' says calls_per_rollout = 0" in done.err
    assert "models.target=scripted/rules and budget.calls=60 has no effect on it; " + REMEDY in done.err
    assert "warning" not in program("train", task(0), "--trainer", "noop", "-q").err


def test_a_study_is_warned_of_before_it_runs(program: Program, task: Callable[[int], str], tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(
        f"tasks: ['{task(0)}']\ntrainers: [noop]\nseeds: 2\nmodels: {{target: scripted/rules}}\n"
    )
    assert REMEDY in program("validate", "s.yaml").err
    (said,) = program("validate", "s.yaml", "--json").json["warnings"]
    assert REMEDY in said
    assert program("run", "s.yaml", "-q").err.count(REMEDY) == 1


def test_the_doctor_sees_both_ways_of_it(program: Program, task: Callable[[int], str]) -> None:
    for calls, what in ((0, "calls_per_rollout = 0"), (1, "no attempt asked the model")):
        findings = program("doctor", task(calls), *MODEL, "--json").json["findings"]
        (finding,) = [finding for finding in findings if finding["check"] == "calls"]
        assert finding["level"] == "warn" and what in finding["what"]
        assert finding["advice"].startswith(REMEDY)


def test_the_doctor_does_not_try_known_answers_on_an_agent_that_asks_by_itself(
    program: Program, task: Callable[[int], str]
) -> None:
    """Every rollout of such an agent may be paid for: what is called free must be."""
    Path("calls.txt").write_text("")
    done = program("doctor", task(1), *MODEL, "--items", "5", "--json").json
    scorer = next(finding for finding in done["findings"] if finding["check"] == "scorer")
    assert "known answers can't be tried" in scorer["what"]
    assert len(Path("calls.txt").read_text().split()) <= 1 + 2 * 5


def test_the_report_says_when_no_rollout_asked_the_model(program: Program, task: Callable[[int], str]) -> None:
    done = program("train", task(1), *MODEL)
    assert done.code == 0
    assert "No rollout asked the model through sharpen: " + REMEDY in " ".join(done.out.split())
    assert json.loads(next(Path("runs").glob("*/jobs/*/results.json")).read_text())["model_never_asked"] is True


def test_a_task_that_asks_as_it_should_is_not_warned_of(trained: Program) -> None:
    done = trained("report", "latest")
    assert "not counted" not in done.out + done.err
    assert json.loads(next(Path("runs").glob("*/jobs/*/results.json")).read_text())["model_never_asked"] is False
