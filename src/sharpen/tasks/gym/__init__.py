"""Environments as tasks: every id gymnasium knows is one, and what is trained on it is a policy.

`task.py` is the task, `making.py` makes the environment (`atari.py`, `shapes.py`: what policies see of it), `seeds.py` says
which episodes are played, `playing.py` plays them, `film.py` films one; `about.py` and `policy.py` are a policy's text and
its networks. gymnasium, torch and the rest are loaded by what needs them, not by importing this.
"""

from __future__ import annotations

import importlib.util
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sharpen.core.digest import Json
    from sharpen.core.task import Task
    from sharpen.tasks.splitting import Deal

INSTALL = "pip install 'sharpen[rl]'"
INSTALL_ATARI = "pip install 'sharpen[atari]'"
ROW = "ENVIRONMENT-vN"
DESCRIPTION = "A gymnasium environment by its id, such as CartPole-v1 or ALE/Pong-v5; what is trained is a policy."

_ID = re.compile(r"(?:[A-Za-z_][\w.]*:)?(?:\w[\w.-]*/)?\w[\w.-]*-v\d+")


def is_environment(name: str) -> bool:
    """Whether a task's name has the form of an environment's id: `CartPole-v1`, `ALE/Pong-v5`, `module:Own-v0`."""
    return _ID.fullmatch(name) is not None


def missing() -> tuple[str, ...]:
    """What stands in the way of playing here, found out without loading anything."""
    wanted = {"gymnasium": "gymnasium", "torch": "torch", "stable_baselines3": "stable-baselines3"}
    lacking = [package for module, package in wanted.items() if importlib.util.find_spec(module) is None]
    return (f"{', '.join(lacking)}: {INSTALL}",) if lacking else ()


def members() -> list[str]:
    """Every id that is known here; an error says what is lacking."""
    from sharpen.tasks.gym import making

    return making.ids()


def make(
    name: str,
    *,
    deal: Deal | None = None,
    val_episodes: int = 40,
    test_episodes: int = 50,
    kwargs: Json = None,
    max_steps: Json = None,
    atari: Json = None,
) -> Task:
    """The environment `name` as a task that decides on `val_episodes` and reports on `test_episodes`."""
    from sharpen.tasks.gym import making
    from sharpen.tasks.gym.task import Environment
    from sharpen.tasks.splitting import Deal

    made = making.from_settings(name, kwargs=kwargs, max_steps=max_steps, atari=atari)
    return Environment(made, deal or Deal(), val_episodes, test_episodes)
