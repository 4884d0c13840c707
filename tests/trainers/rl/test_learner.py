"""A training that is put together again from its files at every mark is the training that was never disturbed."""

from __future__ import annotations

import asyncio
import json
import random
import resource
import shutil
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("stable_baselines3")

import numpy as np
import torch

from sharpen.bench.config import load
from sharpen.bench.runner import build
from sharpen.core.candidate import Candidate
from sharpen.core.errors import NotDeterministic, StorageError, UsageError
from sharpen.engine.gateway import Stopped
from sharpen.engine.stretches import Grown
from sharpen.tasks.gym import making, seeds
from sharpen.testing.processes import in_child
from sharpen.trainers import registry
from sharpen.trainers.rl.learner import Learner, Playground, Watch
from sharpen.trainers.rl.loop import PolicyTrainer
from sharpen.trainers.rl.recipe import Recipe, resolve

SMALL: dict[str, Any] = {"preset": "none", "net_arch": [8]}
OFF_POLICY = {
    **SMALL,
    "learning_starts": 40,
    "buffer_size": 100,
    "batch_size": 16,
    "total_steps": 180,
    "eval_every": 60,
}
TRAININGS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "ppo": ("ppo", "CartPole-v1", {**SMALL, "n_envs": 3, "n_steps": 32, "total_steps": 288, "eval_every": 96,
                                   "learning_rate": "lin_0.01", "clip_range": "lin_0.2", "normalize": True}),
    "ppo with gSDE": ("ppo", "Pendulum-v1", {**SMALL, "n_steps": 64, "total_steps": 192, "eval_every": 64,
                                             "use_sde": True, "sde_sample_freq": 4}),
    "a2c": ("a2c", "CartPole-v1", {**SMALL, "n_envs": 2, "total_steps": 300, "eval_every": 100, "normalize": True}),
    "dqn": ("dqn", "CartPole-v1", {**OFF_POLICY, "target_update_interval": 20, "exploration_fraction": 0.5}),
    "dqn normalised, side by side": ("dqn", "CartPole-v1", {**OFF_POLICY, "n_envs": 2, "normalize": True}),
    "sac": ("sac", "Pendulum-v1", {**OFF_POLICY, "noise_type": "normal", "noise_std": 0.1}),
    "td3": ("td3", "Pendulum-v1", {**OFF_POLICY, "n_envs": 2, "noise_type": "ornstein-uhlenbeck", "noise_std": 0.5}),
}  # fmt: skip


def recipe_of(algorithm: str, environment: str, **params: Any) -> Recipe:
    trainer = registry.get(algorithm)
    assert issubclass(trainer, PolicyTrainer)
    return resolve(trainer.algorithm, trainer.Params(**params), environment)


def learner_of(recipe: Recipe, folder: Path, watch: Watch | None = None, *, seed: int = 3) -> Learner:
    made = making.from_settings(recipe.environment)
    place = Playground(partial(making.make, made, training=True), partial(seeds.training, seed))
    return Learner(recipe, place, seed, folder / "desk", watch or Watch())


def kept(grown: Grown, folder: Path) -> Candidate:
    """The policy with its files where a checkpoint would have them."""
    home = folder / f"step_{grown.step:08d}"
    home.mkdir()
    files = {name: Path(shutil.copy(path, home / name)) for name, path in grown.policy.files.items()}
    return Candidate(grown.policy.parts, files)


def trained(recipe: Recipe, folder: Path, *, afresh: bool) -> list[tuple[str, int, Any, str]]:
    """Digest, step, metrics and description after each stretch; by one learner, or each by another one."""
    folder.mkdir()

    async def run() -> list[Grown]:
        learner = learner_of(recipe, folder)
        told = [await learner.begin()]
        for mark in recipe.marks:
            policy = kept(told[-1], folder)
            disturb()
            if afresh:
                learner.close()
                learner = learner_of(recipe, folder)
            told.append(await learner.go_on(policy, mark))
        learner.close()
        return told

    return [(grown.policy.digest, grown.step, grown.metrics, grown.policy.text) for grown in asyncio.run(run())]


def disturb() -> None:
    """What an evaluation between two stretches may do to generators that everybody shares."""
    random.random(), np.random.rand(), torch.rand(1)


@pytest.mark.parametrize("name", TRAININGS)
def test_a_training_resumed_at_every_mark_is_the_undisturbed_one_to_the_last_bit(name: str, tmp_path: Path) -> None:
    algorithm, environment, params = TRAININGS[name]
    recipe = recipe_of(algorithm, environment, **params)
    straight = trained(recipe, tmp_path / "straight", afresh=False)
    resumed = trained(recipe, tmp_path / "resumed", afresh=True)
    assert resumed == straight
    assert len({digest for digest, *_ in straight}) == len(straight) >= 3, "nothing was learned"
    assert [step for _, step, *_ in straight] == [0, *recipe.marks]


