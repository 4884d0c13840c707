"""An environment as a task: its items are episodes, its scores are raw returns, and what plays is a policy.

Which episodes there are depends on the environment and the split seed alone, so that all policies are compared on the same
ones. Train has no items: a trainer plays its own episodes, in a stream of seeds that none of these is from.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.metadata import version
from math import inf, isfinite
from pathlib import Path
from typing import Any

from sharpen.core.candidate import Candidate
from sharpen.core.digest import Json, digest
from sharpen.core.errors import UsageError
from sharpen.core.item import Item
from sharpen.core.outcome import Outcome
from sharpen.core.task import Attempt, Brief, Requirements, Splits, Task
from sharpen.tasks import gym
from sharpen.tasks.gym import about, making, seeds
from sharpen.tasks.gym.making import Making
from sharpen.tasks.gym.playing import Played, Stage
from sharpen.tasks.splitting import Deal

_VERSION = "1"


class Environment(Task):
    """A gymnasium environment. `making` says how trainers make theirs."""

    trainee = "policy"
    calls_per_rollout = 0
    score_range = (-inf, inf)

    def __init__(self, made: Making, deal: Deal, val: int, test: int) -> None:
        for setting, count in (("val_episodes", val), ("test_episodes", test)):
            if isinstance(count, bool) or not isinstance(count, int) or count < 1:
                raise UsageError(f"{made.environment}: {setting} must be a whole number of 1 or more, got {count!r}")
        self.name = made.environment
        self.making = made
        self.protocol = made.protocol
        self.version = digest([_VERSION, _packages(made), _plain(made.spec.kwargs), made.limit, made.settings()])[:12]
        self.brief = Brief(f"The environment {self.name}: a policy acts in it for the highest return.")
        self.requirements = Requirements(checks=(_lacking, partial(_makeable, made)))
        self._sizes = {"val": val, "test": test}
        self._deal = deal
        self._stage = Stage(made)

    def splits(self) -> Splits:
        limit = self._deal.limit
        held = {
            name: self._items(name, size if limit is None else min(size, limit), self._deal.seed)
            for name, size in self._sizes.items()
        }
        return Splits(train=(), **held)

    def episodes(self, count: int, seed: int = 0) -> tuple[Item, ...]:
        """Episodes that are in no split, for whoever wants to look or to measure again."""
        return self._items("play", count, seed)

    def _items(self, stream: str, count: int, seed: int) -> tuple[Item, ...]:
        drawn: Sequence[int] = seeds.evaluation(stream, self.name, seed, count)
        return tuple(
            Item(f"{stream}-{number:04d}", {"seed": drawn[number], "stream": stream, "episode": number})
            for number in range(count)
        )

    def seed(self) -> Candidate:
        return about.untrained(self.name)

    async def play(self, item: Item, policy: Candidate) -> Played:
        """One episode; those of a policy that are asked for at the same time are played together."""
        return await self._stage.play(policy, item)

    async def rollout(self, item: Item, candidate: Candidate, attempt: Attempt) -> Outcome:
        played = await self.play(item, candidate)
        return Outcome(item.id, played.total, played.total, feedback=played.told(), measures=played.measures())


def _packages(made: Making) -> list[str]:
    names = ["gymnasium", "ale-py"] if making.is_atari(made.spec) else ["gymnasium"]
    return [*(f"{name} {version(name)}" for name in names), *_own_source(made)]


def _own_source(made: Making) -> list[str]:
    """Of an environment that a module brings: the module's source, so that an edited one never meets scores from before."""
    module, colon, _ = made.environment.partition(":")
    file = getattr(sys.modules.get(module), "__file__", None) if colon else None
    return [digest(Path(file).read_text(encoding="utf-8", errors="replace"))] if file and file.endswith(".py") else []


def _plain(value: Any) -> Json:
    """A registered argument as far as it can be told; of an object, what kind it is."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, str | int | None) or (isinstance(value, float) and isfinite(value)):
        return value
    return f"{value}" if isinstance(value, float) else type(value).__qualname__


def _lacking() -> str | None:
    return next(iter(gym.missing()), None)


def _makeable(made: Making) -> str | None:
    try:
        making.spaces(made)
    except making.Lacking as error:
        return str(error)
    return None
