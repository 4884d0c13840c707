"""Evidence as winnings: the e-values the sequential gate is made of, and the interval that goes with them.

Each test here is a bet against a null hypothesis at fair odds or worse, so that under the null the capital, which starts
at 1, reaches `c` with probability at most `1/c` whenever one stops. Stakes are not tuned to the data: every bettor plays a
few fixed stakes side by side and owns their average. Nothing here knows of items, arms or draws.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

STAKES = (0.25, 0.5, 0.75, 0.95)
CERTAIN = 1e100
"""Capital beyond which nobody counts: the null hypothesis is impossible, or as good as that."""

_EARLY = 2.0 / 3.0
_LONGEST_WALK = 128


class SignWalk:
    """A bet that values symmetric about zero lean upwards. Each value is divided by the largest seen before it (by 1
    until there was one) and cut to -1..1, so that small differences can be bet on too; for 0/1 scores that changes nothing.

    `units` counts the steps before the first one that is not -1 or 1; None while there was no such step."""

    def __init__(self) -> None:
        self._capital = [1.0] * len(STAKES)
        self._scale = 0.0
        self.count = self.wins = 0
        self.units: int | None = None

    def push(self, value: float) -> None:
        if value == 0.0:
            return
        payoff = max(-1.0, min(1.0, value / (self._scale or 1.0)))
        self._scale = max(self._scale, abs(value))
        if self.units is None and abs(payoff) != 1.0:
            self.units = self.count
        self.count += 1
        self.wins += value > 0.0
        self._capital = [min(CERTAIN, c * (1.0 + s * payoff)) for c, s in zip(self._capital, STAKES, strict=True)]

    @property
    def capital(self) -> float:
        return sum(self._capital) / len(STAKES)


class TotalWalk:
    """A bet that `count` values in -1..1, met in random order without replacement, sum to more than `total`. Once the sum
    so far can't be undone by those still to come, the null hypothesis is impossible and the capital unbounded."""

    def __init__(self, count: int, total: float = 0.0) -> None:
        self._left = count
        self._total = total
        self._sum = 0.0
        self._capital = [1.0] * len(STAKES)

    def push(self, value: float) -> None:
        expected = (self._total - self._sum) / self._left
        if expected > -1.0:
            limit = 0.95 / (1.0 + expected)
            self._capital = [
                min(CERTAIN, c * max(0.0, 1.0 + min(s, limit) * (value - expected)))
                for c, s in zip(self._capital, STAKES, strict=True)
            ]
        self._sum += value
        self._left -= 1

    @property
    def capital(self) -> float:
        if self._sum - self._left > self._total:
            return CERTAIN
        return sum(self._capital) / len(STAKES)


def agreement(new: float, old: float, boldness: float) -> float:
    """An e-value from one fresh pair of scores in 0..1 against "the item's expected score did not rise": whatever that
    score is, (1+c(2n-1))(1-c(2o-1)) has expectation at most 1 - c^2(2p-1)^2. A pair (1, 0) is worth up to 4, where a bet
    on the sign of the difference could only double."""
    return (1.0 + boldness * (2.0 * new - 1.0)) * (1.0 - boldness * (2.0 * old - 1.0))


def any_gain(items: Iterable[float], shares: Sequence[float] = (0.2, 0.4, 0.6, 0.8)) -> float:
    """An e-value against "no item improved" from one e-value per item: a bettor for each `share` of the items that may be
    real gains, and the average of what they own."""
    values = list(items)
    total = 0.0
    for share in shares:
        capital = 1.0
        for value in values:
            capital = min(CERTAIN, capital * (1.0 - share + share * value))
        total += capital
    return total / len(shares)


def sign_capital(wins: float, losses: float) -> float:
    """What a `SignWalk` owns after so many whole wins and losses, in any order; fractions interpolate."""
    total: float = sum(min(CERTAIN, (1.0 + s) ** min(wins, 300.0) * (1.0 - s) ** losses) for s in STAKES)
    return total / len(STAKES)


