"""Atari screens as policies see them: skipped frames, the brighter of the last two, small, grey, a few of them stacked.

The emulator is stepped directly: the screens of skipped frames are never fetched. Screens are shrunk by exact area
weights in whole numbers, so that the same screen is the same observation on every machine.
"""

from __future__ import annotations

from math import gcd
from typing import Any, TypeAlias

import gymnasium
import numpy as np
from gymnasium import spaces

from sharpen.tasks.gym.making import Atari

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


class Frames(gymnasium.Wrapper[Any, Any, Any, Any]):  # type: ignore[misc]
    """An Atari environment that was made with a frame skip of 1. Observations are (stack x colours, size, size) bytes.

    In training an episode ends with a life, where the options say so, and `going_on` then tells that the game is not over:
    `reset()` without a seed goes on with it, `reset(seed=...)` begins a new one. At an episode's end `info["episode"]` has
    its real return `r`, before any clipping, and its length `l`.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], options: Atari, *, training: bool) -> None:
        super().__init__(env)
        self._ale: Any = env.unwrapped.ale
        legal, minimal = self._ale.getLegalActionSet(), self._ale.getMinimalActionSet()
        self._actions = legal if env.action_space.n == len(legal) else minimal
        self._options = options
        self._ends_with_life = training and options.terminal_on_life_loss
        self._clips = training and options.clip_reward
        height, width = self._ale.getScreenDims()
        self._screen = (height, width) if options.grayscale else (height, width, 3)
        self._shrink = Shrink(height, width, options.size)
        self._colours = 1 if options.grayscale else 3
        shape = (options.stack * self._colours, options.size, options.size)
        self.observation_space = spaces.Box(0, 255, shape, np.uint8)
        self._seen = np.zeros(shape, np.uint8)
        self._lives = 0
        self._return, self._length = 0.0, 0
        self.going_on = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        self._return, self._length = 0.0, 0
        if seed is None and self.going_on:
            self.going_on = False
            observation, *_, info = self.step(0)
            return observation, info
        _, info = self.env.reset(seed=seed, options=options)
        if self._options.noop:
            for _ in range(int(self.env.unwrapped.np_random.integers(1, self._options.noop + 1))):
                self._ale.act(self._actions[0])
                if self._ale.game_over():
                    self.env.reset()
        self._lives = self._ale.lives()
        self.going_on = False
        self._seen[:] = 0
        self._see(self._fetch())
        return self._seen.copy(), info

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        ale, chosen = self._ale, self._actions[int(action)]
        last = self._options.frame_skip - 1
        reward, before = 0.0, None
        for frame in range(last + 1):
            reward += ale.act(chosen)
            if ale.game_over():
                break
            if frame == last - 1:
                before = self._fetch()
        screen = self._fetch()
        self._see(screen if before is None else np.maximum(screen, before, out=screen))
        over, truncated = bool(ale.game_over(with_truncation=False)), bool(ale.game_truncated())
        lives = ale.lives()
        self.going_on = self._ends_with_life and not over and not truncated and 0 < lives < self._lives
        self._lives = lives
        self._return, self._length = self._return + reward, self._length + 1
        ended = over or self.going_on
        info: dict[str, Any] = {"lives": lives}
        if ended or truncated:
            info["episode"] = {"r": self._return, "l": self._length}
        return self._seen.copy(), float(np.sign(reward)) if self._clips else reward, ended, truncated, info

    def _fetch(self) -> Array:
        screen = np.empty(self._screen, np.uint8)
        (self._ale.getScreenGrayscale if self._options.grayscale else self._ale.getScreenRGB)(screen)
        return screen

    def _see(self, screen: Array) -> None:
        """The newest screen last, the oldest gone."""
        self._seen[: -self._colours] = self._seen[self._colours :]
        if self._colours == 1:
            self._seen[-1] = self._shrink(screen)
        else:
            for colour in range(3):
                self._seen[colour - 3] = self._shrink(screen[:, :, colour])


class Shrink:
    """A picture made `size` x `size`: each new pixel is the mean of the area it covers, to the nearest whole number."""

    def __init__(self, height: int, width: int, size: int) -> None:
        self._down, tall = _shares(height, size)
        self._across, wide = _shares(width, size)
        self._area = tall * wide

    def __call__(self, picture: Array) -> Array:
        # Sums of whole numbers below 2**24 are exact in these floats.
        flat = _gathered(picture.astype(np.float32), self._down)
        total = _gathered(np.ascontiguousarray(flat.T), self._across).T.astype(np.int32)
        mean: Array = (2 * total + self._area) // (2 * self._area)
        return mean.astype(np.uint8)


_Shares: TypeAlias = list[tuple[Array, Array]]
"""For each new line: an old line that counts in it and by how much; then a second one of each, and so on."""


def _shares(before: int, after: int) -> tuple[_Shares, int]:
    """How old lines make new ones, in whole numbers, and what the shares of one new line add up to."""
    common = gcd(before, after)
    first = np.arange(after) * before // after
    shares: _Shares = []
    for line in (first + offset for offset in range(-(-before // after) + 1)):
        start = np.maximum(np.arange(after) * before, line * after)
        end = np.minimum((np.arange(after) + 1) * before, (line + 1) * after)
        weight = np.clip(end - start, 0, None) // common
        shares.append((np.minimum(line, before - 1), weight.astype(np.float32)[:, None]))
    return [share for share in shares if share[1].any()], before // common


def _gathered(lines: Array, shares: _Shares) -> Array:
    (line, weight), *rest = shares
    total: Array = lines[line] * weight
    for line, weight in rest:
        total += lines[line] * weight
    return total
