"""Episodes whose return is no number: they never make a policy the best, and they never stop the training."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sharpen.bench.config import load
from sharpen.bench.layout import RunFolder
from sharpen.bench.runner import Session, build

gymnasium = pytest.importorskip("gymnasium")
pytest.importorskip("stable_baselines3")


class Fitful(gymnasium.Env):  # type: ignore[misc,name-defined]
    """A few steps, a reward for each; the return of some val episodes is no number, or of all, from the third look on."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,))
    action_space = gymnasium.spaces.Discrete(2)
    looks = 0

    def __init__(self, always: bool = False) -> None:
        self._always = always

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._step = 0
        Fitful.looks += seed is not None and seed % 4 == 1
        self._broken = seed is not None and seed % 4 == 1 and (self._always or Fitful.looks % 4 == 0)
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._step += 1
        return np.zeros(2, np.float32), nan if self._broken else float(action), self._step == 5, False, {}


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    gymnasium.register("Fitful-v0", Fitful)
    yield
    del gymnasium.registry["Fitful-v0"]


def train(home: Path, *, always: bool) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    Fitful.looks = 0
    params = {"preset": "none", "total_steps": 256, "eval_every": 64, "n_steps": 32, "batch_size": 32, "net_arch": [4]}
    task = {"name": "Fitful-v0", "params": {"val_episodes": 6, "test_episodes": 4, "kwargs": {"always": always}}}
    settings = {"task": task, "trainer": {"name": "ppo", "params": {**params, "eval_episodes": 3}}}
    one = Session(build(load(None, settings)), RunFolder(home))
    assert asyncio.run(one.run()) == "done"
    lines = [json.loads(line) for line in (one.job_folder / "events.jsonl").read_text().splitlines()]
    return lines, json.loads((one.job_folder / "results.json").read_text())


def test_an_evaluation_with_one_such_episode_is_told_and_can_not_be_the_best(tmp_path: Path) -> None:
    lines, results = train(tmp_path, always=False)
    evaluated = [line for line in lines if line["type"] == "policy_evaluated"]
    values = [line["metrics"]["eval_return_mean"] for line in evaluated]
    assert None in values and any(value is not None for value in values)
    assert not [line for line in evaluated if line["best"] and line["metrics"]["eval_return_mean"] is None]
    best = max(value for value in values if value is not None)
    assert results["best"]["step"] == evaluated[values.index(best)]["step"]


def test_where_no_evaluation_comes_to_a_number_the_start_stays_and_is_tested(tmp_path: Path) -> None:
    lines, results = train(tmp_path, always=True)
    assert len([line for line in lines if line["type"] == "policy_evaluated"]) == 5
    assert results["best"]["step"] == 0 and results["best"]["raw"] is None
    assert results["test"]["best"]["mean"] is not None
