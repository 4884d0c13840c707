"""The difference between two candidates on the same items: its interval, its p-value, and what may be said of it.

All three come from one place and agree: "better" is said exactly where the interval lies above 0, which is exactly
where p is at most 1 - level. Two tests have to agree before anything is said:

- sign flips, exact, which take the differences to be symmetric about 0 where the two do equally well. Three items
  that rise and none that falls have p = 0.25, among 3 items or 120;
- Student's t and its form for skewed values (`skew`), which take nothing but a mean of 0, from enough values.

The interval is that of the second, drawn out to 0 where the first is not convinced. Where all but a few differences
are the same, so that their spread says little, and scores have bounds, it allows for what was not seen (`unseen`).
Differences of items that belong together (questions about one document, episodes of one seed) are counted by their
group. `benchmarks/coverage.py` has what this comes to for scores of many shapes.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sharpen.stats.resampling import Floats

BETTER, WORSE, OPEN = "better", "worse", "can't tell"
STUDENT, UNSEEN = "sign flips and skew-corrected t", "sign flips and bounds for the unseen"


@dataclass(frozen=True, slots=True)
class Interval:
    """`p` is two-sided, of "no difference in the mean"; `groups` is how many groups the items were counted by."""

    mean: float
    low: float
    high: float
    n: int
    method: str
    p: float = 1.0
    level: float = 0.95
    groups: int | None = None

    @property
    def verdict(self) -> str:
        """What may be said of the new one: better, worse, or neither."""
        return BETTER if self.low > 0.0 else WORSE if self.high < 0.0 else OPEN


def paired_difference(
    new: Sequence[float],
    old: Sequence[float],
    level: float = 0.95,
    *,
    span: float = 1.0,
    groups: Sequence[Hashable] | None = None,
) -> Interval:
    """The mean of `new - old` over items. Scores differ by at most `span`, and so do the ends of the interval. `groups`
    names the group of each item, where items belong together."""
    if len(new) != len(old):
        raise ValueError(f"pairs need both scores: {len(new)} new, {len(old)} old")
    return mean_difference([a - b for a, b in zip(new, old, strict=True)], level, span=span, groups=groups)


def mean_difference(
    differences: Sequence[float] | Floats,
    level: float = 0.95,
    *,
    span: float = 1.0,
    groups: Sequence[Hashable] | None = None,
) -> Interval:
    """The mean of differences within -span..span. Fewer than two say nothing: the interval is the whole range then, or
    none where the range has no ends."""
    n = len(differences)
    mean = math.fsum(differences) / n if n else 0.0
    if n < 2:
        ends = (-span, span) if isfinite(span) else (mean, mean)
        return Interval(mean, *ends, n, "one pair" if n else "no pairs", 1.0, level)
    from sharpen.stats.resampling import by_group, numbers  # with numpy, which a job may never need

    data = numbers(differences, what="differences")
    if groups is None:
        found = judge(data, data, level, span)
        return Interval(mean, max(-span, found.low), min(span, found.high), n, found.method, found.p, level)
    totals, values, widest = by_group(data, groups)
    if len(totals) < 2:
        ends = (-span, span) if isfinite(span) else (min(0.0, mean), max(0.0, mean))
        return Interval(mean, *ends, n, "one group", 1.0, level, 1)
    found = judge(totals, values, level, span * widest)
    named = f"{found.method}, by group"
    return Interval(mean, max(-span, found.low), min(span, found.high), n, named, found.p, level, len(totals))


@dataclass(frozen=True, slots=True)
class Judged:
    """The ends of an interval, and the two-sided p-value that agrees with them."""

    low: float
    high: float
    p: float
    method: str


def judge(flipped: Floats, data: Floats, level: float, span: float) -> Judged:
    """`flipped` are the numbers whose signs are turned, `data` those whose mean is estimated; without groups the same."""
    from sharpen.stats import sign_flips, skew, unseen

    alpha = round(1.0 - level, 12)
    flips = sign_flips.two_sided_share(flipped)
    fewest = math.ceil(1 - math.log2(alpha))
    moved = int((flipped != 0.0).sum())
    if isfinite(span) and (moved < min(fewest, len(flipped) - 1) or unseen.few_differ(flipped, fewest)):
        (low, high), p, method = unseen.ends(flipped, level, -span, span), flips, UNSEEN
        if moved >= fewest:
            p = max(flips, unseen.p(flipped, -span, span))
    else:
        found = skew.moments(data)
        (low, high), p, method = found.ends(level), max(flips, found.p()), STUDENT
    return _agreeing(Judged(low, high, p, method), alpha)


def _agreeing(found: Judged, alpha: float) -> Judged:
    """Drawn out to 0 where p is too large; and p too large where the last digit of an end is 0."""
    if found.p > alpha:
        return replace(found, low=min(found.low, 0.0), high=max(found.high, 0.0))
    if found.low <= 0.0 <= found.high:
        return replace(found, p=math.nextafter(alpha, 1.0))
    return found
