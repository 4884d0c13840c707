"""The family `textworld-express/GAME`: text games that the package textworld-express generates. `task.py` is the task,
`server.py` holds the Java program that plays the games, `player.py` is a scripted player that follows the skill.

The package itself is loaded by what needs it, not by importing this.
"""

from __future__ import annotations

import importlib.util
import shutil
from typing import TYPE_CHECKING

from sharpen.core.errors import MissingRequirement, UsageError, nearest

if TYPE_CHECKING:
    from sharpen.core.digest import Json
    from sharpen.core.task import Task
    from sharpen.tasks.splitting import Deal

DESCRIPTION = "Text games that textworld-express generates, such as textworld-express/coin; needs Java."

GAMES = {
    "coin": "Find the coin in a house of several rooms and take it.",
    "cookingworld": "Cook a meal by the recipe in the cookbook and eat it.",
    "twc": "Put things in the house where they belong.",
    "mapreader": "Find the way with a map, fetch the coin and put it in the box.",
    "arithmetic": "Solve a sum and put the things of that number in the box.",
    "sorting": "Put things in a box in the order of their number.",
    "simonsays": "Do what Simon says.",
    "peckingorder": "Follow the instructions of a book one by one.",
}


def members() -> list[str]:
    """The names of the games."""
    _need_package()
    if shutil.which("java") is None:
        raise MissingRequirement(
            "textworld-express needs Java on the path (on Debian: apt install default-jre-headless)"
        )
    return list(GAMES)


def _need_package() -> None:
    if importlib.util.find_spec("textworld_express") is None:
        raise MissingRequirement(
            "textworld-express is not installed: pip install 'sharpen[textworld-express]'; it needs Java too"
        )


def make(
    name: str,
    *,
    deal: Deal | None = None,
    size: int = 240,
    seed: int = 0,
    ratio: str = "1:1:2",
    turns: int = 20,
    **own: Json,
) -> Task:
    """The game `name` as a task of `size` games, each of at most `turns` commands; `own` are the game's own settings."""
    from sharpen.tasks.splitting import Deal
    from sharpen.tasks.textworld_express.task import TextGame

    _need_package()
    if name not in GAMES:
        raise UsageError(
            f"textworld-express has no game {name!r}{nearest(name, list(GAMES))}; the games are {', '.join(GAMES)}"
        )
    for setting, value in (("size", size), ("turns", turns)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise UsageError(f"textworld-express/{name}: {setting} must be a whole number of 1 or more, got {value!r}")
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise UsageError(f"textworld-express/{name}: seed must be a whole number, got {seed!r}")
    return TextGame(name, Deal() if deal is None else deal, size, seed, ratio, turns, own)
