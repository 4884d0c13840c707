"""What the sequential gate reads out of the evidence: one value per item, and how far it can be trusted.

The first draw of both arms on an item is the screen. A large difference there may be chance, so where draws can be
repeated it must be confirmed: the item's value is the part of the difference that every fresh pair shows again, which
turns coin flips into zeros and leaves real changes as they are. The rule is the same for gains and losses, so that for a
candidate that changes nothing a value is as likely to be positive as negative. While an item waits for its fresh pairs it
is `pending`, and counts for the worst: a gain as nothing, a loss in full.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from sharpen.core.rng import Stream
from sharpen.gates.base import Draw, Pair
from sharpen.gates.betting import agreement

LARGE = 0.5
"""Differences from here on are confirmed, and scores below it are failures with something to gain."""

BOLDNESS = 0.8
"""How sure a bet on a fresh pair is that a real gain shows every time; at 1 a single miss would lose the stake."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One item as the gate sees it. `value` is what it says about the candidate, `hope` what it says if all goes well."""

    screened: bool
    usable: bool = True
    first: float = 0.0
    """The difference of the first draws, as it came."""
    value: float = 0.0
    hope: float = 0.0
    failing: bool | None = None
    """Whether the old arm failed the item at first; None while unknown."""
    pairs: int = 0
    """Fresh pairs asked for so far."""
    gain: float | None = None
    """The e-value of its fresh pairs against "this item did not improve"; None where the screen showed no large gain."""

    echo: float = 0.0
    """The mean difference of its fresh pairs."""
    flipped: bool = False
    """Whether a large difference was seen, and not seen again."""
    held: bool = False
    """Whether a large gain was seen, and seen again as often as it takes."""

    @property
    def pending(self) -> bool:
        return self.value != self.hope


@lru_cache(maxsize=64)
def order_of(items: int, decision: int) -> tuple[int, ...]:
    """The order items are judged in: random, another one for every decision, and blind to every outcome."""
    return tuple(Stream(0, "gate", decision, items).shuffled(range(items)))


def read(pair: Pair, repeatable: bool, confirmations: int, redraws: int) -> Reading:
    """The state of one item."""
    failed = (bool(pair.new) and pair.new[0] is None) or (bool(pair.old) and pair.old[0] is None)
    if failed:
        return Reading(screened=True, usable=False)
    old = pair.old[0] if pair.old else None
    failing = None if old is None else old < LARGE
    if old is None or not pair.new or pair.new[0] is None:
        return Reading(screened=False, failing=failing)
    difference = pair.new[0] - old
    if not repeatable or abs(difference) < LARGE:
        return Reading(True, True, difference, difference, difference, failing)
    return _confirmed(pair, difference, bool(failing), confirmations, redraws)


def _confirmed(pair: Pair, difference: float, failing: bool, confirmations: int, redraws: int) -> Reading:
    sign = 1.0 if difference > 0 else -1.0
    size, shown, drawn, gain, total = abs(difference), 0, 0, 1.0, 0.0
    asked = min(len(pair.new), len(pair.old)) - 1
    for new, old in zip(pair.new[1:], pair.old[1:], strict=False):
        if new is None or old is None:
            continue
        gain *= agreement(new, old, BOLDNESS)
        total += new - old
        drawn += 1
        if shown < confirmations:
            size = min(size, max(0.0, sign * (new - old)))
            shown += 1
    evidence = gain if sign > 0 else None
    settled = size == 0.0 or shown >= confirmations
    worst = sign * size if settled or sign < 0 else 0.0
    best = worst if settled or asked >= redraws else max(0.0, sign * size)
    held = settled and worst > 0.0
    return Reading(
        True, True, difference, worst, best, failing, asked, evidence, total / max(1, drawn), size == 0.0, held
    )


def screen(item: int, pair: Pair) -> list[Draw]:
    """The first draw of each arm, as far as it is missing."""
    return [Draw(item, arm, 0) for arm, draws in (("new", pair.new), ("old", pair.old)) if not draws]


def fresh_pair(item: int, pair: Pair) -> list[Draw]:
    """The next draw of both arms on a screened item; one arm alone where the other has it already."""
    sample = min(len(pair.new), len(pair.old))
    return [Draw(item, arm, sample) for arm, draws in (("new", pair.new), ("old", pair.old)) if len(draws) == sample]


def mean_difference(pair: Pair) -> float | None:
    """The difference of the two arms' means over everything drawn on an item; None where an arm has no score."""
    new = [score for score in pair.new if score is not None]
    old = [score for score in pair.old if score is not None]
    return sum(new) / len(new) - sum(old) / len(old) if new and old else None
