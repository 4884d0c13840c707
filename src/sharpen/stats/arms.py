"""Two arms against each other: paired over the same seeds or items, or two independent groups.

A comparison holds the effect (new minus old) with its interval, a p-value that agrees with it, standardised sizes,
the posterior probability that the new arm is better, and, where a margin was declared, whether it is proven not to be
worse, or proven to be the same, by more than that. Nothing here looks at whether the data seem normal before choosing
a test: deciding by a pre-test makes the error rate worse, not better. Paired, the correlation of the pairs and the
share of variance that pairing saved are told, since pairing helps only as far as they go together.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sharpen.stats import effects, exact, student
from sharpen.stats.errors import BadData
from sharpen.stats.means import Estimate, interval, student_interval
from sharpen.stats.paired import mean_difference
from sharpen.stats.resampling import by_group, numbers

if TYPE_CHECKING:
    from sharpen.stats.resampling import Floats

_FEW_PAIRS = exact.pairs_needed(0.05)
_ROUNDING = 1e-9
"""Values that differ by less than this share of their size differ by how they were written."""


@dataclass(frozen=True, slots=True)
class Margin:
    """A margin fixed before the data: `not_worse` if the effect is proven above -size (below size, where less is better),
    `same` if within -size..size, each at level alpha (one-sided, twice for `same`). `low` and `high` are the ends of the
    t interval that says the same: at level 1 - 2 alpha, so narrower than the one of the effect."""

    size: float
    not_worse: bool
    same: bool
    p_not_worse: float
    p_same: float
    low: float
    high: float
    level: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """`effect` is new minus old. `saved` is the share of the variance of the difference that pairing took away."""

    new: Estimate
    old: Estimate
    effect: Estimate
    paired: bool
    test: exact.Test
    p_t: float
    d: float | None
    hedges_g: float | None
    d_z: float | None
    cliffs_delta: float
    win_share: float
    better: float
    """The posterior probability that the effect is above 0, under the reference prior."""
    correlation: float | None = None
    saved: float | None = None
    margin: Margin | None = None
    warnings: tuple[str, ...] = ()

    @property
    def significant(self) -> bool:
        return self.test.p <= 1 - self.effect.level


def paired(
    new: Sequence[float],
    old: Sequence[float],
    *,
    level: float = 0.95,
    method: str = "auto",
    margin: float | None = None,
    lower: bool = False,
    seed: int = 0,
    span: float = math.inf,
    groups: Sequence[Hashable] | None = None,
) -> Comparison:
    """The arms on the same seeds or items, in the same order. `lower` says that less is better, which turns
    a margin around. Values differ by at most `span`; `groups` names the group of each pair, where pairs belong together."""
    if len(new) != len(old):
        raise BadData(f"pairs need both values: {len(new)} of the new arm, {len(old)} of the old one")
    one, other = numbers(new, 2, "pairs"), numbers(old, 2, "pairs")
    differences, size = one - other, float(max(np.abs(one).max(), np.abs(other).max()))
    counted = differences if groups is None else by_group(differences, groups)[1]
    n = len(counted)
    error = float(counted.std(ddof=1)) / math.sqrt(n)
    effect, p, how = _paired_effect(differences, level, method, seed, span, groups)
    test = exact.Test(p, how, 0.0 if method == "t" else exact.smallest_p(n))
    unpaired_variance = float(one.var(ddof=1) + other.var(ddof=1))
    saved = 1 - float(differences.var(ddof=1)) / unpaired_variance if unpaired_variance > 0 else None
    warnings = []
    if not test.can_reach:
        warnings.append(
            f"{n} pairs can't come below p = {test.smallest_p:.3g}, whatever they show: for 0.05 it takes {_FEW_PAIRS}"
        )
    if saved is not None and saved < 0:
        warnings.append("the pairs do not go together: pairing widened the interval here")
    either = _either_way(new, old, effect, error, n - 1, test, method, seed)
    return replace(
        either,
        paired=True,
        d_z=effects.d_z(differences.tolist()),
        correlation=effects.correlation(new, old),
        saved=saved,
        margin=margin_of(
            margin, effect.value, error, n - 1, 1 - level, lower=lower, least=_least(test, [differences], size)
        ),
        warnings=tuple(warnings),
    )


def _paired_effect(
    differences: Floats, level: float, method: str, seed: int, span: float, groups: Sequence[Hashable] | None
) -> tuple[Estimate, float, str]:
    """The effect with its interval, and the p-value with the name of its test."""
    found = mean_difference(differences, level, span=span, groups=groups)
    if method == "t":
        counted = differences if groups is None else by_group(differences, groups)[1]
        effect = replace(student_interval(counted.tolist(), level), n=len(differences))
        return effect, _p(effect.value, float(counted.std(ddof=1)) / math.sqrt(len(counted)), len(counted) - 1), "t"
    effect = Estimate(found.mean, found.low, found.high, found.n, found.method, level)
    if method != "auto":
        effect = interval(differences.tolist(), level, method, seed=seed)
        if found.p > round(1 - level, 12):
            effect = replace(effect, low=min(effect.low, 0.0), high=max(effect.high, 0.0))
    return effect, found.p, found.method


def unpaired(
    new: Sequence[float],
    old: Sequence[float],
    *,
    level: float = 0.95,
    method: str = "auto",
    margin: float | None = None,
    lower: bool = False,
    seed: int = 0,
    resamples: int = exact.RESAMPLES,
) -> Comparison:
    """The arms as independent groups: Welch's interval, which does not take their spreads to be equal. Permutations of
    Welch's t have to agree with it before there is a finding; where they do not, the interval is drawn out to 0."""
    one, other = numbers(new, 2, "values of the new arm"), numbers(old, 2, "values of the old arm")
    size = float(max(np.abs(one).max(), np.abs(other).max()))
    parts = [float(one.var(ddof=1)) / len(one), float(other.var(ddof=1)) / len(other)]
    error = math.sqrt(sum(parts))
    freedom = welch_freedom(parts, (len(one), len(other)))
    difference = float(one.mean() - other.mean())
    half = student.critical(level, freedom) * error if error > 0 else 0.0
    permuted = exact.permutation(new, old, seed, resamples=resamples)
    p = max(permuted.p, _p(difference, error, freedom)) if method != "t" else _p(difference, error, freedom)
    low, high = difference - half, difference + half
    if p > round(1 - level, 12):
        low, high = min(low, 0.0), max(high, 0.0)
    how = "Welch's t" if method == "t" else f"{permuted.method}, and Welch's t"
    effect = Estimate(difference, low, high, len(one) + len(other), "Welch's t", level)
    test = exact.Test(p, how, 0.0 if method == "t" else permuted.smallest_p)
    warnings = []
    if not test.can_reach:
        warnings.append(
            f"{len(one)} against {len(other)} runs can't come below p = {test.smallest_p:.3g}, whatever they show: "
            "for 0.05 it takes 4 in each arm"
        )
    either = _either_way(new, old, effect, error, freedom, test, method, seed)
    held = margin_of(
        margin, effect.value, error, freedom, 1 - level, lower=lower, least=_least(test, [one, other], size)
    )
    return replace(either, margin=held, warnings=tuple(warnings))


