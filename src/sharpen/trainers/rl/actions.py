"""Which algorithm can learn which actions: told from the environment alone, before anything is trained."""

from __future__ import annotations

from typing import Any

import gymnasium

from sharpen.core.errors import UsageError
from sharpen.trainers.rl.recipe import Algorithm


def check(algorithm: Algorithm, environment: str, space: gymnasium.Space[Any]) -> None:
    """Raise `UsageError` where an algorithm can't learn these actions."""
    fitting = {"discrete": gymnasium.spaces.Discrete, "continuous": gymnasium.spaces.Box, None: gymnasium.Space}
    if not isinstance(space, fitting[algorithm.actions]):
        others = "ppo, a2c, sac and td3" if isinstance(space, gymnasium.spaces.Box) else "ppo and a2c"
        able = "ppo, a2c and dqn" if isinstance(space, gymnasium.spaces.Discrete) else others
        raise UsageError(
            f"{algorithm.name} learns {algorithm.actions} actions, and those of {environment} are {space}; "
            f"{able} can learn them"
        )
