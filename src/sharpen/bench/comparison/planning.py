"""How many runs it takes: planning from a spread that is known, or from a pilot and the limit above its spread. Pure.

A pilot of one arm gives the spread of its runs, for a comparison of two independent groups. One of two arms, paired by seed,
gives the spread of the differences. A spread estimated from few runs is as likely too small as too large, and planning with
it finds too little in half of all cases; so plans use the limit that the true spread is below with 80 % confidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import stdev

from sharpen.bench.comparison.measure import Measure
from sharpen.bench.comparison.pairing import SEED, Pairing, paired
from sharpen.bench.comparison.rows import Testing, over_seeds
from sharpen.bench.comparison.spread import enough_runs, values_of
from sharpen.bench.comparison.times import refuse_none
from sharpen.bench.evidence.nouns import Arm
from sharpen.core.errors import UsageError
from sharpen.stats import exact, power

CONFIDENCE = 0.8
LOOKED_AT = (3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 50)
_MOST_SIMULATED = 2_000


@dataclass(frozen=True)
class Pilot:
    """What a pilot says: differences of pairs, or the values of one arm."""

    name: str
    values: tuple[float, ...]
    paired: bool
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """One question answered for one spread: `n` runs in each arm (or pairs) for `effect`. `simulated` is the power that the
    pilot's own values show at this n and effect."""

    spread: float
    which: str
    effect: float
    n: int | None
    power: float | None
    simulated: float | None


def pilot_of(arms: Sequence[Arm], measure: Measure, task: str | None, *, pairs: bool) -> Pilot:
    """The pilot in one arm, or in two that are paired by seed."""
    tasks = [name for name in arms[0].tasks if all(name in arm.tasks for arm in arms)]
    if task is None:
        if len(tasks) != 1:
            raise UsageError(f"the pilot has {len(tasks)} tasks; choose one with --task: {', '.join(tasks)}")
        task = tasks[0]
    elif task not in tasks:
        raise UsageError(f"the pilot has no task {task!r}; there are {', '.join(tasks)}")
    if not pairs:
        if len(arms) != 1:
            names = ", ".join(arm.name for arm in arms)
            raise UsageError(
                f"a pilot for independent groups is one arm, and these are {len(arms)} ({names}); name one as SOURCE@ARM"
            )
        found, notes = values_of(arms[0], task, measure)
        return Pilot(arms[0].name, tuple(found), False, tuple(notes))
    if len(arms) != 2:
        raise UsageError(
            f"a paired pilot is two arms with the same seeds, and {len(arms)} was given: --pilot A --pilot B"
        )
    for arm in arms:
        enough_runs(arm, task, measure)
    both = arms[0].name, arms[1].name
    sides = paired(arms[0].on(task), arms[1].on(task), Pairing(SEED), both, "")
    row = over_seeds(task, sides, measure, Testing())
    if row.times is not None:
        refuse_none(row.times.old.reached + row.times.new.reached, row.times.old.n + row.times.new.n, measure)
    differences = [value.new - value.old for value in row.values if value.old is not None and value.new is not None]
    if len(differences) < 2:
        raise UsageError(
            f"{both[0]} and {both[1]} share {len(differences)} seed; the spread of differences takes at least 2"
        )
    return Pilot(f"{both[1]} minus {both[0]}", tuple(differences), True, row.notes)


def spreads_of(pilot: Pilot | None, given: float | None) -> list[tuple[str, float]]:
    """The spreads to plan with, the one to be used first."""
    if pilot is None:
        assert given is not None
        return [("as given", given)]
    upper = power.upper_spread(pilot.values, CONFIDENCE)
    return [(f"upper limit, {100 * CONFIDENCE:.0f} %", upper), ("as seen in the pilot", stdev(pilot.values))]


def plans(
    spreads: Sequence[tuple[str, float]], pilot: Pilot | None, *, paired: bool, effect: float | None, n: int | None,
    target: float, alpha: float,
) -> list[Plan]:  # fmt: skip
    """n for an effect, the effect for an n, or the power of both; for neither, the smallest effect of several n. Numbers
    so small that the exact test of a comparison finds nothing whatever they show have no power, whatever a formula says."""
    fewest = least(paired, alpha)
    if n is not None and n < fewest:
        each = "pairs" if paired else "runs in each arm"
        raise UsageError(f"{n} {each} can't come below p = {alpha:g}, whatever they show: it takes {fewest} at least")
    made = []
    for which, spread in spreads:
        asked = [n] if n is not None or effect is not None else [size for size in LOOKED_AT if size >= fewest]
        for size in asked:
            made.append(_plan(which, spread, pilot, paired, effect, size, target, alpha))
    return made


def _plan(
    which: str, spread: float, pilot: Pilot | None, paired: bool, effect: float | None, n: int | None, target: float,
    alpha: float,
) -> Plan:  # fmt: skip
    if n is None:
        assert effect is not None
        n = power.runs_needed(effect, spread, paired=paired, target=target, alpha=alpha)
        n = None if n is None else max(n, least(paired, alpha))
    elif effect is None:
        effect = power.smallest_effect(n, spread, paired=paired, target=target, alpha=alpha)
        assert effect is not None
    if n is None:
        return Plan(spread, which, effect, None, None, None)
    chance = power.power(effect, spread, n, paired=paired, alpha=alpha)
    simulated = None
    if pilot is not None and n <= _MOST_SIMULATED:
        data = list(pilot.values) if pilot.paired else (pilot.values, pilot.values)
        simulated = power.simulated(data, effect, n, alpha=alpha)
    return Plan(spread, which, effect, n, chance, simulated)


def least(paired: bool, alpha: float) -> int:
    """How few pairs, or runs in each arm, an exact test needs to come to `alpha` at all."""
    return exact.pairs_needed(alpha) if paired else exact.runs_needed(alpha)