@pytest.mark.parametrize("name", ["ppo", "td3"])
def test_how_often_a_policy_is_looked_at_does_not_change_it(name: str, tmp_path: Path) -> None:
    algorithm, environment, params = TRAININGS[name]
    often = recipe_of(algorithm, environment, **params)
    once = recipe_of(algorithm, environment, **{**params, "eval_every": params["total_steps"]})
    assert len(once.marks) == 1
    assert (
        trained(once, tmp_path / "once", afresh=False)[-1][0] == trained(often, tmp_path / "often", afresh=False)[-1][0]
    )


def test_a_training_in_stretches_is_what_stable_baselines3_does_in_one_go(tmp_path: Path) -> None:
    import gymnasium
    from stable_baselines3 import DQN
    from stable_baselines3.common.vec_env import DummyVecEnv

    from sharpen.tasks.gym.policy import weights_digest
    from sharpen.trainers.rl.environments import Traced

    algorithm, environment, params = TRAININGS["dqn"]
    last = json.loads(str(trained(recipe_of(algorithm, environment, **params), tmp_path / "ours", afresh=False)[-1][3]))
    same_seeds = partial(seeds.training, 3, 0)
    alone = DQN(
        "MlpPolicy", DummyVecEnv([lambda: Traced(gymnasium.make(environment), same_seeds)]), seed=3, device="cpu",
        learning_starts=40, buffer_size=100, batch_size=16, target_update_interval=20, exploration_fraction=0.5,
        policy_kwargs={"net_arch": [8]},
    )  # fmt: skip
    alone.learn(180)
    assert weights_digest(alone.policy.state_dict(), None) == last["weights"]


def test_without_its_replay_buffer_a_training_goes_on_and_says_so(tmp_path: Path) -> None:
    algorithm, environment, params = TRAININGS["dqn"]
    recipe = recipe_of(algorithm, environment, **params, keep_replay_buffer=False)
    straight = trained(recipe, tmp_path / "straight", afresh=False)
    resumed = trained(recipe, tmp_path / "resumed", afresh=True)
    assert [row[:2] for row in resumed[:2]] == [row[:2] for row in straight[:2]]
    assert [metrics.get("replay_buffer_lost") for _, _, metrics, _ in resumed] == [None, None, True, True]
    assert not any("replay_buffer_lost" in metrics for _, _, metrics, _ in straight)


def test_an_atari_game_is_gone_on_with_in_the_middle_of_a_life(tmp_path: Path) -> None:
    pytest.importorskip("ale_py")
    from sharpen.trainers.rl.environments import Traced

    made = making.from_settings("ALE/Breakout-v5", kwargs={"repeat_action_probability": 0.25})
    one, other = (Traced(making.make(made, training=True), lambda episode: 40 + episode) for _ in range(2))
    one.reset()
    actions, lives = np.random.RandomState(5).randint(4, size=400), 0
    for number, action in enumerate(actions):
        *_, terminated, truncated, _ = one.step(action)
        if terminated or truncated:
            lives += 1
            one.reset()
        if number in (90, 399):
            place = one.place()
            other.go_to(place)
            assert other.place().episode == place.episode and len(other.place().actions) == len(place.actions)
            assert np.array_equal(one.step(1)[0], other.step(1)[0])
    assert lives > len(one.ended) > 0, "lives were lost, and games"


@pytest.mark.parametrize("damage", ["cut state", "no state", "cut replay", "other weights", "garbage weights"])
def test_a_damaged_checkpoint_is_not_gone_on_from_and_the_way_out_is_said(damage: str, tmp_path: Path) -> None:
    recipe = recipe_of("dqn", "CartPole-v1", **OFF_POLICY)

    async def run() -> None:
        learner = learner_of(recipe, tmp_path)
        began = kept(await learner.begin(), tmp_path)
        grown = kept(await learner.go_on(began, 60), tmp_path)
        files = dict(grown.files)
        kind, _, name = damage.partition(" ")
        path = files[{"state": "state.pt", "replay": "replay.pt", "weights": "policy.pt"}[name]]
        if kind == "cut":
            path.write_bytes(path.read_bytes()[:400])
        elif kind == "no":
            path.unlink()
        else:
            path.write_bytes(began.files["policy.pt"].read_bytes() if kind == "other" else b"rubbish")
        with pytest.raises(
            UsageError, match=f"{path.name}.*remove its folder, and it goes on from the one before"
        ) as said:
            await learner_of(recipe, tmp_path / "other").go_on(Candidate(grown.parts, files), 120)
        assert "weights_only" not in str(said.value), "torch advises to run the code of a file it can't read"

    asyncio.run(run())


def test_a_full_disk_is_said_and_no_bug(tmp_path: Path) -> None:
    def with_little_room() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
        with pytest.raises(StorageError, match=r"cannot write .*policy\.pt: is the disk full"):
            asyncio.run(learner_of(recipe_of("ppo", "CartPole-v1", **SMALL), tmp_path).begin())

    assert in_child(with_little_room) == 0


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is such a device here")
def test_a_device_that_is_not_here_is_not_replaced_by_another(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="device is cuda, and torch finds no such device here"):
        asyncio.run(learner_of(recipe_of("ppo", "CartPole-v1", **SMALL, device="cuda"), tmp_path).begin())


