"""`sharpen compare`, `variance` and `power` on a real small study and on what others logged, with nonsense too."""

from __future__ import annotations

import csv
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Ran = Any
Program = Callable[..., Ran]

STUDY = """
tasks: [{name: codebook, limit: 40}]
trainers:
  - {name: noop}
  - {name: reflact, params: {epochs: 1, batch_size: 20}}
seeds: 6
models: {target: "scripted/rules?noise=0.1", optimizer: scripted/rules}
parallel: 2
"""


@pytest.fixture(scope="module")
def studied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished study of two trainers and six seeds."""
    folder = tmp_path_factory.mktemp("studied")
    (folder / "study.yaml").write_text(STUDY)
    call = [sys.executable, "-c", "from sharpen.cli import main; main()", "run", "study.yaml", "-q"]
    done = subprocess.run(call, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def beside(studied: Path, program: Program, monkeypatch: pytest.MonkeyPatch) -> Program:
    monkeypatch.chdir(studied)
    return program


def table(path: Path, effect: float, seeds: int = 8) -> str:
    rows = ["arm,run,seed,step,reward"]
    for arm, by in (("a", 0.0), ("b", effect)):
        for seed in range(seeds):
            rows += [
                f"{arm},{arm}{seed},{seed},{step},{step * (1 + by) + seed / 10 + seed % 3 / 50}" for step in (1, 2, 3)
            ]
    path.write_text("\n".join(rows) + "\n")
    return str(path)


def test_trainers_inside_a_run_are_compared_over_seeds(beside: Program) -> None:
    done = beside("compare", "study", "--by", "trainer")
    assert done.code == 0, done.err
    assert done.out.startswith("reflact is better than noop on codebook: +0.")
    for words in ("p = 0.031, 6 seeds", "tokens per point", "better, 0 worse", "Trained text", "+- kind-"):
        assert words in done.out


def test_everything_is_in_the_json_and_turning_the_arms_around_turns_the_effect(beside: Program) -> None:
    one = beside("compare", "study@noop", "study@reflact", "--json").json["comparisons"][0]
    other = beside("compare", "study", "--baseline", "reflact", "--json").json["comparisons"][0]
    assert one["rows"][0]["effect"] == pytest.approx(-other["rows"][0]["effect"])
    assert (one["verdict"], other["verdict"]) == ("better", "worse")
    assert [value["name"] for value in one["rows"][0]["values"]] == [f"seed {n}" for n in range(6)]


def test_two_jobs_and_two_checkpoints_are_compared_over_items(beside: Program, studied: Path) -> None:
    rows = list(csv.DictReader((studied / "runs/study/results.csv").read_text().splitlines()))
    jobs = {row["arm"]: f"runs/study/jobs/{row['job_id']}" for row in rows if row["seed"] == "0"}
    found = beside("compare", jobs["noop"], jobs["reflact"], "--json").json["comparisons"][0]["rows"][0]
    assert (found["over"], found["n_new"]) == ("items", 40)
    means = {row["arm"]: float(row["score_best"]) for row in rows if row["seed"] == "0"}
    assert found["effect"] == pytest.approx(means["reflact"] - means["noop"])
    saved = f"{jobs['reflact']}/checkpoints"
    kept = beside("compare", f"{saved}/step_0000", f"{saved}/best", "--json").json["comparisons"][0]
    assert kept["rows"][0]["effect"] == pytest.approx(found["effect"])
    assert "+- kind-" in kept["text"]


def test_a_run_that_was_stopped_is_warned_of_and_left_out(beside: Program, studied: Path, tmp_path: Path) -> None:
    subprocess.run(["cp", "-r", str(studied / "runs"), str(tmp_path / "runs")], check=True)
    rows = list(csv.DictReader((studied / "runs/study/results.csv").read_text().splitlines()))
    job = next(row["job_id"] for row in rows if row["arm"] == "reflact")
    story = tmp_path / "runs/study/jobs" / job / "events.jsonl"
    story.write_text("".join(story.read_text().splitlines(keepends=True)[:30]))
    found = beside("compare", "study", "--runs", str(tmp_path / "runs"), "--json").json["comparisons"][0]
    assert found["rows"][0]["n_new"] == 5
    assert any(f"{job} of reflact on codebook is not at its end" in warning for warning in found["warnings"])


def test_a_table_is_compared_and_drawn_and_written(program: Program, tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", 0.2)
    done = program("compare", path, "--plot", "p.png", "--html", "p.html", "--csv", "p.csv", "--window", "last:0.5")
    assert done.code == 0, done.err
    assert done.out.startswith("b is better than a: +")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "p.html").read_text()
    assert "<svg" in page and "src=" not in page and "@import" not in page
    rows = list(csv.DictReader((tmp_path / "p.csv").read_text().splitlines()))
    assert [row["over"] for row in rows] == ["seeds", "mean", "median", "iqm", "improvement"]


def test_drawing_without_matplotlib_says_what_to_install(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = table(tmp_path / "t.csv", 0.2)
    for name in ("matplotlib", "matplotlib.figure", "matplotlib.backends.backend_agg"):
        monkeypatch.setitem(sys.modules, name, None)
    done = program("compare", path, "--plot", "p.png")
    assert (done.code, done.out) == (2, "")
    assert "pip install 'sharpen[plots]'" in done.err


def test_variance_says_how_many_runs_are_enough(program: Program, tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", 0.0)
    done = program(
        "variance", f"{path}@a", "--metric", "reward", "--threshold", "0.05", "--output", "variance.png", "--json"
    )
    assert done.code == 0, done.err
    (found,) = done.json["arms"]
    widths = [row["half_width"]["value"] for row in found["enough"]["rows"]]
    assert widths == sorted(widths, reverse=True)
    needed = found["enough"]["runs_needed"]
    assert widths[needed - 2] <= 0.05 < widths[needed - 3]
    assert (tmp_path / "variance.png").exists()
    for more, fewest in ((), 4), (("--paired",), 6):
        (found,) = program("variance", f"{path}@a", *more, "--json").json["arms"]
        assert [row["runs"] for row in found["enough"]["rows"] if row["detectable"] is None] == list(range(2, fewest))
    assert "does not shrink with n" in " ".join(program("variance", f"{path}@a").out.split())


def test_variance_of_a_study_leaves_out_the_arm_it_has_nothing_to_say_of(beside: Program) -> None:
    done = beside("variance", "study")
    assert done.code == 0, done.err
    assert done.out.startswith("reflact on codebook: 6 runs")
    assert "left out: noop on codebook: the mean of test score is 0" in " ".join(done.out.split())
    refused(beside("variance", "study@noop"), "the mean of test score is 0")


def test_power_promises_nothing_that_a_comparison_can_never_find(program: Program) -> None:
    refused(program("power", "--spread", "1", "--n", "5", "--effect", "3", "--paired"), "it takes 6 at least")
    refused(program("power", "--spread", "1", "--n", "4", "--alpha", "0.01"), "it takes 5 at least")
    assert program("power", "--spread", "0", "--effect", "1", "--alpha", "0.01", "--json").json["plans"][0]["n"] == 5
    assert min(plan["n"] for plan in program("power", "--spread", "1", "--json").json["plans"]) == 4


def test_power_turns_an_effect_into_runs_and_back(program: Program, tmp_path: Path) -> None:
    n = program("power", "--spread", "1", "--effect", "0.5", "--json").json["plans"][0]["n"]
    assert n == 64
    effect = program("power", "--spread", "1", "--n", "64", "--json").json["plans"][0]["effect"]
    assert 0.49 < effect <= 0.5
    path = table(tmp_path / "t.csv", 0.1)
    paired = program("power", "--pilot", f"{path}@a", "--pilot", f"{path}@b", "--paired", "--effect", "0.05")
    assert paired.code == 0 and "power by" in paired.out


def refused(done: Ran, *words: str) -> None:
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") <= 2 and "Traceback" not in done.err
    for word in words:
        assert word in done.err


def test_of_a_study_that_came_to_nothing_it_is_said_why(program: Program, tmp_path: Path) -> None:
    (tmp_path / "boom.py").write_text(
        "from sharpen.trainers.noop import NoOp\n\n\n"
        "class Boom(NoOp):\n    async def train(self, job):\n        raise RuntimeError('no luck today')\n"
    )
    (tmp_path / "s.yaml").write_text(STUDY)
    failing = 'trainers=[{name: "boom.py:Boom"}, noop]'
    assert program("run", "s.yaml", "-q", failing, "parallel=1", "fail_fast=true").code == 1
    refused(program("compare", "s"), "no luck today")
    refused(program("compare", "s", "--summary", "test"), "no luck today")


def test_nonsense_is_refused_in_a_line(program: Program, tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", 0.1)
    (tmp_path / "empty").mkdir()
    refused(program("compare", path, "--metric", "rewrd"), "did you mean 'reward'?")
    refused(program("compare", path, "--summary", "test"), "no final test scores")
    (tmp_path / "nan.csv").write_text("arm,seed,step,reward\na,0,0,1\nb,0,0,nan\n")
    refused(program("compare", "nan.csv"), "nan.csv:3: reward is nan")
    refused(program("compare", path, "--summary", "steps_to"), "--reach")
    refused(program("compare", path, "--summary", "steps_to", "--reach", "nan"), "--reach", "nan")
    refused(program("compare", path, "--window", "last:7"), "no window 'last:7'")
    refused(program("compare", path, "--plot", "p.gif"), ".png")
    refused(program("compare", f"{path}@c", path), "no arm 'c'")
    refused(program("compare", path, path), "given twice")
    refused(program("compare", "empty", path), "empty folder")
    refused(program("compare", "nowhere", path), "no run 'nowhere'")
    refused(program("variance", path, "--output", "v.gif"), ".svg")
    refused(program("variance", path, "--threshold", "nan"), "share of the mean")
    refused(program("power", "--effect", "0.1"), "--spread", "--pilot")
    refused(program("power", "--pilot", path), "one arm")
