"""What an episode comes to is decided by the policy and the episode, not by what is played beside it."""

from __future__ import annotations

import asyncio
import threading
import time

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from small_environments import Fresh, environment, played

from sharpen.core.errors import NoScore, UsageError
from sharpen.tasks.gym import about


def test_an_episodes_return_does_not_depend_on_what_is_played_beside_it(fresh: Fresh) -> None:
    task = environment("Pendulum-v1", max_steps=40)
    policy, rival = fresh(task), fresh(task, seed=1)
    items = task.episodes(70)
    together = [outcome.hard for outcome in played(task, policy, items)]
    assert len(set(together)) == 70
    assert [outcome.hard for outcome in played(task, policy, items[::-1])][::-1] == together
    assert [outcome.hard for outcome in played(task, policy, items[3:50:7])] == together[3:50:7]
    assert [played(task, policy, [item])[0].hard for item in items[32:36]] == together[32:36]

    async def beside_a_rival() -> list[float | None]:
        both = await asyncio.gather(
            *(task.rollout(item, one, None) for item in items for one in (policy, rival))  # type: ignore[arg-type]
        )
        return [outcome.hard for outcome in both[::2]]

    assert asyncio.run(beside_a_rival()) == together


@pytest.mark.parametrize(
    ("alone", "algorithm", "kind"), [(True, "ppo", "CnnPolicy"), (False, "sac", "MultiInputPolicy")]
)
def test_policies_that_see_images_play_alike_whatever_is_beside_them(
    fresh: Fresh, sighted: str, alone: bool, algorithm: str, kind: str
) -> None:
    task = environment(sighted, kwargs={"picture_alone": alone})
    policy = fresh(task, algorithm, kind, spread=0.02, net_arch=[8])
    items = task.episodes(35)
    together = played(task, policy, items)
    assert len({outcome.hard for outcome in together}) > 30
    assert played(task, policy, items[1:2]) == together[1:2]


def test_an_atari_game_is_the_same_in_an_emulator_that_was_played_in_before() -> None:
    pytest.importorskip("ale_py")
    task = environment("ALE/MsPacman-v5", max_steps=150)
    items = task.episodes(33)
    first, last = items[0], items[32]  # they want the same seat, so one follows the other
    together = played(task, task.seed(), [first, items[1], last])
    assert len({outcome.hard for outcome in together}) > 1
    assert played(task, task.seed(), [last]) == together[2:]


def test_outcomes_carry_the_return_the_length_and_how_it_ended() -> None:
    task = environment("CartPole-v1", max_steps=12)
    outcomes = played(task, task.seed(), task.splits().test)
    assert all(o.hard == o.soft == o.measures["return"] == o.measures["length"] <= 12 for o in outcomes)
    ends = {o.feedback.partition(" after")[0] for o in outcomes}
    assert ends == {"cut off at the limit", "ended"}


def test_the_untrained_policy_plays_at_random_and_always_the_same() -> None:
    task = environment("CartPole-v1", test_episodes=200)
    returns = [outcome.hard for outcome in played(task, task.seed(), task.splits().test)]
    assert 20 < np.mean(returns) < 25, "22.2 is what uniformly random actions reach"
    again = environment("CartPole-v1")
    assert [o.hard for o in played(again, again.seed(), again.splits().test)] == returns[:50]


def test_success_is_measured_where_the_environment_tells(recital: str) -> None:
    told = environment(recital, kwargs={"rewards": [0.5, 1.0], "info": {"is_success": True}})
    outcome = played(told, told.seed(), told.episodes(1))[0]
    assert outcome.measures == {"return": 1.5, "length": 2.0, "success": 1.0}
    silent = environment(recital)
    assert "success" not in played(silent, silent.seed(), silent.episodes(1))[0].measures


@pytest.mark.parametrize("reward", ["nan", "inf"])
def test_a_return_that_is_no_number_is_an_error_that_names_the_episode(recital: str, reward: str) -> None:
    task = environment(recital, kwargs={"rewards": [0.0, reward, 0.0]})
    with pytest.raises(NoScore, match=r"Recital-v0: the return of episode play-0000 \(seed \d+\) became .* at step 2"):
        played(task, task.seed(), task.episodes(1))


def test_an_environments_own_error_reaches_who_waits_for_that_episode(recital: str) -> None:
    task = environment(recital, kwargs={"rewards": ["much"]})
    with pytest.raises(ValueError, match="much"):
        played(task, task.seed(), task.episodes(2))


def test_a_policy_of_another_environment_does_not_play(fresh: Fresh) -> None:
    other = fresh(environment("Pendulum-v1"))
    task = environment("CartPole-v1")
    with pytest.raises(UsageError, match="this policy is for Pendulum-v1; it cannot play CartPole-v1"):
        played(task, other, task.episodes(3))
    with pytest.raises(UsageError, match="cannot play CartPole-v1"):
        played(task, about.untrained("Acrobot-v1"), task.episodes(1))


def test_episodes_nobody_waits_for_are_left_alone(recital: str) -> None:
    task = environment(recital, kwargs={"rewards": []}, max_steps=10_000_000)

    async def give_up() -> None:
        async with asyncio.timeout(0.2):
            await asyncio.gather(*(task.play(item, task.seed()) for item in task.episodes(40)))

    with pytest.raises(TimeoutError):
        asyncio.run(give_up())
    deadline = time.monotonic() + 5
    while any(thread.name == f"episodes of {recital}" for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
