"""Observations in the shapes policies take: images with their channels first, mixed kinds as one vector.

Policies see single boxes, numbers, and flat mappings of those. Anything else gymnasium knows how to flatten is flattened;
what neither is, is refused with the space named.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from sharpen.core.errors import UsageError

_CHANNELS = (1, 3, 4)


def suited(env: gymnasium.Env[Any, Any], name: str) -> gymnasium.Env[Any, Any]:
    """`env`, wrapped as far as its observations need it."""
    actions = env.action_space
    if isinstance(actions, spaces.Discrete) and actions.start != 0:
        raise UsageError(f"environment {name!r}: actions must be numbered from 0, these begin at {actions.start}")
    if not isinstance(actions, spaces.Box | spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
        raise UsageError(f"environment {name!r}: no policy acts in {actions}")
    seen = env.observation_space
    if not _plain(seen) and not (isinstance(seen, spaces.Dict) and all(map(_plain, seen.spaces.values()))):
        if not seen.is_np_flattenable:
            raise UsageError(f"environment {name!r}: observations {seen} can't be made one vector")
        env = gymnasium.wrappers.FlattenObservation(env)
        seen = env.observation_space
    if isinstance(seen, spaces.Dict):
        images = [key for key, space in seen.spaces.items() if channels_last(space)]
        return ChannelsFirst(env, images) if images else env
    return ChannelsFirst(env, None) if channels_last(seen) else env


def channels_last(space: spaces.Space[Any]) -> bool:
    """Whether observations are images whose last dimension is their channels."""
    if not isinstance(space, spaces.Box) or space.dtype != np.uint8 or len(space.shape) != 3:
        return False
    return space.shape[2] in _CHANNELS and space.shape[0] not in _CHANNELS


def _plain(space: spaces.Space[Any]) -> bool:
    return isinstance(space, spaces.Box | spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary)


class ChannelsFirst(gymnasium.ObservationWrapper[Any, Any, Any]):  # type: ignore[misc]
    """Images as (channel, row, column): the observation itself, or those of a mapping that are named."""

    def __init__(self, env: gymnasium.Env[Any, Any], images: list[str] | None) -> None:
        super().__init__(env)
        self._images = images
        space: Any = env.observation_space
        if images is None:
            self.observation_space = _turned(space)
        else:
            turned = {key: _turned(space[key]) if key in images else space[key] for key in space.spaces}
            self.observation_space = spaces.Dict(turned)

    def observation(self, observation: Any) -> Any:
        if self._images is None:
            return np.moveaxis(observation, 2, 0)
        return {key: np.moveaxis(value, 2, 0) if key in self._images else value for key, value in observation.items()}


def _turned(space: spaces.Box) -> spaces.Box:
    return spaces.Box(np.moveaxis(space.low, 2, 0), np.moveaxis(space.high, 2, 0), dtype=np.uint8)
