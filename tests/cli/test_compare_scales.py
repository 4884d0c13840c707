"""`sharpen compare` on a real study with a benchmark and an arm that breaks, and on tables of several games and of steps."""

from __future__ import annotations

import csv
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Program = Callable[..., Any]

OWN = """
from sharpen.trainers.noop import NoOp

class Broken(NoOp):
    description = "raises"

    async def train(self, job):
        raise RuntimeError("what a day")
"""
STUDY = """
tasks: [{name: codebook, limit: 20}]
trainers:
  - {name: "own.py:Broken", label: broken}
  - {name: noop}
  - {name: reflact, params: {epochs: 1, batch_size: 20}}
seeds: 3
models: {target: "scripted/rules?noise=0.1", optimizer: scripted/rules}
parallel: 2
benchmark: {random_score: 0.0, human_score: 0.5, protocol: twenty items}
"""


@pytest.fixture(scope="module")
def studied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("studied")
    (folder / "own.py").write_text(OWN)
    (folder / "study.yaml").write_text(STUDY)
    call = [sys.executable, "-c", "from sharpen.cli import main; main()", "run", "study.yaml", "-q"]
    assert subprocess.run(call, cwd=folder, capture_output=True, text=True).returncode == 1
    return folder


def games(path: Path, effect: float = 0.6, seeds: int = 8) -> str:
    rows = ["arm,task,seed,step,return"]
    for arm, by in (("old", 0.0), ("new", effect)):
        for game, mean, spread in (("Pong", -5.0, 2.0), ("Qbert", 3500.0, 300.0), ("Breakout", 20.0, 2.0)):
            rows += [
                f"{arm},{game},{seed},1000,{mean + spread * (by + seed % 3 / 2 + (seed * by) % 0.3)}"
                for seed in range(seeds)
            ]
    path.write_text("\n".join(rows) + "\n")
    return str(path)


def test_an_arm_whose_jobs_raised_is_left_out_with_what_happened(
    studied: Path, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(studied)
    done = program("compare", "study", "--json")
    assert done.code == 0, done.err
    (found,) = done.json["comparisons"]
    assert (found["old"], found["new"]) == ("noop", "reflact")
    said = " ".join(found["warnings"])
    assert "broken is left out" in said and "and 2 more: failed: RuntimeError: what a day" in said
    assert "compared with noop instead" in said and "not at its end" not in said
    alone = program("compare", "study@broken", "study@noop")
    assert (alone.code, alone.out) == (2, "") and "only noop is left" in alone.err


def test_the_benchmark_of_a_study_is_the_scale_of_its_comparison(
    studied: Path, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(studied)
    (row,) = program("compare", "study", "--json").json["comparisons"][0]["rows"]
    assert row["normalised"]["effect"]["value"] == pytest.approx(2 * row["effect"])
    assert row["normalised"]["reference"]["protocol"] == "twenty items"
    (other,) = program("compare", "study", "--json", "--normalise", "0:0.25").json["comparisons"][0]["rows"]
    assert other["normalised"]["effect"]["value"] == pytest.approx(4 * row["effect"])


def test_several_games_are_shown_raw_and_normalised_with_aggregates(program: Program, tmp_path: Path) -> None:
    path = games(tmp_path / "g.csv")
    done = program("compare", path, "--normalise", "atari57", "--csv", "o.csv", "--html", "o.html")
    assert done.code == 0, done.err
    assert done.out.startswith("new is better than old over 3 tasks: +0.")
    for words in ("normalised, p", "Over 3 tasks, normalised", "IQM", "P(new better than old)", "no-op starts 30 min"):
        assert words in done.out
    rows = list(csv.DictReader((tmp_path / "o.csv").read_text().splitlines()))
    assert {row["over"] for row in rows} >= {
        "seeds",
        "tasks",
        "tasks, normalised",
        "iqm",
        "iqm, normalised",
        "improvement",
    }
    assert "Over 3 tasks" in (tmp_path / "o.html").read_text()


def test_a_plan_fixes_the_scale_too(program: Program, tmp_path: Path) -> None:
    path = games(tmp_path / "g.csv")
    (tmp_path / "plan.yaml").write_text(
        "metric: return\nsummary: final\nbaseline: old\narms: [new]\ntasks: [Pong, Qbert, Breakout]\nseeds: 8\n"
        "normalise: atari57\n"
    )
    assert program("plan", "plan.yaml").code == 0
    found = program("compare", path, "--plan", "plan.yaml", "--json").json
    assert found["comparisons"][0]["pooled_normalised"]["normalised"] is True
    refused = program("compare", path, "--plan", "plan.yaml", "--normalise", "0:1")
    assert refused.code == 2 and "--normalise is fixed by the plan" in refused.err


def test_steps_that_some_runs_never_take_are_told_with_median_and_restricted_mean(
    program: Program, tmp_path: Path
) -> None:
    rows = ["arm,seed,step,reward"]
    for arm, rate in (("old", 0.007), ("new", 0.018)):
        rows += [
            f"{arm},{seed},{step},{rate * (1 + seed / 12) * step}" for seed in range(8) for step in range(0, 101, 10)
        ]
    (tmp_path / "r.csv").write_text("\n".join(rows) + "\n")
    done = program("compare", "r.csv", "--summary", "steps_to", "--reach", "1")
    assert done.code == 0, done.err
    assert done.out.startswith("new is better than old: -")
    for words in ("6 of 16 runs never came to 1", "On the way", "2 of 8", "8 of 8", "log-rank"):
        assert words in done.out
    (row,) = program("compare", "r.csv", "--summary", "steps_to", "--reach", "1", "--json").json["comparisons"][0][
        "rows"
    ]
    assert row["times"]["old"]["median"] is None and row["times"]["until"] == 100
