"""Environments are made as their settings say, in shapes policies take; what can't be is refused with a reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

import gymnasium
from small_environments import environment

from sharpen.core.candidate import Candidate
from sharpen.core.errors import UsageError
from sharpen.tasks import gym, registry
from sharpen.tasks.gym import about, making, shapes


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("CartPole-v1", True),
        ("ALE/Pong-v5", True),
        ("MiniGrid-Empty-8x8-v0", True),
        ("package.module:Own-v0", True),
        ("CartPole", False),
        ("reasoning-gym/sudoku", False),
        ("./data-v2", False),
        ("data-v2.jsonl", False),
        ("tasks.py:Class", False),
    ],
)
def test_a_version_at_its_end_makes_a_name_an_environments(name: str, is_one: bool) -> None:
    assert gym.is_environment(name) is is_one


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        ("CartPol-v1", {}, "did you mean 'CartPole-v1'"),
        ("CartPole-v9", {}, "v0"),
        ("Taxi-v3", {}, "Taxi-v4"),
        ("nowhere_at_all:Own-v0", {}, "can't be imported"),
        ("CartPole-v1", {"max_step": 3}, "did you mean 'max_steps'"),
        ("CartPole-v1", {"max_steps": 0}, "max_steps must be a whole number"),
        ("CartPole-v1", {"val_episodes": True}, "val_episodes must be a whole number"),
        ("CartPole-v1", {"kwargs": [1]}, "kwargs must be a mapping"),
        ("CartPole-v1", {"kwargs": {"render_mode": "human"}}, "render_mode"),
        ("CartPole-v1", {"atari": {"stack": 2}}, "no Atari environment"),
    ],
)
def test_what_cannot_be_made_is_refused_with_a_reason(name: str, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        registry.get(name, **settings)


def test_an_id_without_its_version_comes_back_with_the_newest() -> None:
    with pytest.raises(UsageError, match=r"unknown task 'cartpole' \(did you mean 'CartPole-v1'\?\)"):
        registry.get("cartpole")


def test_an_unknown_argument_of_the_environment_is_named() -> None:
    task = environment("CartPole-v1", kwargs={"gravity": 3})
    with pytest.raises(UsageError, match=r"CartPole-v1.*gravity"):
        task.requirements.missing()


OWN = """
import gymnasium
from gymnasium.envs.classic_control import CartPoleEnv
gymnasium.register("Own-v0", entry_point=CartPoleEnv, max_episode_steps=5)
"""


def test_a_module_is_imported_for_its_environments_and_its_source_is_part_of_their_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_environments.py").write_text(OWN)
    task = environment("own_environments:Own-v0")
    assert task.name == "own_environments:Own-v0" and task.making.limit == 5
    assert not task.requirements.missing()
    (tmp_path / "own_environments.py").write_text(OWN + "# changed")
    assert environment("own_environments:Own-v0").version != task.version
    with pytest.raises(UsageError, match="Other"):
        registry.get("own_environments:Other-v0")


def test_settings_reach_the_environment_and_its_version() -> None:
    plain, short = environment("Pendulum-v1"), environment("Pendulum-v1", max_steps=7, kwargs={"g": 2.0})
    env = making.make(short.making, training=True)
    env.reset(seed=1)
    ends = [env.step(env.action_space.sample())[3] for _ in range(7)]
    assert ends == [False] * 6 + [True]
    assert env.unwrapped.g == 2.0
    assert short.version != plain.version
    assert short.making.settings() == {"kwargs": {"g": 2.0}, "max_steps": 7}
    assert registry.get("Pendulum-v1", **short.making.settings()).version == short.version


def test_a_key_among_the_arguments_of_an_environment_goes_with_no_policy() -> None:
    made = making.from_settings("Pendulum-v1", kwargs={"api_key": "open-sesame-123", "g": 2.0})
    assert made.kwargs["api_key"] == "open-sesame-123"
    architecture = about.Architecture("Pendulum-v1", "ppo", "MlpPolicy", settings=made.settings())
    kept = Candidate({about.DESCRIPTION: about.About(architecture, 1, 1, "0").text()})
    assert "open-sesame" not in kept[about.DESCRIPTION] and '"g":2.0' in kept[about.DESCRIPTION]
    with pytest.raises(UsageError, match="Pendulum-v1 was made with a secret among its kwargs"):
        about.settings_of(kept)


def test_an_environment_without_an_end_is_given_one() -> None:
    assert environment("CliffWalking-v1").making.limit == making.LONGEST


def test_splits_hold_episodes_that_depend_on_the_split_seed_alone_and_a_limit_cuts_them_short() -> None:
    whole = environment("CartPole-v1").splits()
    assert (len(whole.train), len(whole.val), len(whole.test)) == (0, 40, 50)
    few = environment("CartPole-v1", limit=3, val_episodes=5).splits()
    assert few.val == whole.val[:3] and few.test == whole.test[:3]
    other = environment("CartPole-v1", split_seed=1).splits()
    assert not {item.digest for item in other.val} & {item.digest for item in whole.val}
    extra = environment("CartPole-v1").episodes(60)
    known = {item.inputs["seed"] for item in (*whole.val, *whole.test)}
    assert len({item.inputs["seed"] for item in extra} - known) == 60


class Shown(gymnasium.Env[Any, Any]):
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, space: Any) -> None:
        self.observation_space = space

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self.observation_space.sample(), {}


IMAGE = gymnasium.spaces.Box(0, 255, (40, 50, 3), np.uint8)


@pytest.mark.parametrize(
    ("space", "shape"),
    [
        (IMAGE, (3, 40, 50)),
        (
            gymnasium.spaces.Dict(eye=IMAGE, speed=gymnasium.spaces.Box(0.0, 1.0, (2,))),
            {"eye": (3, 40, 50), "speed": (2,)},
        ),
        (gymnasium.spaces.Tuple((gymnasium.spaces.Discrete(4), gymnasium.spaces.Discrete(3))), (7,)),
        (gymnasium.spaces.Box(0, 255, (4, 84, 84), np.uint8), (4, 84, 84)),
        (gymnasium.spaces.Discrete(5), ()),
    ],
)
def test_observations_come_in_shapes_that_policies_take(space: Any, shape: Any) -> None:
    env = shapes.suited(Shown(space), "Shown-v0")
    seen, _ = env.reset(seed=0)
    assert env.observation_space.contains(seen)
    assert ({key: one.shape for key, one in seen.items()} if isinstance(shape, dict) else np.shape(seen)) == shape


def test_actions_no_policy_takes_are_refused() -> None:
    env = Shown(IMAGE)
    env.action_space = gymnasium.spaces.Discrete(3, start=1)
    with pytest.raises(UsageError, match="numbered from 0"):
        shapes.suited(env, "Shown-v0")
