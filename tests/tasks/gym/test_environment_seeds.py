"""Episodes of different purposes are never the same one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sharpen.tasks.gym import seeds

SEED = st.integers(0, 2**63)


@given(SEED, st.integers(0, 200), st.integers(0, 10**9), SEED, st.text(max_size=5), st.integers(1, 60))
def test_no_seed_is_in_two_streams_and_gymnasium_takes_each(
    job: int, environment: int, episode: int, split: int, task: str, count: int
) -> None:
    streams = {name: set(seeds.evaluation(name, task, split, count)) for name in ("val", "test", "play")}
    streams["train"] = {seeds.training(job, environment, episode)}
    every = [seed for drawn in streams.values() for seed in drawn]
    assert len(set(every)) == len(every) == 3 * count + 1
    assert all(0 <= seed < 2**31 for seed in every)
    assert all(seed % 4 == seeds.STREAMS[name] for name, drawn in streams.items() for seed in drawn)


@given(SEED, st.integers(1, 30), st.integers(0, 30))
def test_more_episodes_begin_with_the_same_ones(split: int, few: int, more: int) -> None:
    assert seeds.evaluation("test", "CartPole-v1", split, few + more)[:few] == seeds.evaluation(
        "test", "CartPole-v1", split, few
    )


def test_training_seeds_depend_on_the_job_the_environment_and_the_episode() -> None:
    drawn = {seeds.training(job, env, episode) for job in range(5) for env in range(5) for episode in range(5)}
    assert len(drawn) == 125
