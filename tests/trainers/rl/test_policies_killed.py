"""A policy's training that is killed anywhere, in a save or in a stretch, and resumed, ends with the same bytes."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import time
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("stable_baselines3")

from sharpen.bench.config import load
from sharpen.bench.layout import RunFolder
from sharpen.bench.runner import Session, build
from sharpen.testing.processes import end_of, in_child, start_child
from sharpen.testing.trainers import Reaper, left_behind

SHORT = {
    "ppo": {"n_envs": 2, "n_steps": 64, "batch_size": 64, "n_epochs": 2, "net_arch": [8], "normalize": True},
    "dqn": {"learning_starts": 64, "buffer_size": 300, "train_freq": 4, "net_arch": [8], "batch_size": 16},
}


def session(home: Path, trainer: str) -> Session:
    """One session of a short training in `home`, which a run folder stands in for."""
    params = {"preset": "none", "total_steps": 512, "eval_every": 128, "eval_episodes": 3, **SHORT[trainer]}
    task = {"name": "CartPole-v1", "params": {"val_episodes": 6, "test_episodes": 4, "max_steps": 60}}
    settings = {"task": task, "trainer": {"name": trainer, "params": params}, "checkpoints": {"top": 1, "last": 1}}
    return Session(build(load(None, settings)), RunFolder(home))


def carry_on(home: Path, trainer: str) -> dict[str, bytes]:
    one = session(home, trainer)
    assert asyncio.run(one.run()) == "done"
    return left_behind(one.job_folder)


@pytest.mark.parametrize("trainer", SHORT)
def test_killed_at_any_write_and_resumed_it_ends_with_the_same_bytes(tmp_path: Path, trainer: str) -> None:
    whole = carry_on(tmp_path / "whole", trainer)
    count = tmp_path / "count"

    def counted() -> None:
        reaper = Reaper()
        carry_on(tmp_path / "counted", trainer)
        count.write_text(str(reaper.writes))

    def killed(at: int, home: Path) -> None:
        Reaper(at)
        carry_on(home, trainer)

    assert in_child(counted) == 0
    writes, kills = int(count.read_text()), 8
    for number in range(kills):
        at, home = writes * number // kills + number % 4, tmp_path / str(number)
        assert in_child(partial(killed, at, home)) == -signal.SIGKILL
        assert carry_on(home, trainer) == whole, f"killed at write {at} of {writes}"


def test_killed_again_and_again_in_the_middle_of_training_nothing_of_its_history_is_lost(tmp_path: Path) -> None:
    began = time.monotonic()
    whole = carry_on(tmp_path / "whole", "ppo")
    lasts, rng, kills = time.monotonic() - began, random.Random(7), 0
    for _ in range(40):
        child = start_child(partial(carry_on, tmp_path / "again", "ppo"))
        time.sleep(lasts * rng.uniform(0.05, 0.4))
        os.kill(child, signal.SIGKILL)
        kills += end_of(child) == -signal.SIGKILL
        index = [*(tmp_path / "again").glob("jobs/*/checkpoints/metadata.json")]
        if index:  # whole at any time, and it names a checkpoint that is there
            best = json.loads(index[0].read_text())["best"]
            assert (index[0].parent / best["path"] / "policy.pt").exists()
        if kills == 4:
            break
    assert carry_on(tmp_path / "again", "ppo") == whole


def test_checkpoints_on_disk_are_bounded(tmp_path: Path) -> None:
    one = session(tmp_path, "dqn")
    asyncio.run(one.run())
    home = one.job_folder / "checkpoints"
    steps = sorted(path.name for path in home.glob("step_*"))
    assert len(steps) <= 4, "the start, the best one, the best and the last"
    assert [path.parent.name for path in home.rglob("replay.pt")] == [steps[-1]]
