"""What a gate reads out of the draws of one item, and the order items are judged in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from sharpen.core.rng import Stream
from sharpen.gates.base import Draw, Pair

NEW, OLD = "new", "old"


@dataclass(frozen=True, slots=True)
class Reading:
    """One item as the gate sees it. Fresh draws were made for this decision; stored ones were there before. Where a draw
    can't be repeated, the first one of each arm is all there is, and counts as both."""

    item: int
    pair: Pair
    repeatable: bool
    new: tuple[float | None, ...]
    """The new arm's fresh draws."""
    old: tuple[float | None, ...]
    stored_draws: tuple[float | None, ...]
    """The incumbent's scores from before the decision."""
    stored: float | None
    """Their mean; None where there is none."""

    def difference(self, number: int) -> float | None:
        """New less old, of fresh pair `number`; None where one of them is missing or failed."""
        if number >= min(len(self.new), len(self.old)):
            return None
        new, old = self.new[number], self.old[number]
        return None if new is None or old is None else new - old

    def has(self, pairs: int) -> bool:
        """Whether so many fresh pairs were drawn."""
        return min(len(self.new), len(self.old)) >= pairs

    def draws(self, new: int = 0, old: int = 0) -> list[Draw]:
        """What is missing for so many fresh draws of each arm. The arms take turns at going first, from item to item, so
        that an endpoint that drifts while draws are made favours neither."""
        stored_new, stored_old = (self.pair.stored_new, self.pair.stored_old) if self.repeatable else (0, 0)
        missing_new = [Draw(self.item, NEW, n) for n in range(len(self.pair.new), stored_new + new if new else 0)]
        missing_old = [Draw(self.item, OLD, n) for n in range(len(self.pair.old), stored_old + old if old else 0)]
        return missing_old + missing_new if self.item % 2 else missing_new + missing_old

    def draw_stored(self) -> list[Draw]:
        """The incumbent's first outcome, where it is not there yet."""
        return [] if self.pair.old else [Draw(self.item, OLD, 0)]


def read(pairs: Sequence[Pair], repeatable: bool) -> list[Reading]:
    return [_reading(item, pair, repeatable) for item, pair in enumerate(pairs)]


def _reading(item: int, pair: Pair, repeatable: bool) -> Reading:
    new, old, stored = pair.new[:1], pair.old[:1], pair.old[:1]
    if repeatable:
        new, old, stored = pair.new[pair.stored_new :], pair.old[pair.stored_old :], pair.old[: pair.stored_old]
    scores = [score for score in stored if score is not None]
    return Reading(item, pair, repeatable, new, old, stored, sum(scores) / len(scores) if scores else None)


def flatten(draws: Iterable[Iterable[Draw]]) -> tuple[Draw, ...]:
    return tuple(draw for some in draws for draw in some)


@lru_cache(maxsize=64)
def random_order(items: int, decision: int) -> tuple[int, ...]:
    """The order items are judged in: random, another one for every decision, and blind to every outcome."""
    return tuple(Stream(0, "gate", decision, items).shuffled(range(items)))