def unpaired_p(new: Sequence[float], old: Sequence[float], *, resamples: int = exact.RESAMPLES) -> float:
    """The p-value of `unpaired` alone."""
    one, other = numbers(new, 2, "values of the new arm"), numbers(old, 2, "values of the old arm")
    parts = [float(one.var(ddof=1)) / len(one), float(other.var(ddof=1)) / len(other)]
    plain = _p(float(one.mean() - other.mean()), math.sqrt(sum(parts)), welch_freedom(parts, (len(one), len(other))))
    # Where t alone is not convinced, nobody has to count.
    return plain if plain > 0.5 else max(plain, exact.permutation(new, old, resamples=resamples).p)


def one_sided(p: float, effect: float, side: int) -> float:
    """The p-value of one side from a two-sided one: `side` is 1 where an effect above 0 is what was asked for, else -1."""
    return p / 2 if effect * side > 0 else 1 - p / 2


def _either_way(
    new: Sequence[float],
    old: Sequence[float],
    effect: Estimate,
    error: float,
    freedom: float,
    test: exact.Test,
    method: str,
    seed: int,
) -> Comparison:
    """What is told of two arms whether they are paired or not, from the effect's standard error and degrees of freedom."""
    return Comparison(
        interval(new, effect.level, method, seed=seed),
        interval(old, effect.level, method, seed=seed),
        effect,
        False,
        test,
        _p(effect.value, error, freedom),
        effects.cohen_d(new, old),
        effects.hedges_g(new, old),
        None,
        effects.cliffs_delta(new, old),
        effects.win_share(new, old),
        _better(effect.value, error, freedom),
    )


def welch_freedom(parts: Sequence[float], sizes: Sequence[int]) -> float:
    """Welch's degrees of freedom, from each group's variance over its size."""
    below = sum(part**2 / (size - 1) for part, size in zip(parts, sizes, strict=True))
    return sum(parts) ** 2 / below if below > 0 else float(sum(sizes) - len(sizes))


def _p(effect: float, error: float, freedom: float) -> float:
    if error == 0.0:
        return 1.0 if effect == 0.0 else 0.0
    return student.two_sided(effect / error, freedom)


def _better(effect: float, error: float, freedom: float) -> float:
    if error == 0.0:
        return 0.5 if effect == 0.0 else float(effect > 0)
    return student.cdf(effect / error, freedom)


def alike(groups: Sequence[Sequence[float] | Floats], size: float) -> bool:
    """Whether the values of each group are all the same, but for the rounding of numbers as large as `size`."""
    return all(max(group) - min(group) <= _ROUNDING * size for group in groups)


def _least(test: exact.Test, groups: Sequence[Floats], size: float) -> float:
    """The smallest one-sided p of so few values where they are all alike: t would take no spread at all for proof."""
    return test.smallest_p / 2 if alike(groups, size) else 0.0


def margin_of(
    size: float | None,
    effect: float,
    error: float,
    freedom: float,
    alpha: float,
    *,
    lower: bool = False,
    least: float = 0.0,
) -> Margin | None:
    """What an effect with its standard error and degrees of freedom says of a margin. No p is smaller than `least`."""
    if size is None:
        return None
    if not 0 < size < math.inf:
        raise BadData(f"a margin must be above 0, got {size:g}")
    above = max(least, 1 - _better(effect + size, error, freedom))
    below = max(least, _better(effect - size, error, freedom))
    both, worse = max(above, below), below if lower else above
    level = 1 - 2 * alpha
    half = student.critical(level, freedom) * error if level > 0 and error > 0 else 0.0
    return Margin(size, worse <= alpha, both <= alpha, worse, both, effect - half, effect + half, level)
