"""What people get wrong about studies: files of their own that break, keys that stand twice, names that are taken."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sharpen.bench.config import BudgetConfig
from sharpen.bench.study import load

Program = Callable[..., Any]
STUDY = """
tasks: [{name: codebook, limit: 6}]
trainers: [noop]
seeds: 2
models: {target: scripted/rules}
"""
OWN = """import os, sys
MODE = "@"
if MODE == "leaves": sys.exit(0)
if MODE == "prints": print("hello")
if MODE == "raises": raise ValueError("at import\\nmore of it")
from sharpen.trainers.noop import NoOp
class Own(NoOp):
    def __init__(self, params):
        if MODE == "init": raise ValueError("in init")
        super().__init__(params)
    def check(self, *given):
        if MODE == "check": raise ValueError("in check")
        return super().check(*given)
    def effort(self, ground):
        print("looking")
        if MODE == "effort": raise ValueError("in effort")
        return super().effort(ground)
"""


@pytest.fixture
def study(program: Program) -> Program:
    """The program, beside a small study."""
    Path("s.yaml").write_text(STUDY)
    return program


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("leaves", "own.py, line 3: SystemExit: 0"),
        ("raises", "own.py, line 5: ValueError: at import"),
        ("init", "own.py, line 9: ValueError: in init"),
        ("check", "own.py, line 12: ValueError: in check"),
        ("effort", "own.py, line 16: ValueError: in effort"),
    ],
)
def test_what_an_own_file_raises_is_a_problem_among_others(study: Program, mode: str, words: str) -> None:
    Path("own.py").write_text(OWN.replace("@", mode))
    given = ("s.yaml", "trainers=['own.py:Own']", "tasks=[{name: codebook, limit: 6}, {name: nix}]")
    ran = study("validate", *given, "--json")
    assert ran.code == 2
    problems = ran.json["problems"]
    assert len(problems) == 2 and "unknown task 'nix'" in problems[0]
    assert problems[1].endswith(words)
    if mode != "effort":
        ran = study("run", "s.yaml", "trainers=['own.py:Own']")
        assert ran.code == 2 and words in ran.err and "Traceback" not in ran.err


def test_what_an_own_file_prints_is_not_in_the_json(study: Program) -> None:
    Path("own.py").write_text(OWN.replace("@", "prints"))
    ran = study("validate", "s.yaml", "trainers=['own.py:Own']", "--json")
    assert ran.code == 0 and len(json.loads(ran.out)["jobs"]) == 2
    assert "hello" in ran.err and "looking" in ran.err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (STUDY + "trainers: [reflact]\n", "'trainers' stands twice, in line 3 and line 6"),
        (STUDY + "budget: {calls: 5, calls: 6}\n", "'calls' stands twice, in line 6, both times"),
        ("tasks: &all [codebook, *all]\n", "line 1: what stands here contains itself"),
        (STUDY + "tags: " + "[" * 4000 + "]" * 4000, "nested too deeply"),
    ],
)
def test_yaml_that_can_not_be_meant_is_refused(study: Program, text: str, words: str) -> None:
    Path("s.yaml").write_text(text)
    for command in ("validate", "run"):
        ran = study(command, "s.yaml")
        assert ran.code == 2 and "s.yaml" in ran.err and words in ran.err, ran.err


def test_a_merge_may_repeat_a_key_on_purpose(study: Program) -> None:
    trainers = "trainers:\n  - &one {name: few-shot, label: a}\n  - {<<: *one, name: noop, label: b}\n  - noop\n"
    Path("s.yaml").write_text(STUDY.replace("trainers: [noop]\n", trainers.replace("  - noop\n", "")))
    ran = study("validate", "s.yaml", "--json")
    assert {job["arm"]: job["trainer"] for job in ran.json["jobs"].values()} == {"a": "few-shot", "b": "noop"}


def test_a_block_given_on_the_command_line_replaces_that_of_the_file(study: Program) -> None:
    Path("s.yaml").write_text(STUDY + "budget: {calls: 70}\n")
    for given, caps in (("{}", {}), ("{tokens: 9999}", {"tokens": 9999}), ("null", {})):
        assert load(Path("s.yaml"), [f"budget={given}"]).budget == BudgetConfig(**caps)
    assert load(Path("s.yaml"), ["budget.tokens=9999"]).budget == BudgetConfig(calls=70, tokens=9999)
    assert load(Path("s.yaml"), ["models={optimizer: scripted/rules}"]).models.target.startswith("local/")
    Path("s.yaml").write_text(STUDY + "budget:\n")
    assert study("validate", "s.yaml").code == 0, "a block with nothing in it is as if it had not been written"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("budget=5", "budget: a mapping of keys to values is wanted, got 5"),
        ("seeds=['a']", "seeds: write how many (5)"),
        ("seeds=true", "seeds: write how many (5)"),
        ("trainers=[{name: polca, params: {epsilon: 99}}]", "epsilon"),
    ],
)
def test_a_value_that_does_not_fit_is_said_in_plain_words(study: Program, given: str, words: str) -> None:
    ran = study("validate", "s.yaml", given)
    assert ran.code == 2 and words in ran.err and "seeds.int" not in ran.err and "instance of" not in ran.err


@pytest.mark.parametrize("name", ["eval", "doctor", "explain", "latest"])
def test_names_that_mean_something_else_are_refused(study: Program, name: str) -> None:
    assert f"can't be called '{name}'" in study("run", "s.yaml", "--name", name).err
    assert not Path("runs").exists()


def test_a_study_is_not_put_over_the_run_of_a_training(study: Program) -> None:
    study("train", "codebook", "--trainer", "noop", "--model", "scripted/rules", "--limit", "6", "-q")
    (snapshot,) = Path("runs").glob("*/meta/config.snapshot.yaml")
    before = snapshot.read_bytes()
    ran = study("run", "s.yaml", "--name", snapshot.parent.parent.name)
    assert ran.code == 2 and "the run of one training" in ran.err
    assert snapshot.read_bytes() == before


@pytest.mark.parametrize("command", ["train", "doctor"])
def test_a_study_is_not_a_training(study: Program, command: str) -> None:
    ran = study(command, "s.yaml")
    assert ran.code == 2 and ran.err.startswith("sharpen: s.yaml is a study") and "sharpen run s.yaml" in ran.err
    assert "unknown key" not in ran.err


def test_what_jobs_of_a_study_learned_can_be_exported(study: Program) -> None:
    rows = [{"input": f"kind-{n % 3:02}: hello {n}", "answer": f"w{n % 3}"} for n in range(12)]
    Path("d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert study("run", "s.yaml", "tasks=[{name: d.jsonl, ratio: '1:1:1'}]", "-q").code == 0
    Path("d.jsonl").unlink()
    several = study("export", "s")
    jobs = sorted(Path("runs/s/jobs").iterdir())
    assert several.code == 2 and all(str(job) in several.err for job in jobs)
    assert "d, noop, seed 0" in several.err and "d, noop, seed 1" in several.err
    for form in ("skill", "prompt", "python"):
        ran = study("export", str(jobs[0]), "--as", form, "--to", form)
        assert ran.code == 0, ran.err
    assert Path("skill/d/SKILL.md").exists() and Path("python/d.py").exists()
