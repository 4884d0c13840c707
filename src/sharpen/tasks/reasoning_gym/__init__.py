"""The family `reasoning-gym/NAME`: every data set of the package reasoning-gym as a task. `task.py` is the task, `making.py`
makes the items in a process of its own, `guard.py` decides which answers may reach a scorer that evaluates them.

The package itself is loaded by what needs it, not by importing this.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING

from sharpen.core.errors import MissingRequirement, UsageError, nearest

if TYPE_CHECKING:
    from sharpen.core.digest import Json
    from sharpen.core.task import Task
    from sharpen.tasks.splitting import Deal

DESCRIPTION = "Puzzles that the package reasoning-gym makes and scores, such as reasoning-gym/chain_sum."

_LEFT_OUT = ("composite",)
"""Made of other data sets, so there is nothing to make without naming them."""


def members() -> list[str]:
    """The names of the data sets."""
    if importlib.util.find_spec("reasoning_gym") is None:
        raise MissingRequirement("reasoning-gym is not installed: pip install 'sharpen[reasoning-gym]'")
    known = importlib.import_module("reasoning_gym.factory").DATASETS
    return sorted(name for name in known if name not in _LEFT_OUT)


def make(
    name: str,
    *,
    deal: Deal | None = None,
    size: int = 200,
    seed: int = 0,
    ratio: str = "3:3:4",
    max_tokens: int = 256,
    **own: Json,
) -> Task:
    """The data set `name` as a task of `size` items; `own` are the data set's own settings."""
    from sharpen.tasks.reasoning_gym.task import Puzzles
    from sharpen.tasks.splitting import Deal

    known = members()
    if name not in known:
        raise UsageError(
            f"reasoning-gym has no data set {name!r}{nearest(name, known)}; it has {len(known)}, among them "
            f"{', '.join(known[:: len(known) // 8])}"
        )
    for setting, value in (("size", size), ("max_tokens", max_tokens)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise UsageError(f"reasoning-gym/{name}: {setting} must be a whole number of 1 or more, got {value!r}")
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise UsageError(f"reasoning-gym/{name}: seed must be a whole number, got {seed!r}")
    return Puzzles(name, Deal() if deal is None else deal, size, seed, ratio, max_tokens, own)