def test_another_seed_is_another_training(tmp_path: Path) -> None:
    recipe = recipe_of(*TRAININGS["a2c"][:2], **TRAININGS["a2c"][2])

    async def first(seed: int) -> str:
        learner = learner_of(recipe, tmp_path, seed=seed)
        try:
            return (await learner.begin()).policy.digest
        finally:
            learner.close()

    assert asyncio.run(first(1)) != asyncio.run(first(2))


@pytest.mark.parametrize("at", [1, 40, 64])
def test_a_stretch_stops_at_once_when_it_is_told_to(at: int, tmp_path: Path) -> None:
    """Within play, and within an update, which is after step 64."""
    steps: list[int] = []
    checks = 0

    def check() -> None:
        nonlocal checks
        if steps and steps[-1] >= at:
            checks += 1
            if checks > 2:
                raise Stopped("stopped")

    recipe = recipe_of("ppo", "CartPole-v1", **SMALL, n_steps=64, total_steps=640, eval_every=640)
    learner = learner_of(recipe, tmp_path, Watch(steps.append, check))

    async def run() -> None:
        begun = await learner.begin()
        await learner.go_on(kept(begun, tmp_path), 640)

    with pytest.raises(Stopped):
        asyncio.run(run())
    assert steps[-1] <= at + 2
    learner.close()


def test_metrics_are_finite_or_null_and_hold_no_clock(tmp_path: Path) -> None:
    algorithm, environment, params = TRAININGS["ppo"]
    told = trained(recipe_of(algorithm, environment, **params), tmp_path / "one", afresh=False)
    first, last = told[0][2], told[-1][2]
    assert first["parameters"] == (4 + 1) * 8 + (8 + 1) * 2 and first["trained_parameters"] > first["parameters"]
    assert first["hyperparameters"]["n_steps"] == 32 and first["hyperparameters"]["gae_lambda"] == 0.95
    assert last["episodes"] > 0 and last["train_return_mean"] == last["train_length_mean"]
    assert last["learning_rate"] == 0.0, "a linear schedule ends at zero with the training, not with a stretch"
    assert {"value_loss", "entropy_loss", "clip_range"} <= set(last)
    assert not any("fps" in name or "time" in name for name in last)


def test_weights_that_stop_being_numbers_end_the_training_with_a_word(tmp_path: Path) -> None:
    from sharpen.trainers.rl.events import Diverged

    recipe = recipe_of("a2c", "CartPole-v1", **SMALL, learning_rate=1e30, max_grad_norm=1e30, total_steps=500)
    with pytest.raises(Diverged, match="stopped being numbers before step"):
        trained(recipe, tmp_path / "wild", afresh=False)


def test_an_environment_that_does_not_repeat_itself_cannot_be_resumed(tmp_path: Path) -> None:
    import gymnasium

    class Fickle(gymnasium.Wrapper[Any, Any, Any, Any]):
        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            return self.env.reset(seed=random.SystemRandom().randrange(1 << 30))

    recipe = recipe_of("ppo", "CartPole-v1", **SMALL, n_steps=50, total_steps=100, eval_every=50)
    place = Playground(lambda: Fickle(gymnasium.make("CartPole-v1")), lambda index, episode: episode)

    async def run() -> None:
        one = Learner(recipe, place, 1, tmp_path / "desk", Watch())
        begun = await one.begin()
        grown = await one.go_on(kept(begun, tmp_path), 50)
        await Learner(recipe, place, 1, tmp_path / "desk2", Watch()).go_on(kept(grown, tmp_path), 100)

    with pytest.raises(NotDeterministic, match="does not repeat itself: episode"):
        asyncio.run(run())


@pytest.mark.parametrize(
    ("algorithm", "environment", "params", "message"),
    [
        ("ppo", "CartPole-v1", {"use_sde": True}, "continuous actions"),
        ("ppo", "FrozenLake-v1", {"normalize": True}, "normalize needs observations that are numbers"),
    ],
)
def test_what_an_algorithm_cannot_learn_is_said(
    algorithm: str, environment: str, params: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=message):
        asyncio.run(learner_of(recipe_of(algorithm, environment, **params), tmp_path).begin())


@pytest.mark.parametrize(
    ("algorithm", "environment", "message"),
    [
        ("dqn", "Pendulum-v1", "dqn learns discrete actions, and those of Pendulum-v1 are Box.*; ppo, a2c, sac"),
        ("sac", "CartPole-v1", "sac learns continuous actions.*; ppo, a2c and dqn can"),
        ("ppo", "codebook", "trainer 'ppo' trains a policy, and task 'codebook' is about a text"),
        ("reflact", "CartPole-v1", "trains a text.*trainers for that are: ppo, a2c, dqn, sac, td3$"),
    ],
)
def test_a_trainer_that_does_not_suit_a_task_is_refused_before_anything_is_made(
    algorithm: str, environment: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        build(load(None, {"task": environment, "trainer": algorithm, "models": {"target": "scripted/rules"}}))
