"""Time until something happens, where for some it never did while anybody looked: steps until a curve reaches a value.

A run that did not get there is censored: it tells that its time is longer than the steps seen, and no more.
`kaplan_meier` is the share of runs that are not there yet, by step; `median` where it comes to a half, which it may never
do. Means of such times are not known; `restricted_mean` is the mean time up to a horizon that all arms were watched to, the
area under that curve. `pseudo_values` spread it over the runs (leave one out), so that pairs and arms can be compared as
values of any other kind are; where nobody was censored before the horizon they are the times themselves, cut at the
horizon. `log_rank` tests whether two arms get there at the same pace, by all permutations of who belongs to which arm, or
by swaps within pairs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sharpen.stats import student
from sharpen.stats.errors import BadData
from sharpen.stats.exact import RESAMPLES, Test
from sharpen.stats.means import Estimate
from sharpen.stats.resampling import numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sharpen.stats.resampling import Floats

    Marks = NDArray[np.bool_]

_MOST_ARRANGEMENTS = 200_000
_CHUNK = 20_000
_SAME = 1e-9


@dataclass(frozen=True, slots=True)
class Times:
    """When each run got there; where it never did, the last step seen. `reached` tells the two apart."""

    steps: tuple[float, ...]
    reached: tuple[bool, ...]

    def __post_init__(self) -> None:
        if len(self.steps) != len(self.reached):
            raise BadData(f"{len(self.steps)} times, but {len(self.reached)} marks of who got there")
        numbers(self.steps, 1, "times")

    def __len__(self) -> int:
        return len(self.steps)

    def without(self, place: int) -> Times:
        return Times(
            self.steps[:place] + self.steps[place + 1 :], self.reached[:place] + self.reached[place + 1 :]
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Survival:
    """The share that is not there yet, from each of `steps` on; before the first it is 1. `at_risk` were still on their way
    just before the step, `events` got there at it."""

    steps: tuple[float, ...]
    shares: tuple[float, ...]
    at_risk: tuple[int, ...]
    events: tuple[int, ...]


def kaplan_meier(times: Times) -> Survival:
    """The Kaplan–Meier estimate, with an entry for each step at which somebody got there."""
    there = sorted({step for step, reached in zip(times.steps, times.reached, strict=True) if reached})
    share, shares, risks, events = 1.0, [], [], []
    for step in there:
        risk = sum(one >= step for one in times.steps)
        event = sum(one == step and reached for one, reached in zip(times.steps, times.reached, strict=True))
        share *= 1 - event / risk
        shares.append(share)
        risks.append(risk)
        events.append(event)
    return Survival(tuple(there), tuple(shares), tuple(risks), tuple(events))


def median(times: Times) -> float | None:
    """The step by which half of the runs got there; None where less than half did."""
    found = kaplan_meier(times)
    return next((step for step, share in zip(found.steps, found.shares, strict=True) if share <= 0.5 + _SAME), None)


def horizon(*arms: Sequence[float]) -> float:
    """The last step that every arm was watched to, from the last steps of its runs."""
    return min(max(ends) for ends in arms)


def restricted_mean(times: Times, until: float, level: float = 0.95) -> Estimate:
    """The mean time up to `until`, with Greenwood's error and Student's t. Where nobody is censored before `until` this is
    the interval of Student for the mean of the times cut there, within 0 and `until`."""
    found, n = kaplan_meier(times), len(times)
    mean = _area(found, 0.0, until)
    if n < 2:
        raise BadData(f"{n} run; an interval of a restricted mean takes at least 2")
    total = 0.0
    for step, risk, event in zip(found.steps, found.at_risk, found.events, strict=True):
        if step < until and risk > event:
            total += _area(found, step, until) ** 2 * event / (risk * (risk - event))
    half = student.critical(level, n - 1) * math.sqrt(total * n / (n - 1))
    return Estimate(mean, max(0.0, mean - half), min(until, mean + half), n, "restricted mean, t", level)


def pseudo_values(times: Times, until: float) -> list[float]:
    """What each run adds to the restricted mean: n times the mean of all less n - 1 times that of the others."""
    n = len(times)
    whole = _area(kaplan_meier(times), 0.0, until)
    if n == 1:
        return [whole]
    return [n * whole - (n - 1) * _area(kaplan_meier(times.without(place)), 0.0, until) for place in range(n)]


def _area(found: Survival, low: float, high: float) -> float:
    """The area under the step curve from `low` to `high`."""
    edges = [low, *(step for step in found.steps if low < step < high), high]
    total = 0.0
    for start, end in itertools.pairwise(edges):
        passed = [share for step, share in zip(found.steps, found.shares, strict=True) if step <= start]
        total += (end - start) * (passed[-1] if passed else 1.0)
    return total


def log_rank(new: Times, old: Times, *, paired: bool = False, seed: int = 0) -> Test:
    """Whether both arms get there at the same pace, two-sided. Paired, runs are swapped with their partner only."""
    n, m = len(new), len(old)
    if paired and n != m:
        raise BadData(f"pairs need both times: {n} of the new arm, {m} of the old one")
    steps, reached = np.array([*new.steps, *old.steps]), np.array([*new.reached, *old.reached])
    arrangements = 2**n if paired else math.comb(n + m, n)
    least = 2.0 / arrangements if paired or n == m else 1.0 / arrangements
    seen = _statistics(steps, reached, (np.arange(n + m) < n)[None, :])[0]
    exact = arrangements <= _MOST_ARRANGEMENTS
    hits = drawn = 0
    for block in _arrangements(n, m, paired, exact, seed):
        hits += int((_statistics(steps, reached, block) >= seen - _SAME * max(1.0, seen)).sum())
        drawn += len(block)
    how = "swaps within pairs" if paired else "permutations"
    if exact:
        return Test(hits / drawn, f"log-rank, exact {how}", least)
    return Test((hits + 1) / (drawn + 1), f"log-rank, {drawn:,} {how}", least)


def log_rank_statistic(new: Times, old: Times) -> float:
    """The standardised log-rank statistic: above 0 where the new arm gets there earlier."""
    steps, reached = np.array([*new.steps, *old.steps]), np.array([*new.reached, *old.reached])
    difference, variance = _scores(steps, reached, (np.arange(len(steps)) < len(new))[None, :])
    return float(difference[0] / math.sqrt(variance[0])) if variance[0] > 0 else 0.0


def _statistics(steps: Floats, reached: Marks, members: Marks) -> Floats:
    """How far each arrangement is from an equal pace, whichever arm is faster."""
    difference, variance = _scores(steps, reached, members)
    size: Floats = np.abs(difference) / np.sqrt(np.where(variance > 0, variance, 1.0))
    return np.where(variance > 0, size, 0.0)


def _scores(steps: Floats, reached: Marks, members: Marks) -> tuple[Floats, Floats]:
    """Observed less expected arrivals in the first arm, and their variance, for rows of who belongs to it."""
    there = np.unique(steps[reached])
    at_risk = (steps[None, :] >= there[:, None]).astype(np.float64)
    arrives = ((steps[None, :] == there[:, None]) & reached[None, :]).astype(np.float64)
    risk, events = at_risk.sum(axis=1), arrives.sum(axis=1)
    own = members.astype(np.float64)
    risk_own, events_own = own @ at_risk.T, own @ arrives.T
    expected = risk_own * events / risk
    spread = expected * (1 - risk_own / risk) * (risk - events) / np.maximum(risk - 1, 1)
    return (events_own - expected).sum(axis=1), spread.sum(axis=1)


def _arrangements(n: int, m: int, paired: bool, exact: bool, seed: int) -> Iterator[Marks]:
    """Blocks of rows that say who is in the first arm: all there are, or as many as are drawn elsewhere."""
    generator = np.random.Generator(np.random.PCG64(seed))
    total = (2**n if paired else math.comb(n + m, n)) if exact else RESAMPLES
    chosen = itertools.combinations(range(n + m), n)
    for start in range(0, total, _CHUNK):
        rows = min(_CHUNK, total - start)
        if paired:
            if exact:
                kept = (np.arange(start, start + rows)[:, None] >> np.arange(n)) % 2 == 0
            else:
                kept = generator.random((rows, n)) < 0.5
            yield np.concatenate([kept, ~kept], axis=1)
            continue
        if exact:
            places = np.array(list(itertools.islice(chosen, rows)))
        else:
            places = generator.random((rows, n + m)).argpartition(n, axis=1)[:, :n]
        members = np.zeros((rows, n + m), dtype=np.bool_)
        np.put_along_axis(members, places, True, axis=1)
        yield members
