"""What scores are measured against: what a configuration may say, what it comes to, and where normalised values stand."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sharpen.bench import benchmark, tensorboard
from sharpen.bench.artifacts import results
from sharpen.bench.config import BenchmarkConfig, CheckpointsConfig, load
from sharpen.bench.runner import build
from sharpen.bench.tables import leaderboard
from sharpen.core.errors import UsageError
from sharpen.core.task import Task
from sharpen.engine.replay import read_events
from sharpen.engine.shelf import Retention
from sharpen.stats.normalise import Reference
from sharpen.tasks.codebook import Codebook

Program = Callable[..., subprocess.CompletedProcess[str]]

TRAIN = (
    "train", "codebook", "--model", "scripted/rules?noise=0.1", "--optimizer", "scripted/rules", "--limit", "16",
    "--steps", "2", "-q",
)  # fmt: skip
SCORES = ("benchmark.random_score=0.1", "benchmark.human_score=0.6", "benchmark.scale=100", "benchmark.protocol=mine")


class Environment(Task):
    """What a benchmark needs to know of a task that trains policies."""

    trainee = "policy"
    score_range = (float("-inf"), float("inf"))

    def __init__(self, name: str) -> None:
        self.name = name


# Random, human and DQN scores and the last column of Extended Data Table 2 in Mnih et al., "Human-level control through deep
# reinforcement learning", Nature 518 (2015): 100 x (DQN - random) / (human - random).
@pytest.mark.parametrize(
    "name, dqn, published",
    [("ALE/Breakout-v5", 401.2, 1327), ("PongNoFrameskip-v4", 18.9, 132), ("boxing", 71.8, 1707)],
)
def test_published_scores_come_to_the_published_percentage(name: str, dqn: float, published: int) -> None:
    block = BenchmarkConfig(reference="atari57", protocol="no-op starts 5 min", scale=100.0)
    found = benchmark.resolved(block, Environment(name), "hard")
    assert found is not None and found.reference == "atari57" and found.protocol == "no-op starts 5 min"
    assert round(found.normalised(dqn) or 0.0) == published
    scale = benchmark.scale_of(found.row())
    assert scale is not None and round(scale.of(dqn)) == published


def test_a_table_is_asked_by_its_first_protocol_where_none_is_named() -> None:
    found = benchmark.resolved(BenchmarkConfig(reference="atari57"), Environment("ALE/Pong-v5"), "hard")
    assert found is not None
    assert (found.random_score, found.human_score, found.protocol) == (-20.7, 14.6, "no-op starts 30 min")
    assert (found.best_metric, found.best_metric_mode, found.scale) == ("eval_return_mean", "max", 1.0)


@pytest.mark.parametrize(
    "block, said",
    [
        ({"reference": "atari"}, "no table of references 'atari'"),
        ({"reference": "atari57", "protocol": "mine"}, "no scores by the protocol 'mine'"),
        ({"reference": "classic"}, "the table classic has no reference for 'ALE/Pong-v5'"),
        ({"random_score": 3.0, "human_score": 1.0}, "below the random score 3, but best_metric_mode is max"),
        ({"random_score": 1.0, "human_score": 3.0, "best_metric_mode": "min"}, "above the random score"),
        ({"best_metric": "eval_retrun_mean"}, "did you mean 'eval_return_mean'"),
    ],
)
def test_what_does_not_fit_an_environment_is_said(block: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match="benchmark") as error:
        benchmark.resolved(BenchmarkConfig(**block), Environment("ALE/Pong-v5"), "hard")
    assert said in str(error.value)


def test_where_a_text_is_trained_the_gate_decides() -> None:
    for block in ({"best_metric": "soft"}, {"best_metric_mode": "min"}, {"best_metric": "eval_return_mean"}):
        with pytest.raises(UsageError, match="a text is trained"):
            benchmark.resolved(BenchmarkConfig(**block), Codebook(), "hard")
    found = benchmark.resolved(BenchmarkConfig(best_metric="soft"), Codebook(), "soft")
    assert found is not None and found.best_metric == "soft" and found.normalised(0.5) is None


@pytest.mark.parametrize(
    "given, said",
    [
        (["random_score=1"], "belong together"),
        (["random_score=1", "human_score=1"], "both 1: a score can't be placed between them"),
        (["random_score=.nan", "human_score=1"], "finite"),
        (["random_score=0", "human_score=.inf"], "finite"),
        (["random_score=0", "human_score=1", "reference=classic"], "not both"),
        (["scale=0"], "greater than 0"),
        (["humen_score=1"], "did you mean 'human_score'"),
    ],
)
def test_nonsense_is_refused_before_anything_is_built(given: list[str], said: str) -> None:
    with pytest.raises(UsageError) as error:
        load(None, {"task": "codebook"}, [f"benchmark.{one}" for one in given])
    assert said in str(error.value)


def test_checkpoints_of_policies_are_thinned_out_and_those_of_texts_are_not() -> None:
    policy, text = Environment("CartPole-v1"), Codebook()
    assert benchmark.retention(CheckpointsConfig(), policy) == Retention(3, 2)
    assert benchmark.retention(CheckpointsConfig(top=1, last=5), policy) == Retention(1, 5)
    assert benchmark.retention(CheckpointsConfig(top=None), policy) is None
    assert benchmark.retention(CheckpointsConfig(), text) is None
    with pytest.raises(UsageError, match="all checkpoints of a text are kept"):
        benchmark.retention(CheckpointsConfig(top=1), text)


def test_a_benchmark_is_part_of_what_a_job_is_and_none_leaves_no_trace() -> None:
    def spec(*overrides: str) -> Any:
        settings = {"task": {"name": "codebook", "limit": 12}, "models": {"target": "scripted/rules"}}
        return build(load(None, settings, [*overrides])).setup.spec

    plain, block, kept = spec(), spec(*SCORES), spec("rollout_timeout=5")
    assert plain.benchmark is None and plain.job_id == kept.job_id != block.job_id
    assert spec("benchmark.scale=1").job_id == plain.job_id
    assert block.benchmark["random_score"] == 0.1 and block.benchmark["best_metric"] == "hard"


def test_low_and_high_change_places_where_less_is_better() -> None:
    scale = Reference(100.0, 0.0)
    row = benchmark.with_normalised({"mean": 50.0, "low": 40.0, "high": None}, ("mean", "low", "high"), scale)
    assert row["normalised"] == {"mean": 0.5, "low": 0.6, "high": None}
    row = benchmark.with_normalised({"mean": -50.0, "low": -60.0, "high": -40.0}, ("mean", "low", "high"), scale,
                                    differences=True)  # fmt: skip
    assert row["normalised"] == pytest.approx({"mean": 0.5, "low": 0.4, "high": 0.6})
    assert [benchmark.verdict(*ends, scale) for ends in ((-2, -1), (1, 2), (-1, 1))] == [1, -1, 0]
    assert [benchmark.verdict(*ends, None) for ends in ((-2, -1), (1, 2), (-1, 1))] == [-1, 1, 0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, program_in: Any) -> Path:
    """A folder in which a text was trained against a benchmark."""
    made = tmp_path_factory.mktemp("benchmark")
    done = program_in(made)(*TRAIN, *SCORES)
    assert done.returncode == 0, done.stderr
    assert "normalised" in done.stdout
    return made


def scaled(score: float | None) -> Any:
    return None if score is None else pytest.approx((score - 0.1) / 0.5 * 100)


def test_every_score_in_the_results_has_its_normalised_value(folder: Path) -> None:
    (job,) = folder.glob("runs/*/jobs/*")
    found = json.loads((job / "results.json").read_text())
    assert found["benchmark"]["protocol"] == "mine" and found["steps"]
    for row in found["steps"]:
        assert row["normalised"] == {name: scaled(row[name]) for name in ("batch_score", "current_score", "best_score")}
    for row in found["test"].values():
        for one in (row, *row["by_type"].values()):
            assert one["normalised"] == {name: scaled(one[name]) for name in ("mean", "low", "high")}
    for row in found["gain"].values():
        assert row["normalised"] == {name: pytest.approx(row[name] * 200) for name in ("mean", "low", "high")}
    best = found["best"]
    raw = {"raw": best["raw"], **{name: best["confirmed"][name] for name in ("value", "low", "high", "initial")}}
    assert best["normalised"] == {name: scaled(value) for name, value in raw.items()}


def test_the_story_tells_it_too(folder: Path) -> None:
    (path,) = folder.glob("runs/*/jobs/*/events.jsonl")
    lines = read_events(path)
    assert [line["type"] for line in lines[:2]] == ["job_started", "benchmark_stated"]
    told = {line["what"]: line for line in lines if line["type"] == "normalised"}
    assert set(told) == {"confirmed", "test/initial", "test/best", "test/final", "gain/best", "gain/final"}
    tested = next(line for line in lines if line["type"] == "tested" and line["which"] == "best")
    assert [told["test/best"][name] for name in ("value", "low", "high")] == [scaled(x) for x in tested["score"][:3]]


def test_tables_curves_checkpoints_and_the_terminal_have_it(folder: Path, program_in: Any) -> None:
    program = program_in(folder)
    (run,), (job,) = folder.glob("runs/[!e]*"), folder.glob("runs/*/jobs/*")
    found = json.loads((job / "results.json").read_text())
    assert program("report", run.name, "--rebuild").returncode == 0
    text = (run / "results.csv").read_text()
    assert "score_best_normalised" in text and "gain_normalised" in text
    for name in ("best", "final"):
        about = json.loads((job / "checkpoints" / name / "metadata.json").read_text())
        assert about["benchmark"]["human_score"] == 0.6
    scalars = {}
    for record in tensorboard.records(read_events(job / "events.jsonl"), {}):
        scalars |= record.scalars
    assert scalars["normalised/test/best"] == scaled(scalars["test/best"])
    assert scalars["normalised/val/current"] == scaled(scalars["val/current"])
    assert scalars["normalised/test/gain_best"] == pytest.approx(scalars["test/gain_best"] * 200)
    shown = program("status", run.name).stdout
    assert f"{found['test']['best']['normalised']['mean']:.3f}" in shown
    assert "Normalised: 0.1 is 0 and 0.6 is 100 (mine)." in shown


def test_a_checkpoint_that_has_left_its_run_still_knows_its_benchmark(folder: Path, program_in: Any) -> None:
    (job,) = folder.glob("runs/*/jobs/*")
    (job / "checkpoints" / "best").rename(folder / "taken")
    asked = ("eval", "taken", "--task", "codebook", "--model", "scripted/rules?noise=0.1", "--limit", "16", "--json")
    row = json.loads(program_in(folder)(*asked).stdout)["scores"]["taken"]
    (folder / "taken").rename(job / "checkpoints" / "best")
    assert row["normalised"]["mean"] == scaled(row["mean"])


def test_a_study_says_which_tasks_lack_scores(program: Program, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(
        "tasks: [{name: codebook, limit: 12}, number-words]\ntrainers: [noop]\nmodels: {target: scripted/rules}\n"
    )
    for block, said in (
        ("{reference: atari57}", ["no reference for 'codebook'", "no reference for 'number-words'"]),
        ("{random_score: 0, human_score: 1}", ["those of one task, and there are 2: codebook, number-words"]),
        ("{tasks: {codebook: {random_score: 0, human_score: 1}}}", ["no scores for number-words"]),
        ("{tasks: {codebok: {random_score: 0, human_score: 1}}}", ["no task of this study (did you mean 'codebook'?)"]),
        ("{tasks: {codebook: {random_score: 0, human_score: 0}}}", ["can't be placed between them"]),
    ):
        done = program("validate", "s.yaml", f"benchmark={block}")
        assert done.returncode == 2 and all(one in done.stdout + done.stderr for one in said), done.stdout + done.stderr


def test_a_study_normalises_each_task_by_its_own_scores(program: Program, tmp_path: Path, table: Any) -> None:
    (tmp_path / "s.yaml").write_text(
        "tasks: [{name: codebook, limit: 12}, {name: codebook, limit: 10}]\ntrainers: [noop]\nseeds: 2\n"
        "models: {target: 'scripted/rules?noise=0.3'}\nbenchmark:\n  tasks:\n"
        "    'codebook[limit=12]': {random_score: -1, human_score: 1}\n    codebook: {random_score: -1, human_score: 3}\n"
    )
    assert program("run", "s.yaml", "-q").returncode == 0
    for row in table("s"):
        away = {"codebook[limit=12]": 2, "codebook[limit=10]": 4}[row["task_id"]]
        assert float(row["score_best_normalised"]) == pytest.approx((float(row["score_best"]) + 1) / away)
    for row in table("s", "leaderboard.csv"):
        away = float(row["human_score"]) + 1
        assert float(row["score_low_normalised"]) == pytest.approx((float(row["score_low"]) + 1) / away)


def advanced(step: int, value: float | None) -> dict[str, Any]:
    metrics = {"train_return_mean": value, "loss": 0.5, "note": "text"}
    return {"type": "advanced", "step": step, "candidate": f"c{step}", "parts": {}, "metrics": metrics, "clock": {}}


def evaluated(step: int, mean: float | None, best: bool) -> dict[str, Any]:
    metrics = {"eval_return_mean": mean, "eval_return_std": 1.0, "eval_length_mean": 9.0}
    return {
        "type": "policy_evaluated", "step": step, "candidate": f"c{step}", "episodes": 5, "metrics": metrics,
        "normalised": None, "best": best, "clock": {"elapsed": float(step)},
    }  # fmt: skip


def test_the_curve_of_a_policy_has_a_point_for_every_evaluation() -> None:
    stated = {
        "type": "benchmark_stated", "random_score": 0.0, "human_score": 10.0, "reference": "", "protocol": "",
        "scale": 1.0, "best_metric": "eval_return_mean", "best_metric_mode": "max", "task_protocol": "", "clock": {},
    }  # fmt: skip
    lines = [stated, advanced(0, None), evaluated(0, 2.0, True), advanced(8, 3.0), evaluated(8, 5.0, True)]
    lines += [advanced(16, 4.0), evaluated(16, None, False)]
    lines = [{"n": n, **line} for n, line in enumerate(lines)]
    found = results(lines)
    rows = [(row["step"], row["batch_score"], row["current_score"], row["best_score"]) for row in found["steps"]]
    assert rows == [(0, None, 2.0, 2.0), (8, 3.0, 5.0, 5.0), (16, 4.0, None, 5.0)]
    assert [row["normalised"]["current_score"] for row in found["steps"]] == [0.2, 0.5, None]
    assert found["trainee"] == "policy" and found["clock"]["steps"] == [0.0, 8.0, 16.0]
    assert found["best"]["candidate"] == "c8" and found["best"]["step"] == 8 and found["best"]["raw"] == 5.0
    drawn = [(record.step, dict(record.scalars)) for record in tensorboard.records(lines, {})]
    assert (8, {"train/return_mean": 3.0, "train/loss": 0.5}) not in drawn[:2]
    at_8 = {name: value for step, scalars in drawn if step == 8 for name, value in scalars.items()}
    assert at_8["eval/return_mean"] == 5.0 and at_8["normalised/eval/return_mean"] == 0.5
    assert at_8["train/loss"] == 0.5 and at_8["eval/length_mean"] == 9.0 and "train/note" not in at_8


def test_the_leaderboard_of_returns_is_not_cut_to_0_and_1() -> None:
    def row(arm: str, score: float) -> dict[str, Any]:
        against = {"random_score": 500.0, "human_score": 0.0, "scale": 1.0, "protocol": "", "reference": ""}
        return {
            "task_id": "t", "arm": arm, "trainer_id": arm, "trainee": "policy", "status": "ok", "score_best": score,
            "gain": 1.0, "calls": 0, "prompt_tokens": 0, "completion_tokens": 0, "money": 0.0, "time_seconds": 1.0,
            "benchmark": against,
        }  # fmt: skip

    board = leaderboard([row("slow", 200.0), row("slow", 220.0), row("fast", 100.0), row("fast", 120.0)])
    assert [one["arm"] for one in board] == ["fast", "slow"], "less is better where the human score is the lower one"
    low, high = board[0]["score_low"], board[0]["score_high"]
    assert isinstance(low, float) and isinstance(high, float) and low < 110.0 < high
    assert board[0]["score_low_normalised"] == pytest.approx((500.0 - high) / 500.0)
