"""Playing episodes: those of one policy are stepped together, and none notices the others.

A policy is asked for the actions of a whole table at a time. The table always has the same number of seats, an episode
always sits in the same one (its number modulo the seats), an empty seat shows zeros, and torch computes with one thread: so
what an episode comes to does not depend on which others are played beside it. Episodes join and leave while the table plays,
in a thread of its own; one that nobody waits for any more is left where it is.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any

from sharpen.core.candidate import Candidate
from sharpen.core.errors import NoScore, UsageError
from sharpen.core.item import Item
from sharpen.core.rng import Stream
from sharpen.tasks.gym import about, making
from sharpen.tasks.gym.making import Making

if TYPE_CHECKING:
    from gymnasium import Env, Space

    from sharpen.tasks.gym.policy import Player

_SEATS = 32
_SEATS_OF_IMAGES = 8
"""Fewer: a network for images takes its time for empty seats too."""


@dataclass(frozen=True)
class Played:
    """What an episode came to. `success` is None where the environment says nothing of it."""

    total: float
    length: int
    cut_off: bool
    success: float | None = None

    def measures(self) -> dict[str, float]:
        said = {"return": self.total, "length": float(self.length)}
        return said if self.success is None else {**said, "success": self.success}

    def told(self) -> str:
        end = "cut off at the limit" if self.cut_off else "ended"
        return f"{end} after {self.length} step{'' if self.length == 1 else 's'} with a return of {self.total:g}"


class Episode:
    """One episode from its reset to its end."""

    def __init__(self, env: Env[Any, Any], item: Item, name: str) -> None:
        self.env = env
        self._item = item
        self._name = name
        self._total, self._length = 0.0, 0
        seed = int(item.inputs["seed"])
        self.observation: Any = env.reset(seed=seed)[0]
        self._chance = Stream(seed, "untrained")
        self._random: Space[Any] | None = None

    def random_action(self) -> Any:
        """The next action of a player that draws each one at random; decided by the episode's seed."""
        if self._random is None:
            self._random = self.env.action_space
            self._random.seed(self._chance.below(2**31))
        return self._random.sample()

    def step(self, action: Any) -> Played | None:
        """Act; what the episode came to where it ended with that."""
        self.observation, reward, terminated, truncated, info = self.env.step(action)
        self._length += 1
        self._total += float(reward)
        if not isfinite(self._total):
            raise NoScore(
                f"{self._name}: the return of episode {self._item.id} (seed {self._item.inputs['seed']}) became "
                f"{self._total} at step {self._length}; an environment must give finite rewards"
            )
        if not (terminated or truncated):
            return None
        success = info.get("is_success")
        return Played(self._total, self._length, not terminated, None if success is None else float(success))


class Table:
    """The seats and what the policy sees of them. `player` None draws actions at random."""

    def __init__(self, player: Player | None, observations: Space[Any]) -> None:
        import numpy as np
        from gymnasium import spaces

        self._player = player
        self.seats = seats(observations)
        self._seen: Any = (
            {key: np.zeros((self.seats, *one.shape), one.dtype) for key, one in observations.spaces.items()}
            if isinstance(observations, spaces.Dict)
            else np.zeros((self.seats, *observations.shape), observations.dtype)
        )

    def actions(self, playing: dict[int, Episode]) -> dict[int, Any]:
        """An action for each episode, by its seat."""
        if self._player is None:
            return {seat: episode.random_action() for seat, episode in playing.items()}
        for seat, episode in playing.items():
            self._show(seat, episode.observation)
        chosen = self._player.act(self._seen)
        return {seat: chosen[seat] for seat in playing}

    def clear(self, seat: int) -> None:
        self._show(seat, None)

    def _show(self, seat: int, observation: Any) -> None:
        if isinstance(self._seen, dict):
            for key, rows in self._seen.items():
                rows[seat] = 0 if observation is None else observation[key]
        else:
            self._seen[seat] = 0 if observation is None else observation


def seats(observations: Space[Any]) -> int:
    return _SEATS_OF_IMAGES if len(observations.shape or ()) == 3 else _SEATS


def table_for(made: Making, candidate: Candidate) -> Table:
    """A table at which a candidate plays. A policy of another environment is refused."""
    if about.environment_of(candidate) != made.environment:
        raise UsageError(
            f"this policy is for {about.environment_of(candidate) or 'no environment'}; it cannot play {made.environment}"
        )
    observations, actions = making.spaces(made)
    if about.read(candidate) is None:
        return Table(None, observations)
    import torch

    from sharpen.tasks.gym import policy

    torch.set_num_threads(1)
    return Table(policy.load(candidate, made.environment, observations, actions), observations)


