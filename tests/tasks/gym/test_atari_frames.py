"""Atari screens: small, exact, stacked; lives and clipped rewards in training alone."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("ale_py")
pytest.importorskip("stable_baselines3")

from small_environments import environment

from sharpen.core.errors import UsageError
from sharpen.tasks.gym import making
from sharpen.tasks.gym.atari import Shrink


@pytest.mark.parametrize(("height", "width", "size"), [(210, 160, 84), (250, 160, 84), (210, 160, 83), (50, 60, 84)])
def test_a_pixel_is_the_mean_of_the_area_it_covers(height: int, width: int, size: int) -> None:
    picture = np.random.default_rng(0).integers(0, 256, (height, width)).astype(np.uint8)
    down, across = (np.repeat(np.eye(n), size, 0).reshape(size, n, n).mean(1) for n in (height, width))
    means = down @ picture @ across.T
    assert np.abs(Shrink(height, width, size)(picture) - means).max() <= 0.5 + 1e-9


def test_training_differs_from_evaluation_in_lives_and_clipping_alone() -> None:
    made = environment("ALE/Breakout-v5").making
    whole, training = making.make(made, training=False), making.make(made, training=True)
    assert training.observation_space.shape == (4, 84, 84)
    first, again = whole.reset(seed=5)[0], training.reset(seed=5)[0]
    assert np.array_equal(first, again) and not first[:3].any()
    rng = np.random.default_rng(0)
    while True:
        action = int(rng.integers(training.action_space.n))
        seen, reward, over, *_ = whole.step(action)
        other, clipped, life_lost, _, info = training.step(action)
        assert np.array_equal(seen, other) and clipped == np.sign(reward)
        if life_lost:
            break
    assert not over
    assert info["episode"]["l"] > 10
    assert training.unwrapped.ale.lives() == 4 and training.get_wrapper_attr("going_on")
    training.reset()
    assert training.unwrapped.ale.lives() == 4, "a reset without a seed goes on with the game"
    training.reset(seed=5)
    assert training.unwrapped.ale.lives() == 5


def test_the_protocol_says_what_an_id_means() -> None:
    sticky, plain = environment("ALE/Pong-v5"), environment("PongNoFrameskip-v4", atari={"noop": 0})
    assert (
        "sticky actions 0.25, frame skip 4, up to 30 no-op" in sticky.protocol and "108,000 frames" in sticky.protocol
    )
    assert plain.protocol.startswith("no sticky actions, frame skip 4, no no-op")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"atari": {"stak": 2}}, "did you mean 'stack'"),
        ({"atari": {"stack": 0}}, "atari.stack must be a whole number of 1"),
        ({"kwargs": {"obs_type": "ram"}}, "atari: false"),
        ({"kwargs": {"frameskip": 2}}, "atari.frame_skip"),
    ],
)
def test_settings_that_contradict_are_refused(settings: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        environment("ALE/Pong-v5", **settings)


def test_without_preparation_it_is_as_the_emulator_gives_it() -> None:
    task = environment("ALE/Pong-v5", atari=False, kwargs={"obs_type": "ram"})
    assert making.spaces(task.making)[0].shape == (128,)
