"""A recipe made into something that learns: the environments, the network and the algorithm of stable-baselines3.

The algorithm is told to count its progress over the whole training rather than over one stretch of it, so that schedules
and exploration do not depend on how often a policy is looked at; for the same reason noise is not begun anew at a stretch.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.noise import (
    ActionNoise,
    NormalActionNoise,
    OrnsteinUhlenbeckActionNoise,
    VectorizedActionNoise,
)
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.sb2_compat.rmsprop_tf_like import RMSpropTFLike

from sharpen.core.digest import Json
from sharpen.core.errors import UsageError
from sharpen.tasks.gym import policy as policies
from sharpen.tasks.gym.about import Architecture
from sharpen.trainers.rl.environments import Grounds
from sharpen.trainers.rl.notes import Notes
from sharpen.trainers.rl.params import AUTO
from sharpen.trainers.rl.recipe import Recipe
from sharpen.trainers.rl.schedules import schedule

_SCHEDULED = ("learning_rate", "clip_range", "clip_range_vf")
_NOT_TOLD = {"stats_window_size", "verbose", "seed", "device", "_init_setup_model", "policy", "env"}


def discount(recipe: Recipe) -> float:
    """The discount that rewards are normalised with: the algorithm's."""
    return float(recipe.settings.get("gamma", defaults(recipe.algorithm)["gamma"]))


def architecture(recipe: Recipe, space: gymnasium.Space[Any], settings: Mapping[str, Json]) -> Architecture:
    """What the network of a recipe is, for observations of this space; `settings` are the environment's."""
    kind = _kind_of_network(space) if recipe.policy == AUTO else recipe.policy
    exploring = {"use_sde": True} if recipe.settings.get("use_sde") else {}
    return Architecture(recipe.environment, recipe.algorithm, kind, {**recipe.network, **exploring}, settings)


def build(recipe: Recipe, network: Architecture, grounds: Grounds, seed: int) -> BaseAlgorithm:
    """The algorithm with fresh weights. Seeds the generators of python, numpy and torch."""
    settings = {
        name: schedule(value) if name in _SCHEDULED and value is not None else value
        for name, value in recipe.settings.items()
    }
    if recipe.noise is not None:
        settings["action_noise"] = _noise(*recipe.noise, grounds)
    options = policies.resolved(recipe.network)
    if recipe.tf_rms_prop:
        options |= {"optimizer_class": RMSpropTFLike, "optimizer_kwargs": {"eps": 1e-5}}
    kind: Any = type("OverAll", (_OverAll, policies.KINDS[recipe.algorithm]), {"whole": recipe.total_steps})
    try:
        model: BaseAlgorithm = kind(
            network.policy, grounds.seen, policy_kwargs=options, seed=seed, device=recipe.device, verbose=0, **settings
        )
    except (TypeError, ValueError, AssertionError, NotImplementedError, KeyError, RuntimeError) as error:
        raise UsageError(
            f"{recipe.algorithm} cannot learn {recipe.environment} with these settings: {' '.join(str(error).split())}"
        ) from error
    if recipe.device != AUTO and model.device.type != recipe.device.partition(":")[0]:
        raise UsageError(
            f"trainer.params.device is {recipe.device}, and torch finds no such device here; cpu is always there, and auto "
            "takes what there is"
        )
    model.set_logger(Notes())
    return model


def defaults(algorithm: str) -> dict[str, Json]:
    """The algorithm's own settings, where nothing else is said: those that are plain values."""
    signature = inspect.signature(policies.KINDS[algorithm])
    plain = {name: p.default for name, p in signature.parameters.items() if isinstance(p.default, int | float | str)}
    return {name: value for name, value in plain.items() if name not in _NOT_TOLD}


def is_finite(model: BaseAlgorithm) -> bool:
    """Whether every weight is still a number."""
    return all(bool(weight.isfinite().all()) for weight in model.policy.parameters())


class _OverAll:
    """Mixed into an algorithm: its progress is that of the whole training."""

    whole: int
    action_noise: ActionNoise | None

    def _update_current_progress_remaining(self, num_timesteps: int, total_timesteps: int) -> None:
        self._current_progress_remaining = max(0.0, 1.0 - num_timesteps / self.whole)

    def _setup_learn(self, *args: Any, **kwargs: Any) -> Any:
        noise, self.action_noise = self.action_noise, None
        try:
            return super()._setup_learn(*args, **kwargs)  # type: ignore[misc]
        finally:
            self.action_noise = noise


def _kind_of_network(space: gymnasium.Space[Any]) -> str:
    if isinstance(space, gymnasium.spaces.Dict):
        return "MultiInputPolicy"
    return "CnnPolicy" if is_image_space(space) else "MlpPolicy"


def _noise(kind: str, deviation: float, grounds: Grounds) -> ActionNoise:
    space = grounds.seen.action_space
    if not isinstance(space, gymnasium.spaces.Box):
        raise UsageError(f"noise can be added to continuous actions only, not to {space}")
    size = math.prod(space.shape)
    mean, spread = np.zeros(size), deviation * np.ones(size)
    noise: ActionNoise = (
        NormalActionNoise(mean, spread) if kind == "normal" else OrnsteinUhlenbeckActionNoise(mean, spread)
    )
    return noise if len(grounds.each) == 1 else VectorizedActionNoise(noise, len(grounds.each))
