"""Small environments of our own, policies with fresh weights, and how episodes are played in a test."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch

from sharpen.core.candidate import Candidate
from sharpen.core.item import Item
from sharpen.core.outcome import Outcome
from sharpen.tasks import registry
from sharpen.tasks.gym import making, policy
from sharpen.tasks.gym.about import Architecture
from sharpen.tasks.gym.task import Environment

Fresh = Callable[..., Candidate]


class Recital(gymnasium.Env[Any, Any]):
    """Gives the rewards it was made with, one a step, whatever is done; without any it goes on for ever."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, rewards: tuple[float | str, ...] = (1.0,), info: dict[str, Any] | None = None) -> None:
        self._rewards = rewards
        self._info = info or {}
        self._step = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._step = 0
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        reward = float(self._rewards[self._step]) if self._rewards else 0.0
        self._step += 1
        return np.zeros(2, np.float32), reward, self._step == len(self._rewards), False, self._info


class Sighted(gymnasium.Env[Any, Any]):
    """Shows a picture and two numbers, all drawn at random, or the picture alone; the reward is the action itself."""

    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))

    def __init__(self, picture_alone: bool = False) -> None:
        self._alone = picture_alone
        eye = gymnasium.spaces.Box(0, 255, (40, 50, 3), np.uint8)
        both = gymnasium.spaces.Dict(eye=eye, speed=gymnasium.spaces.Box(-1.0, 1.0, (2,)))
        self.observation_space = eye if picture_alone else both

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self._look(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self._look(), float(action[0]), False, False, {}

    def _look(self) -> Any:
        eye = self.np_random.integers(0, 256, (40, 50, 3)).astype(np.uint8)
        return eye if self._alone else {"eye": eye, "speed": self.np_random.uniform(-1, 1, 2).astype(np.float32)}


def environment(name: str, **settings: Any) -> Environment:
    task = registry.get(name, **settings)
    assert isinstance(task, Environment)
    return task


def fresh_policy(
    folder: Path,
    task: Environment,
    algorithm: str = "ppo",
    kind: str = "MlpPolicy",
    seed: int = 0,
    spread: float = 0.3,
    **kwargs: Any,
) -> Candidate:
    """A policy for a task that has learned nothing; `seed` decides its weights, `spread` how large they are."""
    architecture = Architecture(task.name, algorithm, kind, kwargs, task.making.settings())
    networks = policy.build(architecture, *making.spaces(task.making))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in networks.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * spread)
    home = folder / f"{algorithm}-{seed}"
    home.mkdir(exist_ok=True)
    return policy.keep(home, networks, architecture)


def played(task: Environment, candidate: Candidate, items: Iterable[Item]) -> list[Outcome]:
    async def together() -> list[Outcome]:
        return await asyncio.gather(*(task.rollout(item, candidate, None) for item in items))  # type: ignore[arg-type]

    return asyncio.run(together())
