"""Steps until a curve comes to a value, where some runs never do: such a run is censored at its last step.

The value of a run is then its share in the restricted mean up to the last step that both arms were watched to (its own step,
cut there, where nobody left before), and the arms are tested by the log-rank statistic over permutations. One arm alone is
told in the same way, up to the last step that one of its runs was watched to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sharpen.bench.comparison.measure import Measure, check_sizes
from sharpen.bench.evidence.nouns import Run
from sharpen.core.errors import UsageError
from sharpen.stats import curves, survival
from sharpen.stats.exact import Test
from sharpen.stats.means import Estimate
from sharpen.stats.survival import Times


@dataclass(frozen=True, slots=True)
class ArmTimes:
    """How many of an arm's runs got there, the step by which half of them did (None where fewer did), and the mean up to the
    horizon (None for a single run)."""

    n: int
    reached: int
    median: float | None
    restricted_mean: Estimate | None


@dataclass(frozen=True, slots=True)
class TimesTo:
    """Both arms on their way to a value, watched until step `until`."""

    until: float
    old: ArmTimes
    new: ArmTimes

    @property
    def never(self) -> int:
        return self.old.n + self.new.n - self.old.reached - self.new.reached


@dataclass(frozen=True)
class Race:
    """The times of both arms, the value of each run, and what is told of them."""

    times: tuple[Times, Times]
    values: tuple[list[float], list[float]]
    told: TimesTo

    def test(self, *, paired: bool) -> Test:
        return survival.log_rank(self.times[1], self.times[0], paired=paired)

    def crosses(self, effect: float) -> bool:
        """Whether the arm that gets there earlier by the test is the one with the larger mean."""
        return survival.log_rank_statistic(self.times[1], self.times[0]) * effect > 0


def race(old: Sequence[Run], new: Sequence[Run], measure: Measure, level: float) -> Race:
    """How two arms get to the threshold of a measure. Where everybody does, the values are the steps themselves."""
    assert measure.threshold is not None
    both = (_times(old, measure), _times(new, measure))
    until = survival.horizon(*([run.curves[measure.metric].steps[-1] for run in runs] for runs in (old, new)))
    told = TimesTo(until, *(_told(times, until, level) for times in both))
    if told.never == 0:
        return Race(both, (list(both[0].steps), list(both[1].steps)), told)
    values = survival.pseudo_values(both[0], until), survival.pseudo_values(both[1], until)
    return Race(both, values, told)


def alone(runs: Sequence[Run], measure: Measure) -> tuple[list[float], list[str]]:
    """The steps of each run of one arm, and what must be said. Where some never got there, they are each run's share in the
    restricted mean, whose spread is that of this mean."""
    times = _times(runs, measure)
    never = len(times) - sum(times.reached)
    if never == 0:
        return list(times.steps), []
    refuse_none(sum(times.reached), len(times), measure)
    until = survival.horizon([run.curves[measure.metric].steps[-1] for run in runs])
    return survival.pseudo_values(times, until), [
        f"{never} of {len(times)} runs never came to {measure.threshold:g}: mean and spread are of steps up to {until:g}, "
        "by which they were not there; a comparison of such runs is tested by log-rank, so its power is a guess"
    ]


def refuse_none(reached: int, runs: int, measure: Measure) -> None:
    """Complain where nobody got there: all that is known is how long somebody looked."""
    if reached == 0:
        raise UsageError(
            f"none of {runs} runs came to {measure.threshold:g}, so nothing is known of how their steps spread: give a "
            "value to --reach that some come to, or let them run longer"
        )


def _times(runs: Sequence[Run], measure: Measure) -> Times:
    assert measure.threshold is not None
    check_sizes(runs, measure)
    found = [curves.steps_to(run.curves[measure.metric], measure.threshold, lowest=measure.lower) for run in runs]
    return Times(tuple(one.step for one in found), tuple(not one.censored for one in found))


def _told(times: Times, until: float, level: float) -> ArmTimes:
    mean = survival.restricted_mean(times, until, level) if len(times) > 1 else None
    return ArmTimes(len(times), sum(times.reached), survival.median(times), mean)
