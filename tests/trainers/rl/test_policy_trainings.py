"""Whole trainings of policies as `sharpen train` carries them out: retold, stopped, out of time, out of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("stable_baselines3")

from sharpen.core.errors import UsageError
from sharpen.core.task import Task
from sharpen.engine.budget import Caps
from sharpen.engine.gateway import Gateway, Stopped
from sharpen.models.base import Model
from sharpen.tasks.gym import about, making
from sharpen.tasks.gym.task import Environment
from sharpen.tasks.splitting import Deal
from sharpen.testing.trainers import TrainerContract, left_behind
from sharpen.trainers import registry
from sharpen.trainers.base import Ground, Trainer
from sharpen.trainers.rl import learner

SETTINGS: dict[str, dict[str, Any]] = {
    "ppo": {"n_steps": 32, "total_steps": 96, "eval_every": 32, "normalize": True},
    "dqn": {"learning_starts": 20, "buffer_size": 60, "batch_size": 8, "total_steps": 96, "eval_every": 32},
}


class Small(TrainerContract):
    """A small training of a policy."""

    def __init__(self, name: str = "ppo", **more: Any) -> None:
        self.name, self.settings = name, {"preset": "none", "net_arch": [8], **SETTINGS[name], **more}

    def make(self) -> Trainer:
        kind = registry.get(self.name)
        return kind(kind.Params(**self.settings))

    def task(self) -> Task:
        return Environment(making.from_settings("CartPole-v1", max_steps=30), Deal(), val=6, test=3)

    def models(self, noise: float) -> Mapping[str, Model]:
        return {}


def test_a_finished_training_is_retold_without_learning_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Small().train(tmp_path)
    told = (first.folder / "events.jsonl").read_bytes()

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("learned again")

    monkeypatch.setattr(learner.Learner, "__init__", never)
    again = Small().train(tmp_path)
    assert again.status == "done" and (again.folder / "events.jsonl").read_bytes() == told


def test_the_story_has_every_mark_and_the_best_is_confirmed_on_episodes_that_did_not_select(tmp_path: Path) -> None:
    events = Small("dqn", eval_episodes=4).train(tmp_path).events
    advanced = [line for line in events if line["type"] == "advanced"]
    assert [line["step"] for line in advanced] == [0, 32, 64, 96]
    assert advanced[0]["metrics"]["hyperparameters"]["exploration_final_eps"] == 0.05
    assert [line["step"] for line in events if line["type"] == "policy_evaluated"] == [0, 32, 64, 96]
    played = {line["purpose"]: line["groups"][0]["items"] for line in events if line["type"] == "measured"}
    assert played["select"] == [f"val-{n:04d}" for n in range(4)] and played["confirm"] == ["val-0004", "val-0005"]
    tested = {line["which"]: line["candidate"] for line in events if line["type"] == "tested"}
    assert tested["initial"] == advanced[0]["candidate"] and tested["final"] == advanced[-1]["candidate"]


@pytest.mark.parametrize(
    ("small", "after"),
    [
        (Small("ppo"), 100),
        (Small("dqn", learning_starts=70), 75),  # at a step whose weights are still those of the start
    ],
    ids=["ppo", "dqn"],
)
def test_a_training_that_is_stopped_goes_on_where_it_was(
    small: Small, after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = left_behind(small.train(tmp_path / "whole").folder)
    checks = 0

    def stopping(_: Gateway) -> bool:
        nonlocal checks
        checks += 1
        return checks > after

    with monkeypatch.context() as patched:
        patched.setattr(Gateway, "stopping", property(stopping, lambda *_: None), raising=False)
        with pytest.raises(Stopped):
            small.train(tmp_path / "stopped")
    assert after < checks < after + 5
    assert left_behind(small.train(tmp_path / "stopped").folder) == whole


def test_a_training_out_of_time_ends_within_a_stretch_and_is_still_tested(tmp_path: Path) -> None:
    ran = Small(total_steps=10_000_000, eval_every=5_000_000).train(tmp_path, caps=Caps(seconds=2.5))
    types = [line["type"] for line in ran.events]
    assert ran.status == "budget" and types.count("advanced") == 1 and "budget_ended" in types
    assert {line["which"] for line in ran.events if line["type"] == "tested"} == {"initial", "best", "final"}
    assert not list(ran.folder.glob(".stretch*"))
    again = Small(total_steps=10_000_000, eval_every=5_000_000).train(tmp_path, caps=Caps(seconds=2.5))
    assert [line["type"] for line in again.events] == types


@pytest.mark.parametrize(("name", "settings"), [("ppo", {}), ("ppo", {"n_epochs": 1})])
def test_weights_that_stop_being_numbers_end_a_training_that_is_still_tested(
    name: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    wild = Small(name, learning_rate=1e20, max_grad_norm=1e20, **settings)
    ran = wild.train(tmp_path)
    (ended,) = [line for line in ran.events if line["type"] == "training_diverged"]
    assert ran.status == "done" and "stopped being numbers" in ended["message"]
    (final,) = [line for line in ran.events if line.get("path") == "checkpoints/final"]
    assert final["step"] == ended["step"] == [line for line in ran.events if line["type"] == "advanced"][-1]["step"]
    assert wild.train(tmp_path).events == ran.events


def test_a_loss_that_is_no_number_is_null_and_training_goes_on(tmp_path: Path) -> None:
    ran = Small("dqn", learning_rate=1e20, max_grad_norm=1e20).train(tmp_path)
    advanced = [line for line in ran.events if line["type"] == "advanced"]
    assert ran.status == "done" and [line["step"] for line in advanced] == [0, 32, 64, 96]
    assert advanced[-1]["metrics"]["loss"] is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"eval_episodes": 7}, "eval_episodes is 7, and val has 6"),
        ({"preset": "CartPole-v9"}, "unknown preset 'CartPole-v9' for ppo .did you mean 'CartPole-v1'"),
    ],
)
def test_settings_that_do_not_fit_are_refused_before_anything_is_played(settings: dict[str, Any], message: str) -> None:
    small = Small(**settings)
    with pytest.raises(UsageError, match=message):
        small.make().check(small.task().splits(), small.task().seed(), ())


def test_effort_is_told_where_the_steps_are_given() -> None:
    ground = Ground(0, 3, 1, repeatable=False, asks=False)
    effort = Small().make().effort(ground)
    assert effort is not None and (effort.steps, effort.rollouts) == (3, 12)
    assert Small(total_steps=None).make().effort(ground) is None


def test_a_trained_policy_is_no_start() -> None:
    small = Small()
    said = about.About(about.Architecture("CartPole-v1", "ppo", "MlpPolicy"), 1, 1, "0" * 64)
    from sharpen.core.candidate import Candidate

    with pytest.raises(UsageError, match="begins with fresh weights"):
        small.make().check(small.task().splits(), Candidate({about.DESCRIPTION: said.text()}), ())
