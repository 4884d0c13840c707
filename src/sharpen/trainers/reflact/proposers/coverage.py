"""Which train examples stand for the failures: a choice that covers what failed, is varied, and prefers short ones.

An example covers a failure as far as the two are alike: in the words and letters of the input, in the type, in the
output. Examples are taken one by one, each for what it adds to those already there, so a second one like the
first is worth little. Among the few best the stream decides, so that alternatives differ.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from sharpen.core.rng import Stream
from sharpen.trainers.reflact.proposers.base import Attempted, Shot

_MOST_FAILURES = 48
_MOST_SHOTS = 160
_AMONG = 6
_NEARLY = 0.6
"""The stream chooses among the best few, and only among those worth at least this share of the best one."""
_SHORTER = 1 / 3
"""How much being short counts. At 1, single examples were too short to teach the embedded model much."""
_WORD = re.compile(r"\w+")


class Coverage:
    """The failures of a step against the examples that could be added."""

    def __init__(self, failures: Sequence[Attempted], pool: Sequence[Shot], rng: Stream) -> None:
        failed = [_shot(attempt) for attempt in rng.sample(failures, _MOST_FAILURES)]
        self.pool = rng.sample(pool, _MOST_SHOTS)
        self._features: dict[str, frozenset[str]] = {}
        self._failed = failed
        self._alike = [[self._likeness(failure, shot) for failure in failed] for shot in self.pool]
        sizes = sorted(len(shot.input) + len(shot.output) for shot in self.pool) or [1]
        typical = max(1, sizes[len(sizes) // 2])
        self._brevity = [math.pow(1 + (len(shot.input) + len(shot.output)) / typical, -_SHORTER) for shot in self.pool]

    def choose(self, count: int, present: Sequence[Shot], rng: Stream) -> list[Shot]:
        """Up to `count` examples to add to those `present`."""
        covered = [max((self._likeness(f, shot) for shot in present), default=0.0) for f in self._failed]
        left = list(range(len(self.pool)))
        chosen: list[Shot] = []
        while left and len(chosen) < count:
            worth = {number: self._worth(number, covered) for number in left}
            best = sorted(left, key=lambda number: (-worth[number], number))[:_AMONG]
            pick = rng.choice([number for number in best if worth[number] >= _NEARLY * worth[best[0]]])
            left.remove(pick)
            chosen.append(self.pool[pick])
            covered = [max(pair) for pair in zip(covered, self._alike[pick], strict=True)]
        return chosen

    def draw(self, count: int, rng: Stream) -> list[Shot]:
        """Up to `count` examples at random, whatever failed."""
        return rng.sample(self.pool, count)

    def support(self, shot: Shot) -> int:
        """How many failures are of the example's kind, at least one."""
        return max(1, sum(failure.type == shot.type for failure in self._failed))

    def _worth(self, number: int, covered: Sequence[float]) -> float:
        added = sum(max(0.0, alike - best) for alike, best in zip(self._alike[number], covered, strict=True))
        return added * self._brevity[number]

    def _likeness(self, one: Shot, other: Shot) -> float:
        left, right = self._features_of(one.input), self._features_of(other.input)
        union = len(left | right)
        shared = len(left & right) / union if union else 1.0
        return 0.5 * shared + 0.25 * (one.type == other.type) + 0.25 * (one.output == other.output)

    def _features_of(self, text: str) -> frozenset[str]:
        if text not in self._features:
            plain = text.casefold()
            letters = (plain[at : at + 3] for at in range(len(plain) - 2))
            self._features[text] = frozenset([*_WORD.findall(plain), *letters])
        return self._features[text]


def _shot(attempt: Attempted) -> Shot:
    given, wanted = attempt.example or (attempt.item.text, "")
    return Shot(attempt.item.id, given, wanted, attempt.item.type)
