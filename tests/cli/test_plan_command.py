"""`sharpen plan` and `compare --plan`, `--since` as a user meets them, from locking to the verdict."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Program = Callable[..., Any]

PLAN = "metric: test\nsummary: test\nbaseline: noop\narms: [reflact]\ntasks: [codebook]\nseeds: 6\n"
STUDY = """
tasks: [{name: codebook, limit: 20}]
trainers: [{name: noop}, {name: reflact, params: {epochs: 1, batch_size: 20}}]
seeds: 6
models: {target: "scripted/rules?noise=0.1", optimizer: scripted/rules}
"""
OWN = """
from sharpen.trainers.noop import NoOp

class Mine(NoOp):
    name = "mine"
"""


def test_what_was_planned_is_confirmed_and_the_same_afterwards_is_not(program: Program) -> None:
    Path("plan.yaml").write_text(PLAN)
    Path("late.yaml").write_text(PLAN)
    Path("study.yaml").write_text(STUDY)
    fixed = program("plan", "plan.yaml")
    assert fixed.code == 0 and fixed.out.startswith("Locked 20") and Path("plan.lock.json").exists()
    assert program("run", "study.yaml", "-q").code == 0
    done = program("compare", "study", "--plan", "plan.yaml")
    assert done.code == 0, done.err
    assert "What was done is what was planned." in done.out and "xploratory" not in done.out
    assert program("plan", "late.yaml").code == 0
    late = program("compare", "study", "--plan", "late.yaml", "--json").json
    assert not late["plan"]["as_planned"] and "12 of 12 runs began before" in late["plan"]["deviations"][0]
    assert late["comparisons"][0]["exploratory"] and late["comparisons"][0]["sentence"].startswith("Exploratory: ")
    never = PLAN.replace("seeds: 6", "seeds: 5")
    Path("never.yaml").write_text(never)
    words = program("compare", "study", "--plan", "never.yaml").out
    assert "the plan was never locked" in words and "a look at 6 seeds was not planned; planned: 5" in words
    fixed_by = program("compare", "study", "--plan", "plan.yaml", "--margin", "0.1")
    assert fixed_by.code == 2 and "--margin is fixed by the plan" in fixed_by.err


def test_a_plan_says_when_no_look_can_find_anything(program: Program) -> None:
    Path("plan.yaml").write_text(PLAN.replace("seeds: 6", "seeds: 6\nlooks: [3, 6]"))
    done = program("plan", "plan.yaml")
    assert "at 3 seeds nothing can be found" in done.out
    assert "at 6 seeds" not in done.out
    several = PLAN.replace("[codebook]", "[x, y, z]").replace("seeds: 6", "seeds: 8\nlooks: [4, 8]")
    Path("several.yaml").write_text(several)
    # A seed counts once, however many tasks it ran on.
    assert "at 4 seeds nothing can be found: so few pairs" in program("plan", "several.yaml").out
    Path("rows.yaml").write_text(f"{several}family: [reflact, reflact on x]\n")
    done = program("plan", "rows.yaml")
    assert "at 4 seeds nothing can be found on a single task: so few pairs can't come to p = 0.00305" in done.out
    assert "at 8 seeds" not in done.out


def test_seeds_are_counted_once_over_tasks_and_every_run_is_looked_at(program: Program) -> None:
    Path("plan.yaml").write_text("metric: score\nsummary: final\nbaseline: a\narms: [b]\ntasks: [x, y, z]\nseeds: 8\n")
    rows = [
        f"{arm},{task},{seed},{by + (seed * place) % 3 / 50}"
        for arm, by in (("a", 0.5), ("b", 0.9))
        for place, task in enumerate("xyz", 1)
        for seed in range(8)
    ]
    Path("t.csv").write_text("\n".join(["arm,task,seed,score", *rows, ""]).replace("b,x,0,0.9", "b,x,0,0.93"))
    assert "nothing can be found" not in program("plan", "plan.yaml").out
    found = program("compare", "t.csv", "--plan", "plan.yaml", "--json").json
    assert found["comparisons"][0]["verdict"] == "better"
    assert found["comparisons"][0]["pooled"]["seeds"] == [8]
    assert "when 48 of 48 runs began is not known" in found["plan"]["unchecked"][0]


def git(*words: str) -> str:
    who = ["-c", "user.name=t", "-c", "user.email=t@t"]
    return subprocess.run(["git", *who, *words], capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def own(program: Program) -> Program:
    """The program beside a git work tree with a trainer of one's own, two runs, and a change after them."""
    Path("mine.py").write_text(OWN)
    for seed in ("0", "1"):
        words = ("--trainer", "mine.py:Mine", "--model", "scripted/rules", "--limit", "10", "--seed", seed)
        assert program("train", "codebook", *words, "-q").code == 0
    return program


def compare(own: Program, commit: str) -> Any:
    jobs = sorted(str(job) for job in Path("runs").glob("*/jobs/*"))
    return own("compare", *jobs, "--over", "items", "--since", commit)


def test_what_changed_in_a_trainer_since_a_commit_is_listed(own: Program) -> None:
    git("init", "-q")
    git("add", "mine.py")
    git("commit", "-qm", "the trainer as benchmarked")
    before = git("rev-parse", "HEAD")
    same = compare(own, before)
    assert same.code == 0 and "Changes in mine.py:Mine (mine.py)\nnone" in same.out, same.out + same.err
    Path("mine.py").write_text(OWN + "    version = '2'\n")
    git("commit", "-qam", "another version")
    assert "another version" in (out := compare(own, before).out) and "mine.py | 1 +" in out
    wrong = compare(own, "no-such-commit")
    assert wrong.code == 2 and "has no commit 'no-such-commit'" in wrong.err


def test_a_trainer_that_git_does_not_keep_is_said_so(own: Program) -> None:
    done = compare(own, "HEAD")
    assert done.code == 2 and "which git does not keep" in done.err
