"""Filming an episode: the same play as any other, with every few pictures kept, written as a GIF.

A film shows the whole episode. It has at most so many pictures a second and so many in all: where an episode is longer, more
steps pass from one picture to the next, and it looks faster than it was.
"""

from __future__ import annotations

import importlib.util
import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sharpen.core.candidate import Candidate
from sharpen.core.errors import UsageError
from sharpen.core.item import Item
from sharpen.files import write_atomic
from sharpen.tasks.gym import INSTALL, making
from sharpen.tasks.gym.making import Making
from sharpen.tasks.gym.playing import Episode, Played, table_for

if TYPE_CHECKING:
    from PIL.Image import Image

PICTURES_PER_SECOND = 25
LONGEST = 600
"""Pictures of a film."""
WIDEST = 320
_COLOURS = 64
_EMULATED = 60.0
"""Frames a second of the console."""


@dataclass(frozen=True)
class Film:
    """What was played, and how it was filmed: `speed` is how much faster than it was played it is shown."""

    played: Played
    pictures: int
    speed: float


def film(made: Making, candidate: Candidate, item: Item, path: Path) -> Film:
    """Play an episode and write it to `path`."""
    check(path)
    # Environments that draw with pygame would otherwise look for a screen.
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    table = table_for(made, candidate)
    env = making.make(made, training=False, render_mode="rgb_array")
    try:
        reel = Reel(_step_rate(made, env))
        seat = int(item.inputs["episode"]) % table.seats
        episode = Episode(env, item, made.environment)
        reel.take(lambda: _picture(made, env))
        played: Played | None = None
        while played is None:
            played = episode.step(table.actions({seat: episode})[seat])
            reel.take(lambda: _picture(made, env), last=played is not None)
    finally:
        env.close()
    write_atomic(path, reel.gif())
    return Film(played, len(reel.pictures), reel.speed)


def check(path: Path) -> None:
    """Whether a film can be written there, before anything is played."""
    if path.suffix.casefold() != ".gif":
        raise UsageError(f"films are written as GIF: give a name that ends in .gif, not {path.name!r}")
    if importlib.util.find_spec("PIL") is None:
        raise UsageError(f"films need Pillow: {INSTALL}")


class Reel:
    """Pictures of an episode of unknown length: when there are too many, every second one goes, and from then on only as
    many are taken."""

    def __init__(self, steps_per_second: float) -> None:
        self._rate = steps_per_second
        self._stride = max(1, round(steps_per_second / PICTURES_PER_SECOND))
        self._delay = max(20, 10 * round(100 * self._stride / steps_per_second))
        """Milliseconds from picture to picture; the format knows hundredths of a second, and viewers none below two."""
        self._step = 0
        self.pictures: list[Image] = []

    def take(self, picture: Any, *, last: bool = False) -> None:
        if last or self._step % self._stride == 0:
            self.pictures.append(picture())
        self._step += 1
        if len(self.pictures) > LONGEST:
            del self.pictures[1::2]
            self._stride *= 2

    @property
    def speed(self) -> float:
        return self._stride / self._rate * 1000 / self._delay

    def gif(self) -> bytes:
        written = io.BytesIO()
        first, *rest = self.pictures
        first.save(written, "GIF", save_all=True, append_images=rest, duration=self._delay, loop=0)
        return written.getvalue()


def _step_rate(made: Making, env: Any) -> float:
    if made.atari is not None:
        return _EMULATED / made.atari.frame_skip
    return float(env.metadata.get("render_fps") or 30)


def _picture(made: Making, env: Any) -> Image:
    from gymnasium import error as errors
    from PIL import Image

    try:
        pixels = env.render()
    except errors.Error as error:
        raise UsageError(f"{made.environment} can't be drawn: {error}") from error
    if pixels is None:
        raise UsageError(f"{made.environment} gives no pictures")
    picture = Image.fromarray(pixels)
    if picture.width > WIDEST:
        size = (WIDEST, round(picture.height * WIDEST / picture.width))
        picture = picture.resize(size, Image.Resampling.BILINEAR, reducing_gap=2.0)
    return picture.quantize(_COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
