"""A policy that was kept is the same one when it is loaded; one that is damaged, or belongs elsewhere, is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("stable_baselines3")

import numpy as np
import torch
from small_environments import Fresh, environment
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from sharpen.core.candidate import Candidate
from sharpen.core.errors import UsageError
from sharpen.tasks.gym import about, making, policy
from sharpen.tasks.gym.about import Architecture


@pytest.mark.parametrize(
    ("algorithm", "name", "kwargs", "own"),
    [
        ("ppo", "CartPole-v1", {"net_arch": {"pi": [16], "vf": [8, 8]}, "activation_fn": "relu"}, {}),
        ("a2c", "Pendulum-v1", {"use_sde": True, "log_std_init": -1.0}, {"use_sde": True}),
        ("dqn", "CartPole-v1", {"net_arch": [32]}, {}),
        ("sac", "Pendulum-v1", {"net_arch": [16], "n_critics": 1}, {}),
        ("td3", "Pendulum-v1", {"net_arch": [16], "activation_fn": "Tanh"}, {}),
    ],
)
def test_a_kept_policy_acts_as_the_one_that_was_trained(
    algorithm: str, name: str, kwargs: dict[str, Any], own: dict[str, Any], tmp_path: Path
) -> None:
    task = environment(name)
    seen = VecNormalize(DummyVecEnv([lambda: making.make(task.making, training=True)]))
    seen.obs_rms.mean[:], seen.obs_rms.var[:] = 0.1, 0.5
    network = {key: value for key, value in kwargs.items() if key not in own}
    model = policy.KINDS[algorithm]("MlpPolicy", seen, policy_kwargs=policy.resolved(network), **own)
    statistics = policy.Normalisation(seen.obs_rms.mean, seen.obs_rms.var, seen.clip_obs, seen.epsilon)
    kept = policy.keep(tmp_path, model.policy, Architecture(name, algorithm, "MlpPolicy", kwargs), statistics)
    observations = np.random.default_rng(0).normal(size=(32, *seen.observation_space.shape)).astype(np.float32)
    player = policy.load(kept, name, *making.spaces(task.making))
    expected = model.predict(seen.normalize_obs(observations), deterministic=True)[0]
    assert np.array_equal(player.act(observations), expected)


def test_a_policys_parameters_are_those_it_acts_with(fresh: Fresh) -> None:
    said = about.read(fresh(environment("CartPole-v1")))
    assert said is not None
    assert said.parameters == (4 * 64 + 64) + (64 * 64 + 64) + (64 * 2 + 2)
    assert said.trained_parameters == said.parameters + (4 * 64 + 64) + (64 * 64 + 64) + (64 + 1)


def test_the_digest_is_of_the_weights_and_the_normalisation_and_of_nothing_else() -> None:
    weights = {"a": torch.tensor([1.0, 2.0]), "b": torch.tensor(3)}
    found = policy.weights_digest(weights, None)
    assert policy.weights_digest(dict(reversed(weights.items())), None) == found
    for other in (
        {**weights, "a": torch.tensor([1.0, 2.0000002])},
        {**weights, "a": torch.tensor([[1.0, 2.0]])},
        {**weights, "b": torch.tensor(3.0)},
        {"a": weights["a"], "c": weights["b"]},
    ):
        assert policy.weights_digest(other, None) != found
    shifted = policy.Normalisation(np.array([0.5]), np.array([1.0]), 10.0, 1e-8)
    assert policy.weights_digest(weights, shifted) != found


def test_building_leaves_the_global_generator_alone() -> None:
    task = environment("CartPole-v1")
    before = torch.random.get_rng_state()
    policy.build(Architecture(task.name, "dqn", "MlpPolicy"), *making.spaces(task.making))
    assert torch.equal(before, torch.random.get_rng_state())


def reason(candidate: Candidate, name: str = "CartPole-v1") -> str:
    task = environment(name)
    with pytest.raises(UsageError) as caught:
        policy.load(candidate, name, *making.spaces(task.making))
    return str(caught.value)


def test_what_is_no_policy_for_this_environment_is_refused_with_a_reason(fresh: Fresh, tmp_path: Path) -> None:
    whole = fresh(environment("CartPole-v1"))
    said = json.loads(whole.text)
    path = whole.files[about.WEIGHTS]

    def changed(**fields: Any) -> Candidate:
        return Candidate({about.DESCRIPTION: json.dumps({**said, **fields})}, whole.files)

    assert "trained for CartPole-v1; it cannot play Acrobot-v1" in reason(whole, "Acrobot-v1")
    assert "does not hold the weights" in reason(changed(weights="0" * 64))
    assert "unknown algorithm 'pppo' (did you mean 'ppo'?)" in reason(changed(algorithm="pppo"))
    assert "do not fit" in reason(changed(policy_kwargs={"net_arch": [3]}))
    assert "did you mean 'relu'?" in reason(changed(policy_kwargs={"activation_fn": "relux"}))
    assert "widths" in reason(changed(policy_kwargs={"widths": 3}))
    nameless = Candidate({about.DESCRIPTION: whole.text.replace('"weights"', '"weight"')}, whole.files)
    assert "lacks 'weights'" in reason(nameless)
    assert "weights of the policy are missing" in reason(Candidate(whole.parts))
    assert "untrained" in reason(about.untrained("CartPole-v1"))
    assert "not JSON" in reason(Candidate({about.DESCRIPTION: "{"}))
    assert about.DESCRIPTION in reason(Candidate("Be good."))
    for damage in (path.read_bytes()[:500], b"", b"garbage"):
        broken = tmp_path / "broken.pt"
        broken.write_bytes(damage)
        assert "damaged" in reason(Candidate(whole.parts, {about.WEIGHTS: broken}))


def test_no_code_of_a_file_is_run(fresh: Fresh, tmp_path: Path) -> None:
    whole = fresh(environment("CartPole-v1"))
    trap = tmp_path / "trap.pt"
    torch.save({"state_dict": {}, "normalisation": Path("/")}, trap)
    assert "damaged" in reason(Candidate(whole.parts, {about.WEIGHTS: trap}))
