"""When to give a candidate up before its proof begins. Nothing is ever accepted here, so no error rate hangs on these rules.

Most candidates change nothing, and only items that the incumbent fails can show a gain. So those are tried first, with the
new arm alone. Where the new arm succeeds, both arms are drawn again: an *echo*. A real gain comes back, luck does not. As
soon as the gains that came back, with what chance could have hidden, fall short of a gain worth finding, the candidate is
rejected.

Gains spread thin over noisy items do not come back one by one. They are spared: the screen ends, and the proof begins, where
draws of the same item often differ, and where more gains were seen than there are items to lose.

Where draws can't be repeated, every gain is certain, and the question is whether enough of them can be there for a proof.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sharpen.gates.base import Draw
from sharpen.gates.bounded_mean import binomial_tail
from sharpen.gates.readings import Reading, flatten

LARGE = 0.5
"""Scores below it are failures, and differences from here on are gains that can be seen on one item."""
_NEARLY, _MOST = 0.05, 0.8
"""How close to none or full marks a score counts as that, and the share of such scores that makes a task all or nothing."""
_ECHOES = 3
_FEW = 2
"""Gains that came back are drawn again, up to `_ECHOES` times, while there are at most so many: then one may be luck."""
_DEVIATES, _DOUBT = 1.7, 0.2
"""How much chance may have hidden: standard deviations, and the variance allowed for where nothing was seen."""
_CLEAR = 0.5
"""Standard deviations by which gains must stand out for the proof to begin before all failures were tried."""
_NOISY, _FEWEST_GAINS = 0.5, 4
"""The share of echoes in which the arms differ from which on a task counts as noisy, and the gains it takes to tell."""
_MORE = 1.5
"""Standard deviations above the seen number of gains that may be there, where more were seen than could be lost."""
_PLENTY = 8.0
"""Where gains alone would be so many times surer than a proof asks for, what may have been lost is looked at."""
_HIDDEN = 2.0
"""Standard deviations above the seen number of gains that may still be found, where draws can't be repeated."""


@dataclass(frozen=True, slots=True)
class Screened:
    """What the screen came to: a reason to reject, or draws to make, or neither: then the proof begins."""

    reason: str = ""
    draws: tuple[Draw, ...] = ()


def screen(readings: Sequence[Reading], worthwhile: float, block: int, level: float) -> Screened:
    """`readings` in the order items are judged in; `worthwhile` is the gain in items that is worth finding."""
    unknown = flatten(reading.draw_stored() for reading in readings)
    if unknown:
        return Screened(draws=unknown)
    failing = [r for r in readings if r.stored is not None and r.stored < LARGE]
    if _begun(readings, failing) or not _all_or_nothing(readings):
        return Screened()
    if not failing:
        return Screened("there is nothing to gain: the current candidate has full marks on all items")
    tried = next((place for place, reading in enumerate(failing) if not reading.new), len(failing))
    state = _State(readings, failing, failing[:tried], worthwhile)
    if not readings[0].repeatable:
        return state.certain(block, level)
    return state.by_echoes(block)


def _begun(readings: Sequence[Reading], failing: Sequence[Reading]) -> bool:
    """Whether draws were made that only the proof asks for."""
    repeatable, failures = readings[0].repeatable, {reading.item for reading in failing}
    return any((r.new and r.item not in failures) or (repeatable and r.old and not _gained(r)) for r in readings)


def _all_or_nothing(readings: Sequence[Reading]) -> bool:
    """Whether most scores are full marks or none. Gains in graded scores do not show on one item."""
    stored = [score for r in readings for score in r.stored_draws if score is not None]
    return sum(min(score, 1.0 - score) <= _NEARLY for score in stored) >= _MOST * len(stored)


def _gained(reading: Reading) -> bool:
    first = reading.new[0] if reading.new else None
    return first is not None and reading.stored is not None and first - reading.stored >= LARGE