@dataclass(frozen=True, slots=True)
class SignTest:
    """A test of given `level` on a `SignWalk` of at most `steps` steps, which may stop at any of them, with a last look once
    all steps are done. Two thirds of the level are for stopping early.

    For unit steps everything is exact: `threshold` is the capital that a fair walk reaches with its share of `level`, and
    the last look gets all that the walk, as long as it was, has not spent. Other steps make do with universal bounds."""

    steps: int
    level: float

    def passes(self, walk: SignWalk) -> bool:
        """Whether the walk may stop here and reject the null hypothesis."""
        spent = 0.0 if walk.units is None or self._loose else _exact(self.steps, self.level).spent[walk.units]
        wanted = self.threshold if walk.units is None else 1.0 / max(1e-12, _EARLY * self.level - spent)
        return walk.capital >= wanted

    def passes_last(self, walk: SignWalk, flips: Callable[[], float]) -> bool:
        """Whether the finished walk rejects the null hypothesis. `flips` gives the p-value of the plain sign-flip test."""
        if walk.units is not None or self._loose:
            return flips() <= (1.0 - _EARLY) * self.level
        table = _exact(self.steps, self.level)
        return table.spent[walk.count] + sum(table.alive[walk.count][walk.wins :]) <= self.level

    @property
    def threshold(self) -> float:
        return 1.0 / (_EARLY * self.level) if self._loose else _exact(self.steps, self.level).threshold

    @property
    def _loose(self) -> bool:
        return self.steps > _LONGEST_WALK

    @property
    def deviates(self) -> float:
        """How many standard deviations above its mean a fair sum has to end up for the last look, about."""
        return NormalDist().inv_cdf(1.0 - self.level)


@dataclass(frozen=True, slots=True)
class _Table:
    """The exact fate of a fair walk: by each step, the probability to have stopped, and, by number of wins, not to."""

    threshold: float
    spent: tuple[float, ...]
    alive: tuple[tuple[float, ...], ...]


@lru_cache(maxsize=256)
def _exact(steps: int, level: float) -> _Table:
    capital = [[sign_capital(w, d - w) for w in range(d + 1)] for d in range(steps + 1)]
    low, high = 1.0, 1.0 / (_EARLY * level)
    best = _fate(capital, high)
    for _ in range(20):
        middle = math.sqrt(low * high)
        table = _fate(capital, middle)
        if table.spent[-1] <= _EARLY * level:
            high, best = middle, table
        else:
            low = middle
    return best


def _fate(capital: Sequence[Sequence[float]], threshold: float) -> _Table:
    alive: list[tuple[float, ...]] = [(1.0,)]
    spent = [0.0]
    for row in capital[1:]:
        reached = 0.0
        following = [0.0] * len(row)
        for wins, probability in enumerate(alive[-1]):
            for after in (wins, wins + 1):
                if row[after] >= threshold:
                    reached += probability / 2
                else:
                    following[after] += probability / 2
        spent.append(spent[-1] + reached)
        alive.append(tuple(following))
    return _Table(threshold, tuple(spent), tuple(alive))


def mean_interval(values: Sequence[float], level: float) -> tuple[float, float]:
    """An interval for the mean of values in -1..1 met in random order, of confidence `level` wherever one stopped."""
    counts = Counter(values)
    low = _lower_bound(counts, (1.0 - level) / 2)
    high = -_lower_bound(Counter({-value: count for value, count in counts.items()}), (1.0 - level) / 2)
    return low, high


def _lower_bound(counts: Counter[float], level: float) -> float:
    def capital(mean: float) -> float:
        total = 0.0
        for stake in STAKES:
            scaled = stake / (1.0 + abs(mean))
            total += math.exp(min(200.0, sum(n * math.log1p(scaled * (v - mean)) for v, n in counts.items())))
        return total / len(STAKES)

    low, high = -1.0, 1.0
    if capital(low) * level < 1.0:
        return low
    for _ in range(20):
        middle = (low + high) / 2
        if capital(middle) * level >= 1.0:
            low = middle
        else:
            high = middle
    return low
