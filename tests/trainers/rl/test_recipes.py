"""Settings, presets and defaults put together: what was given counts most, and what cannot be meant is refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from sharpen.core.errors import UsageError
from sharpen.trainers import registry
from sharpen.trainers.rl import presets
from sharpen.trainers.rl.loop import PolicyTrainer
from sharpen.trainers.rl.recipe import Recipe, landings, resolve
from sharpen.trainers.rl.schedules import schedule

ALGORITHMS = ("ppo", "a2c", "dqn", "sac", "td3")
CLASSIC = {"CartPole-v1", "Acrobot-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1"}


def trainer(name: str) -> type[PolicyTrainer]:
    kind = registry.get(name)
    assert issubclass(kind, PolicyTrainer)
    return kind


def recipe(algorithm: str, environment: str, **params: Any) -> Recipe:
    kind = trainer(algorithm)
    return resolve(kind.algorithm, kind.Params(**params), environment)


def test_what_was_given_comes_before_the_preset_and_the_preset_before_defaults() -> None:
    published = recipe("ppo", "CartPole-v1")
    assert (published.preset, published.total_steps, published.n_envs, published.round) == (
        "CartPole-v1",
        100_000,
        8,
        256,
    )
    assert published.settings["learning_rate"] == "lin_0.001" and "vf_coef" not in published.settings
    mine = recipe("ppo", "CartPole-v1", n_envs=2, learning_rate="3e-4", total_steps=5000)
    assert (mine.n_envs, mine.total_steps, mine.settings["learning_rate"]) == (2, 5000, 3e-4)
    assert mine.settings["n_epochs"] == 20
    bare = recipe("ppo", "CartPole-v1", preset="none")
    assert (bare.preset, bare.n_envs, bare.total_steps, dict(bare.settings)) == ("", 1, 100_000, {})


def test_an_environment_without_a_preset_gets_the_defaults_and_can_borrow_one() -> None:
    assert recipe("dqn", "Taxi-v4").preset == ""
    assert recipe("dqn", "Taxi-v4", preset="CartPole-v1").network == {"net_arch": [256, 256]}
    assert recipe("a2c", "ALE/Pong-v5").tf_rms_prop and recipe("dqn", "PongNoFrameskip-v4").preset == "atari"


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_preset_is_made_of_settings_the_trainer_has_and_accepts(algorithm: str) -> None:
    kind = trainer(algorithm)
    for name in presets.names(algorithm):
        _, values = presets.find(algorithm, name, name)
        kind.Params(**values)
    continuous = {"MountainCarContinuous-v0", "Pendulum-v1"}
    expected = CLASSIC - continuous if algorithm == "dqn" else continuous if algorithm in ("sac", "td3") else CLASSIC
    assert expected <= set(presets.names(algorithm))
    assert (presets.ATARI in presets.names(algorithm)) == (algorithm in ("ppo", "a2c", "dqn"))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_settings_and_rounds_are_those_of_stable_baselines3(algorithm: str) -> None:
    pytest.importorskip("stable_baselines3")
    from sharpen.trainers.rl import building
    from sharpen.trainers.rl.params import OWN

    kind, known = trainer(algorithm), building.defaults(algorithm)
    may_be_none = {"clip_range_vf", "target_kl"}
    assert set(kind.Params.model_fields) - set(OWN) <= set(known) | may_be_none
    assert known[kind.algorithm.between_updates] == kind.algorithm.steps


@pytest.mark.parametrize(
    ("total", "every", "size", "marks"),
    [
        (100, 30, 1, (30, 60, 90, 100)),
        (100, 30, 32, (32, 64, 96, 128)),
        (1000, 100, 512, (512, 1024)),
        (10, 100, 4, (12,)),
        (60, 30, 30, (30, 60)),
    ],
)
def test_marks_are_the_ends_of_updates_each_once(total: int, every: int, size: int, marks: tuple[int, ...]) -> None:
    assert landings(total, every, size) == marks


def test_a_linear_schedule_falls_to_zero_and_a_number_stays() -> None:
    falling = schedule("lin_0.2")
    assert callable(falling) and (falling(1.0), falling(0.5), falling(0.0)) == (0.2, 0.1, 0.0)
    assert schedule(0.2) == 0.2


@pytest.mark.parametrize(
    ("algorithm", "params"),
    [
        ("ppo", {"learning_rate": "cosine_0.1"}),
        ("ppo", {"learning_rate": "lin_x"}),
        ("ppo", {"learning_rate": -1}),
        ("ppo", {"clip_range": "nan"}),
        ("sac", {"ent_coef": "automatic"}),
        ("dqn", {"noise_type": "normal"}),
        ("ppo", {"net_arch": [0]}),
        ("ppo", {"net_arch": {"pi": [8], "qf": [8]}}),
        ("dqn", {"net_arch": {"pi": [8]}}),
        ("dqn", {"net_arch": {}}),
        ("ppo", {"net_arch": 64}),
        ("dqn", {"device": "tpu"}),
        ("ppo", {"activation": "relu6"}),
        ("ppo", {"n_epoch": 3}),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(algorithm: str, params: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as said:
        trainer(algorithm).Params(**params)
    assert said.value.error_count() == 1, "one mistake, one message"


def test_a_deviation_without_noise_is_refused() -> None:
    with pytest.raises(UsageError, match="noise_std needs noise_type"):
        recipe("td3", "Pendulum-v1", preset="none", noise_std=0.2)
    assert recipe("td3", "Pendulum-v1", noise_std=0.2).noise == ("normal", 0.2)