@dataclass(frozen=True, slots=True)
class _State:
    readings: Sequence[Reading]
    failing: Sequence[Reading]
    tried: Sequence[Reading]
    worthwhile: float

    @property
    def gains(self) -> list[Reading]:
        return [reading for reading in self.tried if _gained(reading)]

    @property
    def scale(self) -> float:
        """From the failures tried to all of them."""
        return len(self.failing) / max(1, len(self.tried))

    def next_block(self, size: int) -> Screened:
        start = len(self.tried)
        return Screened(draws=flatten(r.draws(new=1) for r in self.failing[start : start + size]))

    def futile(self) -> Screened:
        return Screened(
            f"no gain worth finding is in sight after {len(self.tried)} of {len(self.failing)} items "
            "that the current candidate fails"
        )

    # -- where draws vary

    def by_echoes(self, block: int) -> Screened:
        if not self.tried:
            return self.next_block(block)
        gains = self.gains
        missing = flatten(r.draws(new=2 + n, old=2 + n) for r, n in self._wanted(gains))
        if missing:
            return Screened(draws=missing)
        means = [_mean_echo(reading) for reading in gains]
        seen, square = sum(means), sum(mean * mean for mean in means)
        hoped = (seen + _DEVIATES * math.sqrt(_DOUBT + square)) * self.scale
        if hoped <= self.worthwhile and not self._more_gains_than_can_be_lost(len(gains)):
            return self.futile()
        differing = sum(_echo(reading, 0) != 0.0 for reading in gains)
        noisy = len(gains) >= _FEWEST_GAINS and differing + 0.5 >= _NOISY * (len(gains) + 1.5)
        clear = (
            len(self.tried) >= min(2 * block, len(self.failing))
            and (seen - _CLEAR * math.sqrt(square)) * self.scale >= self.worthwhile
        )
        if len(self.tried) == len(self.failing) or noisy or clear:
            return Screened()
        return self.next_block(block)

    def _wanted(self, gains: Sequence[Reading]) -> list[tuple[Reading, int]]:
        """Which gains are to be drawn again, and the number of the echo."""
        wanted = [(reading, 0) for reading in gains if _echo(reading, 0) is None]
        holding = list(gains)
        for number in range(1, _ECHOES):
            holding = [reading for reading in holding if (_echo(reading, number - 1) or 0.0) > 0.0]
            if wanted or len(holding) > _FEW:
                break
            wanted = [(reading, number) for reading in holding if _echo(reading, number) is None]
        return wanted

    def _more_gains_than_can_be_lost(self, gains: int) -> bool:
        hoped = (gains + _MORE * math.sqrt(max(1, gains))) * self.scale
        return hoped - (len(self.readings) - len(self.failing)) >= self.worthwhile

    # -- where they do not

    def certain(self, block: int, level: float) -> Screened:
        gains = len(self.gains)
        rest = self.scale - 1.0
        hoped = gains + (gains + _HIDDEN * math.sqrt(gains + _HIDDEN**2 / 4) + _HIDDEN**2 / 2) * rest
        if self.tried and (hoped < self.worthwhile or binomial_tail(math.floor(hoped), math.floor(hoped)) > level):
            return self.futile()
        if len(self.tried) == len(self.failing) or binomial_tail(gains, gains) <= level / _PLENTY:
            return Screened()
        return self.next_block(block)


def _echo(reading: Reading, number: int) -> float | None:
    """The difference of both arms when a gain was drawn again: 0 where a draw failed, None where it is not drawn yet. With
    the first echo the old arm is drawn twice, once for the draw that showed the gain: so both arms have been drawn as often,
    side by side, and the proof can use all of it."""
    if min(len(reading.new), len(reading.old)) < 2 + number:
        return None
    new = reading.new[1 + number]
    old = [score for score in reading.old[0 if number == 0 else 1 + number : 2 + number] if score is not None]
    return 0.0 if new is None or not old else new - sum(old) / len(old)


def _mean_echo(reading: Reading) -> float:
    echoes = [echo for number in range(_ECHOES) if (echo := _echo(reading, number)) is not None]
    return sum(echoes) / len(echoes) if echoes else 0.0
