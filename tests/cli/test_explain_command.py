"""`sharpen explain` on real small trainings: what is stored, what is measured fresh, what can go; and a study's jobs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Program = Callable[..., Any]

SKILL = """Each message begins with its kind. Answer with the code word of that kind.

- Be kind to animals.
- kind-02: lilac
- kind-17: wheat
- kind-16: indigo
- kind-17: wheat
"""
NOOP = ("--model", "scripted/rules", "--trainer", "noop")


@pytest.fixture
def told(program: Program) -> Program:
    """The program, beside a finished run whose skill has a line that does nothing and one that is there twice."""
    Path("start.md").write_text(SKILL)
    assert program("train", "codebook", *NOOP, "--skill", "start.md", "-q").code == 0
    return program


def effects(done: Any) -> dict[str, Any]:
    assert done.code == 0, done.err
    return {row["text"]: row["effect"] for row in done.json["blocks"]}


def test_without_fresh_rollouts_nothing_is_run_and_the_price_is_told(told: Program) -> None:
    done = told("explain", "latest", "--json").json
    assert all(row["effect"] is None and row["origin"]["how"] == "start" for row in done["blocks"])
    assert done["missing"] == 6 * done["items"], "the whole skill is in the ledger"
    assert not Path("runs/explain").exists()
    shown = told("explain")
    assert shown.code == 0 and "rollouts would weigh them all" in shown.out and "start" in shown.out


def test_fresh_rollouts_weigh_every_line_and_are_paid_once(told: Program) -> None:
    first = told("explain", "--fresh", "--json")
    found = effects(first)
    assert found["- Be kind to animals."]["mean"] == 0.0
    assert found["- kind-02: lilac"]["mean"] < 0 and found["- kind-16: indigo"]["mean"] < 0
    assert found["- kind-17: wheat"]["mean"] == 0.0, "the line is there twice"
    assert first.json["paid_calls"] > 0
    again = told("explain", "--fresh", "--json")
    assert again.json["paid_calls"] == 0 and effects(again) == found
    assert effects(told("explain", "--json")) == found, "what was measured is stored"


def test_a_budget_measures_as_much_as_it_allows(told: Program) -> None:
    items = told("explain", "--json").json["items"]
    done = told("explain", "--budget", f"calls={3 * items + 5}", "--json")
    assert done.json["paid_calls"] == 3 * items
    assert [row["effect"] is not None for row in done.json["blocks"]] == [True] * 3 + [False] * 3


def test_the_shorter_skill_leaves_out_what_does_nothing_and_one_of_two_that_do_the_same(told: Program) -> None:
    done = told("explain", "--fresh", "--prune", "--margin", "0.1", "--to", "short.md", "--json")
    assert done.code == 0, done.err
    shorter = Path("short.md").read_text()
    assert "animals" not in shorter
    assert "kind-02: lilac" in shorter and "kind-16: indigo" in shorter
    assert shorter.count("kind-17: wheat") == 1, "alone each can go, but not both"
    assert done.json["pruned"]["put_back"] == ["- kind-17: wheat"]
    assert done.json["pruned"]["effect"]["mean"] == 0.0


def test_items_that_can_not_show_the_margin_are_said_to_be_too_few(told: Program) -> None:
    done = told("explain", "--fresh", "--prune", "--margin", "0.001", "--to", "short.md")
    assert done.code == 0 and "can't show a loss below 0.001" in done.out
    assert not Path("short.md").exists() and "short.md was not written" in done.err


def test_a_training_names_the_steps_and_leaves_the_items_of_the_confirmation_alone(trained: Program) -> None:
    done = trained("explain", "latest", "--json").json
    steps = {row["origin"]["step"] for row in done["blocks"]}
    assert 0 in steps and max(steps) >= 1
    assert all(row["origin"]["evidence"]["gate"] == "strict" for row in done["blocks"] if row["origin"]["step"])
    assert 0 < done["items"] < 40, "some of the 40 val items were held back"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--prune"], "--prune has to measure"),
        (["--to", "x.md"], "give --prune too"),
        (["--fresh", "--prune", "--to", "start.md"], "start.md is there already"),
        (["--fresh", "--budget", "calls=5"], "give one of the two"),
        (["--budget", "tokens=5"], "explain counts calls alone"),
        (["nowhere"], "no run 'nowhere'"),
    ],
)
def test_nonsense_is_answered_with_what_would_be_right(told: Program, words: list[str], says: str) -> None:
    done = told("explain", *words)
    assert done.code == 2 and says in done.err


STUDY = """
tasks: [{name: codebook, limit: 20}]
trainers: [{name: noop}, {name: reflact, params: {epochs: 1, batch_size: 20}}]
seeds: 1
total: {calls: 5000}
budget: {calls: 2000}
models: {target: scripted/rules, optimizer: scripted/rules}
"""


def test_a_job_of_a_study_is_explained_and_scored_with_its_own_configuration(program: Program, tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(STUDY)
    call = [sys.executable, "-c", "from sharpen.cli import main; main()", "run", "study.yaml", "-q"]
    ran = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    for job in sorted((tmp_path / "runs" / "study" / "jobs").iterdir()):
        checkpoint = program("eval", str(job / "checkpoints" / "best"), "--json")
        whole = program("eval", str(job), "--against", "initial", "--json")
        assert (checkpoint.code, whole.code) == (0, 0), checkpoint.err + whole.err
        (scores,) = checkpoint.json["scores"].values()
        assert scores["n"] == 20 and scores == whole.json["scores"][job.name]
        assert checkpoint.json["paid_calls"] == 0, "the study's ledger has them"
        assert program("explain", str(job), "--json").code == 0
    several = program("eval", "study")
    assert several.code == 2 and "is a study of 2 jobs; name one of them" in several.err
