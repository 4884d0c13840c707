"""The environments a policy trains in: side by side in one process, each able to say where it is and to get back there.

Every reset passes an explicit seed, so an episode is decided by its number and by the actions taken in it. That is an
environment's whole state, whatever it is made of: getting back means starting that episode again and repeating the actions.
What is seen then must be what was seen before. Where an episode of the training ends with a life and the game goes on, the
game is what is counted here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import gymnasium
import numpy as np
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecNormalize

from sharpen.core.errors import NotDeterministic, UsageError

Make: TypeAlias = Callable[[], "gymnasium.Env[Any, Any]"]
Seeds: TypeAlias = Callable[[int, int], int]
"""The seed of an environment's episode, by the number of the environment and that of the episode."""


@dataclass(frozen=True)
class Place:
    """Where an environment is: in which episode (-1: none yet), after which actions, and what it shows."""

    episode: int
    actions: tuple[Any, ...] = ()
    observation: Any = None


@dataclass(frozen=True)
class Episode:
    """An episode that came to its end."""

    total: float
    length: int


class Traced(gymnasium.Wrapper[Any, Any, Any, Any]):  # type: ignore[misc]
    """An environment whose episodes are seeded one by one, and which remembers the actions of the running one."""

    def __init__(self, env: gymnasium.Env[Any, Any], seed: Callable[[int], int]) -> None:
        super().__init__(env)
        self._seed = seed
        self._has_lives = env.has_wrapper_attr("going_on")
        self._episode = -1
        self._actions: list[Any] = []
        self._total = 0.0
        self._seen: Any = None
        self.ended: list[Episode] = []
        """Episodes that ended since somebody last took them from here."""

    @property
    def _goes_on(self) -> bool:
        """Whether only a life is over, and not the game."""
        return self._has_lives and bool(self.env.get_wrapper_attr("going_on"))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin the next episode, or the next life. Which seed an episode has is decided here alone."""
        if self._goes_on:
            self._seen, info = self.env.reset()
            return self._seen, info
        self._episode += 1
        self._actions, self._total = [], 0.0
        self._seen, info = self.env.reset(seed=self._seed(self._episode), options=options)
        return self._seen, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self._actions.append(np.array(action))
        self._seen, reward, terminated, truncated, info = self.env.step(action)
        self._total += float(info.get("raw_reward", reward))
        if (terminated or truncated) and not self._goes_on:
            self.ended.append(Episode(self._total, len(self._actions)))
        return self._seen, reward, terminated, truncated, info

    def place(self) -> Place:
        return Place(self._episode, tuple(self._actions), self._seen)

    def go_to(self, place: Place) -> None:
        """Get back to where an environment was. Raises `NotDeterministic` where the same actions lead elsewhere."""
        if place.episode < 0:
            return
        self._episode = place.episode - 1
        self.reset()
        for action in place.actions:
            *_, terminated, truncated, _ = self.step(action)
            if (terminated or truncated) and self._goes_on:
                self.reset()
        self.ended.clear()
        if not _same(self._seen, place.observation):
            raise NotDeterministic(
                f"the environment does not repeat itself: episode {place.episode} with seed {self._seed(place.episode)} led "
                f"elsewhere after the same {len(place.actions)} actions, so this training cannot be resumed"
            )


@dataclass(frozen=True)
class Grounds:
    """All training environments: what the algorithm sees of them, and each of them."""

    seen: VecEnv
    each: Sequence[Traced]

    def ended(self) -> list[Episode]:
        """The episodes that ended since this was last asked, one environment after the other."""
        found = [episode for env in self.each for episode in env.ended]
        for env in self.each:
            env.ended.clear()
        return found


def prepare(make: Make, seeds: Seeds, count: int, *, normalize: bool, gamma: float) -> Grounds:
    """So many environments side by side; with running statistics of observations and rewards where that is wanted."""
    each = [Traced(make(), lambda episode, index=index: seeds(index, episode)) for index in range(count)]  # type: ignore[misc]
    seen: VecEnv = DummyVecEnv([lambda env=env: env for env in each])
    if normalize:
        if not isinstance(seen.observation_space, gymnasium.spaces.Box | gymnasium.spaces.Dict):
            raise UsageError(f"normalize needs observations that are numbers, not {seen.observation_space}")
        seen = VecNormalize(seen, gamma=gamma)
    return Grounds(seen, each)


def _same(new: Any, old: Any) -> bool:
    if isinstance(new, dict):
        return isinstance(old, dict) and new.keys() == old.keys() and all(_same(new[key], old[key]) for key in new)
    return np.array_equal(np.asarray(new), np.asarray(old), equal_nan=np.asarray(new).dtype.kind == "f")