class Stage:
    """Where rollouts of a task come together: one table for each candidate that is playing."""

    def __init__(self, made: Making) -> None:
        self._making = made
        self._rounds: dict[str, Round] = {}
        self._lock = threading.Lock()

    async def play(self, candidate: Candidate, item: Item) -> Played:
        return await asyncio.wrap_future(self._join(candidate, item))

    def _join(self, candidate: Candidate, item: Item) -> Future[Played]:
        future: Future[Played] = Future()
        with self._lock:
            current = self._rounds.get(candidate.digest)
            if current is None or not current.takes(item, future):
                current = self._rounds[candidate.digest] = Round(self._making, candidate, self._over)
                current.takes(item, future)
                threading.Thread(
                    target=current.run, name=f"episodes of {self._making.environment}", daemon=True
                ).start()
        return future

    def _over(self, ended: Round) -> None:
        with self._lock:
            for digest in [digest for digest, current in self._rounds.items() if current is ended]:
                del self._rounds[digest]


class Round:
    """The episodes of one candidate from when the first joins until nobody is left."""

    def __init__(self, made: Making, candidate: Candidate, over: Callable[[Round], None]) -> None:
        self._making = made
        self._candidate = candidate
        self._over = over
        self._lock = threading.Lock()
        self._closed = False
        self._waiting: list[tuple[Item, Future[Played]]] = []
        self._playing: dict[int, Episode] = {}
        self._wanted: dict[int, Future[Played]] = {}
        self._spare: list[Env[Any, Any]] = []

    def takes(self, item: Item, future: Future[Played]) -> bool:
        """Let an episode join; False where the round has just ended."""
        with self._lock:
            if not self._closed:
                self._waiting.append((item, future))
            return not self._closed

    def run(self) -> None:
        try:
            table = table_for(self._making, self._candidate)
            while self._seat(table):
                self._step(table)
        except BaseException as error:  # it belongs to those who wait for the episodes, in another thread
            with self._lock:
                self._closed = True
            for future in (*self._wanted.values(), *(future for _, future in self._waiting)):
                _settle(future, error)
        finally:
            self._over(self)
            for env in (*self._spare, *(episode.env for episode in self._playing.values())):
                env.close()

    def _seat(self, table: Table) -> bool:
        """Let those who wait sit down where their seats are free; False when there is nobody."""
        for seat in [seat for seat, future in self._wanted.items() if future.cancelled()]:
            self._leave(seat, table)
        with self._lock:
            self._waiting = [(item, future) for item, future in self._waiting if not future.cancelled()]
            ready: dict[int, tuple[Item, Future[Played]]] = {}
            for item, future in self._waiting:
                seat = int(item.inputs["episode"]) % table.seats
                if seat not in self._wanted:
                    ready.setdefault(seat, (item, future))
            if not ready and not self._wanted:
                self._closed = True
                return False
            began = {id(future) for _, future in ready.values()}
            self._waiting = [waiting for waiting in self._waiting if id(waiting[1]) not in began]
        for seat, (item, future) in ready.items():
            self._wanted[seat] = future
            self._tried(seat, table, partial(self._begin, seat, item))
        return True

    def _begin(self, seat: int, item: Item) -> None:
        env = self._spare.pop() if self._spare else making.make(self._making, training=False)
        self._playing[seat] = Episode(env, item, self._making.environment)

    def _step(self, table: Table) -> None:
        if self._playing:
            for seat, action in table.actions(self._playing).items():
                self._tried(seat, table, partial(self._playing[seat].step, action))

    def _tried(self, seat: int, table: Table, move: Callable[[], Played | None]) -> None:
        """Make a move of one episode; its end, or its error, is handed to whoever waits for it."""
        try:
            played = move()
        except BaseException as error:  # as in `run`
            _settle(self._wanted[seat], error)
            self._leave(seat, table)
            return
        if played is not None:
            _settle(self._wanted[seat], played)
            self._leave(seat, table)

    def _leave(self, seat: int, table: Table) -> None:
        del self._wanted[seat]
        table.clear(seat)
        episode = self._playing.pop(seat, None)
        if episode is None:
            return
        if self._making.atari is not None:
            # A reset with a seed begins from the cartridge, which takes long enough to do it only once.
            self._spare.append(episode.env)
        else:
            episode.env.close()


def _settle(future: Future[Played], end: Played | BaseException) -> None:
    if future.set_running_or_notify_cancel():
        if isinstance(end, BaseException):
            future.set_exception(end)
        else:
            future.set_result(end)
