"""The default gate: proves that a candidate is better, spends rollouts where they decide, and stops as soon as they have.

The null hypothesis: *the mean effect over the items is at most zero*. Where draws vary, that is the mean over these val
items of the expected score, new less old. Where draws can't be repeated, the only chance is the choice of the items, and it
is the mean over items like these.

The proof. Items are judged in a random order that no outcome has a say in, each by fresh draws of both arms, side by side;
stored draws prove nothing, because they were chosen or may be out of date. Looks are planned: every fifth of a pass, up to
`passes` passes over the items (where draws can't be repeated: every tenth of one pass). At each look the differences are put
to an exact test for bounded values (`bounded_mean`), at a level that keeps the probability to accept at any look at `alpha`
(`spending`). The printed interval is that test turned round: its lower end, at the level of the look, is above zero exactly
when the candidate is accepted. Items of a declared group count as one.

Giving up. A candidate that mends nothing is found out before the proof begins (`screening`), and one that falls behind is
given up at a look. Neither can lead to an acceptance.

`alpha_spending="run"` divides `alpha` over the decisions of a whole run: nine tenths evenly over those planned, the last
tenth over any beyond, the j-th of them getting 6/(pi j)^2 of it, so that the sum stays below `alpha` however long the run
gets.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

from sharpen.core.errors import UsageError
from sharpen.gates.base import Evidence, Need, Verdict
from sharpen.gates.bounded_mean import binomial_tail, interval, is_unit, p_value
from sharpen.gates.readings import Reading, flatten, random_order, read
from sharpen.gates.screening import screen
from sharpen.gates.spending import FairWalk

_LOOKS_PER_PASS = {True: 5, False: 10}
"""By whether draws can be repeated."""
_FUTILE = ((0.0, -1.2), (0.3, 0.3), (1.0, 1.5))
"""Standard deviations above zero under which a candidate is given up, by the share of the looks that are behind."""


def _setting(default: Any, description: str) -> Any:
    return field(default=default, metadata={"description": description})


@dataclass(frozen=True, slots=True)
class Sequential:
    """Accepts what is proven better, spends rollouts where they decide, and stops as soon as they have."""

    alpha: float = _setting(0.05, "largest probability of accepting a candidate that is no better")
    alpha_spending: Literal["decision", "run"] = _setting("decision", "alpha is per decision, or spent over the run")
    worthwhile: float = _setting(0.03, "smallest gain in mean score worth looking for")
    passes: float = _setting(2.5, "most fresh pairs per item")
    block: int = _setting(0, "items screened at once; 0: a tenth of them, at least 5")

    name = "sequential"

    def __post_init__(self) -> None:
        if not 0.0 < self.alpha < 1.0:
            raise UsageError(f"gate sequential: alpha must lie between 0 and 1, got {self.alpha}")
        if self.alpha_spending not in ("decision", "run"):
            raise UsageError(f"gate sequential: alpha_spending is 'decision' or 'run', got {self.alpha_spending!r}")
        if not 0.0 <= self.worthwhile < 1.0:
            raise UsageError(f"gate sequential: worthwhile must lie in 0..1, got {self.worthwhile}")
        if not 1.0 <= self.passes <= 100.0:
            raise UsageError(f"gate sequential: passes must lie in 1..100, got {self.passes}")
        if self.block < 0:
            raise UsageError(f"gate sequential: block must be 0 (automatic) or more, got {self.block}")

    def decide(self, evidence: Evidence) -> Verdict | Need:
        level = self.level(evidence.decision, evidence.planned)
        by_item = read(evidence.pairs, evidence.repeatable)
        readings = [by_item[item] for item in random_order(len(by_item), evidence.decision)]
        if not readings:
            return Verdict(False, "there are no items to compare")
        block = self.block or max(5, math.ceil(len(readings) / 10))
        screened = screen(readings, self.worthwhile * len(readings), block, level)
        if screened.draws:
            return Need(screened.draws)
        if screened.reason:
            return Verdict(False, screened.reason)
        return self._prove(readings, evidence, level)

    def level(self, decision: int, planned: int) -> float:
        """The probability of a false accept that this decision may spend."""
        if self.alpha_spending == "decision":
            return self.alpha
        planned = max(1, planned)
        if decision < planned:
            return 0.9 * self.alpha / planned
        return 0.1 * self.alpha * 6.0 / (math.pi * (decision - planned + 1)) ** 2

    def most_pairs(self, repeatable: bool) -> float:
        """Fresh pairs per item that a decision takes at most."""
        return self.passes if repeatable else 1.0

    def _prove(self, readings: Sequence[Reading], evidence: Evidence, alpha: float) -> Verdict | Need:
        clusters = _clusters(readings, evidence.groups)
        looks = list(_looks(len(clusters), self.most_pairs(evidence.repeatable), _LOOKS_PER_PASS[evidence.repeatable]))
        walk = FairWalk()
        for number, count in enumerate(looks, 1):
            missing = flatten(r.draws(pairs, pairs) for cluster, pairs in _wanted(clusters, count) for r in cluster)
            if missing:
                return Need(missing)
            judged = _Judged(clusters, count)
            last = number == len(looks)
            futile = None if last or not evidence.repeatable else _futile_below((number - 1) / (len(looks) - 1))
            level = walk.look(judged.steps, alpha * number / len(looks), futile, unit=judged.unit)
            if judged.steps and judged.p <= level:
                return judged.verdict(True, f"better: {judged.tally}, p = {judged.p:.4f}", level)
            if last:
                return judged.verdict(False, f"not proven better: {judged.tally}", level)
            if judged.deviates < (-math.inf if futile is None else futile):
                return judged.verdict(False, f"no gain worth finding is in sight: {judged.tally}", level)
            if not evidence.repeatable and not _could_pass(judged, readings, alpha):
                return judged.verdict(False, f"the evidence can't suffice any more: {judged.tally}", level)
        raise AssertionError("the last look decides")


Cluster = list[Reading]


def _clusters(readings: Sequence[Reading], groups: Sequence[str] | None) -> list[Cluster]:
    """What counts as one: an item, or the items of a group; in the order of their first items."""
    if groups is None:
        return [[reading] for reading in readings]
    clusters: dict[str, Cluster] = {}
    for reading in readings:
        clusters.setdefault(groups[reading.item], []).append(reading)
    return list(clusters.values())


def _looks(clusters: int, passes: float, per_pass: int) -> Iterator[int]:
    """After how many differences the looks are."""
    most, seen = round(clusters * passes), 0
    for number in range(1, math.ceil(passes * per_pass - 1e-9) + 1):
        count = min(most, max(1, round(clusters * number / per_pass)))
        if count > seen:
            yield count
        seen = max(seen, count)
    if seen < most:
        yield most


def _wanted(clusters: Sequence[Cluster], count: int) -> Iterator[tuple[Cluster, int]]:
    """How many fresh pairs each cluster needs for `count` differences in order: pass after pass."""
    whole, part = divmod(count, len(clusters))
    for place, cluster in enumerate(clusters):
        yield cluster, whole + (place < part)


def _futile_below(share: float) -> float:
    for (start, low), (end, high) in pairwise(_FUTILE):
        if share <= end:
            return low + (high - low) * (share - start) / (end - start)
    return _FUTILE[-1][1]


class _Judged:
    """The differences up to a look. Those of a cluster in one pass are added up."""

    def __init__(self, clusters: Sequence[Cluster], count: int) -> None:
        self.bound = float(max(len(cluster) for cluster in clusters))
        self.values: list[float] = []
        self.pairs = 0
        for cluster, pairs in _wanted(clusters, count):
            for number in range(pairs):
                differences = [d for reading in cluster if (d := reading.difference(number)) is not None]
                if differences:
                    self.values.append(sum(differences))
                    self.pairs += len(differences)
        self.bound = max([self.bound, *map(abs, self.values)])
        self.steps = sum(value != 0.0 for value in self.values)
        self.unit = is_unit(self.values, self.bound)
        self.p = p_value(self.values, self.bound) if self.steps else 1.0

    @property
    def deviates(self) -> float:
        return sum(self.values) / math.sqrt(max(1e-12, sum(value * value for value in self.values)))

    @property
    def wins(self) -> int:
        return sum(value > 0.0 for value in self.values)

    @property
    def losses(self) -> int:
        return self.steps - self.wins

    @property
    def tally(self) -> str:
        return f"{self.wins} better, {self.losses} worse of {len(self.values)} compared"

    def verdict(self, accepted: bool, reason: str, level: float) -> Verdict:
        if not self.values:
            return Verdict(False, "no item could be compared: every one failed in an arm")
        per_value = self.pairs / len(self.values)
        low, high = (end / per_value for end in interval(self.values, level, self.bound))
        effect = sum(self.values) / self.pairs
        return Verdict(accepted, reason, effect, max(-1.0, min(low, effect)), min(1.0, max(high, effect)), self.p)


def _could_pass(judged: _Judged, readings: Sequence[Reading], level: float) -> bool:
    """Where every failure was tried: whether the gains there are suffice, should no further loss turn up."""
    gains = sum(bool(r.new) and r.difference(0) is not None and (r.difference(0) or 0.0) > 0.0 for r in readings)
    if not judged.unit:
        return True
    return binomial_tail(gains + judged.losses, gains) <= level
