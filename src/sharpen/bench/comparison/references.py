"""What 0 and 1 stand for on each task of a comparison, and scores, effects and intervals on that scale.

References come from the runs' own configurations, from a table that ships with the program and is looked up by task, or are
given as two numbers. Normalising is linear, so it changes no verdict on one task; over several tasks it decides what a mean
difference means, and so stands beside its protocol.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sharpen.bench.comparison.measure import Measure
from sharpen.bench.evidence.nouns import SCORES, Arm
from sharpen.core.errors import UsageError
from sharpen.stats.arms import Comparison
from sharpen.stats.errors import BadData
from sharpen.stats.means import Estimate
from sharpen.stats.normalise import Reference, look_up

_NO_SCORES = ("slope", "steps_to")
"""Summaries that are not scores, and have no place between a random player and a person."""


@dataclass(frozen=True, slots=True)
class Given:
    """References that were asked for: a table by name, or what 0 and 1 stand for on every task."""

    table: str = ""
    ends: Reference | None = None


@dataclass(frozen=True, slots=True)
class Normalised:
    """A row's figures on the scale of its reference."""

    reference: Reference
    old: Estimate
    new: Estimate
    effect: Estimate


def parse(text: str) -> Given:
    """`LOW:HIGH`, or the name of a table."""
    if ":" not in text:
        return Given(table=text)
    low, _, high = text.partition(":")
    try:
        ends = float(low), float(high)
        if not all(map(math.isfinite, ends)):
            raise ValueError
        return Given(ends=Reference(*ends, protocol="as given"))
    except ValueError as error:
        if isinstance(error, BadData):
            raise UsageError(f"--normalise {text}: {error}") from None
        raise UsageError(
            f"--normalise {text}: write the random and the reference score as LOW:HIGH, or the name of a table, such as "
            "atari57"
        ) from None


def references(
    arms: Sequence[Arm], tasks: Sequence[str], measure: Measure, given: Given | None
) -> tuple[dict[str, Reference], list[str]]:
    """The reference of each task that has one, all on one scale, and what must be said of them."""
    if measure.summary in _NO_SCORES:
        if given is not None:
            raise UsageError(f"{measure.words} is no score, so it can't be normalised; leave --normalise out")
        return {}, []
    notes: list[str] = []
    if given is None and measure.metric not in SCORES:
        return {}, []
    found = {task: one for task in tasks if (one := _reference(arms, task, given, notes)) is not None}
    for task, one in found.items():
        _right_way_up(one, task, measure)
    if len({one.scale for one in found.values()}) > 1:
        found = {task: replace(one, scale=1.0) for task, one in found.items()}
    protocols = dict.fromkeys(one.protocol or "unknown" for one in found.values())
    if len(protocols) > 1:
        by = "; ".join(
            f"{name}: {', '.join(t for t in found if (found[t].protocol or 'unknown') == name)}" for name in protocols
        )
        notes.append(f"the normalised scores are by {len(protocols)} protocols, which are not the same thing ({by})")
    lacking = [task for task in tasks if task not in found]
    if found and lacking:
        notes.append(f"no reference for {', '.join(lacking)}: what is said over all tasks is of raw scores")
    return found, notes


def _reference(arms: Sequence[Arm], task: str, given: Given | None, notes: list[str]) -> Reference | None:
    if given is not None and given.ends is not None:
        return given.ends
    if given is not None:
        if not task:
            raise UsageError(f"the table {given.table} is looked up by task, and these runs have no task's name")
        try:
            return look_up(given.table, task)
        except BadData as error:
            raise UsageError(f"--normalise {given.table}: {error}") from None
    known = {run.reference for arm in arms for run in arm.on(task)}
    if len(known) > 1:
        notes.append(f"not all runs{' on ' + task if task else ''} have the same reference scores: not normalised")
        return None
    return next(iter(known), None)


def _right_way_up(one: Reference, task: str, measure: Measure) -> None:
    if (one.reference - one.random) * measure.sign < 0:
        better = "less" if measure.sign < 0 else "more"
        raise UsageError(
            f"{task + ': ' if task else ''}the reference score {one.reference:g} is worse than the random score "
            f"{one.random:g}, where {better} is better; give the random score first, and --lower where less is better"
        )


def normalised(result: Comparison, reference: Reference) -> Normalised:
    """The figures of two arms on the scale of a reference."""
    old, new = (_turned(one, reference.of(one.value), reference.of(one.low), reference.of(one.high))
                for one in (result.old, result.new))  # fmt: skip
    return Normalised(reference, old, new, difference(result.effect, reference))


def difference(effect: Estimate, reference: Reference) -> Estimate:
    """A difference of scores on the scale of a reference."""
    by = reference.factor
    return _turned(effect, effect.value * by, effect.low * by, effect.high * by)


def _turned(one: Estimate, value: float, low: float, high: float) -> Estimate:
    return replace(one, value=value, low=min(low, high), high=max(low, high))


def protocols(found: Mapping[str, Reference]) -> list[str]:
    """The protocols and sources, for people."""
    return list(
        dict.fromkeys(
            " ".join(filter(None, (one.protocol, one.source and f"({one.source})"))) for one in found.values()
        )
    )
