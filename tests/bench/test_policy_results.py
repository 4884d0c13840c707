"""A study of policies as its files tell it: curves, normalised values, and repetitions that come to the very same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

STUDY = """
tasks: [{name: CartPole-v1, params: {val_episodes: 6, test_episodes: 4}}]
trainers: [{name: ppo, params: {total_steps: 512, eval_every: 256, eval_episodes: 4, n_steps: 64, n_envs: 2}}]
seeds: {repeat: 2, seed: 3}
benchmark: {reference: classic, scale: 100, best_metric: eval_return_median}
checkpoints: {top: 1, last: 1}
parallel: 2
"""


def scaled(score: float | None) -> Any:
    return None if score is None else pytest.approx((score - 22.2) / (475 - 22.2) * 100)


def test_repetitions_of_a_policy_are_equal_and_all_scores_are_normalised(
    tmp_path: Path, program: Any, table: Any
) -> None:
    for package in ("stable_baselines3", "gymnasium", "torch"):
        pytest.importorskip(package)
    (tmp_path / "s.yaml").write_text(STUDY)
    done = program("run", "s.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "475 is 100 (classic, uniform random policy" in done.stdout and "seed 3, repeat 1" in done.stderr
    rows = table("s")
    assert [row["repeat"] for row in rows] == ["0", "1"]
    found = [json.loads((tmp_path / f"runs/s/jobs/{row['job_id']}/results.json").read_text()) for row in rows]
    first, second = ({name: one[name] for name in ("steps", "test", "gain", "best")} for one in found)
    assert first == second, "on one processor everything about a policy follows from the seed"
    assert [step["step"] for step in first["steps"]] == [0, 256, 512] and found[0]["trainee"] == "policy"
    for step in first["steps"]:
        assert step["current_score"] == step["metrics"]["eval_return_mean"]
        assert step["normalised"]["current_score"] == scaled(step["current_score"])
    assert first["steps"][-1]["batch_score"] is not None and first["steps"][-1]["train"]
    assert float(rows[0]["score_best_normalised"]) == scaled(float(rows[0]["score_best"]))
    home = tmp_path / f"runs/s/jobs/{rows[0]['job_id']}/checkpoints"
    kept = json.loads((home / "metadata.json").read_text())
    assert kept["best"]["metric"] == "eval_return_median" and kept["benchmark"]["reference"] == "classic"
    assert len([*home.glob("step_*")]) <= 3
    said = json.loads(program("compare", "s", "s", "--metric", "val", "--summary", "auc", "--json").stdout)
    assert said
