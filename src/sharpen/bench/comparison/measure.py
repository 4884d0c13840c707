"""The one number a comparison takes from a run: which metric, summarised how, over which part of the curve.

`test` is a final score that needs no curve; all other summaries are taken from the curve of a metric. Curves of unequal
length are cut to the steps that all of them cover before they are summarised, so that nobody wins by having run longer.
`steps_to` looks at whole curves, of which some may never get there: `times.py` has its numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sharpen.bench.evidence.nouns import SCORES, TEST, Arm, Run
from sharpen.core.errors import UsageError, nearest
from sharpen.stats import curves
from sharpen.stats.curves import Curve, Window

SUMMARIES = ("test", "auc", "mean", "last", "final", "best", "slope", "steps_to")
_PREFERRED = ("val", "reward")
_NEARLY = 0.9
_SHOWN = 12
_LARGEST = 1e70
"""The squares of variances must still be numbers."""


@dataclass(frozen=True, slots=True)
class Measure:
    """`lower` says that a lower value of the metric is better; steps to a threshold are always better when fewer."""

    metric: str
    summary: str
    window: str = "all"
    points: int = 5
    threshold: float | None = None
    lower: bool = False

    @property
    def sign(self) -> float:
        return -1.0 if self.lower or self.summary == "steps_to" else 1.0

    @property
    def words(self) -> str:
        """What the number is, for people."""
        if self.summary == TEST:
            return "test score" if self.metric == TEST else self.metric
        part = "" if self.window == "all" else f" over {self.window}"
        if self.summary == "steps_to":
            return f"steps until {self.metric} is {self.threshold:g}"
        if self.summary == "last":
            return f"{self.metric}, mean of the last {self.points} points"
        names = {
            "auc": "mean height of the curve",
            "slope": "slope per step",
            "final": "last value",
            "best": "best value",
        }
        return f"{self.metric}, {names.get(self.summary, self.summary)}{part}"


def choose(
    arms: Sequence[Arm],
    *,
    metric: str | None = None,
    summary: str | None = None,
    window: str = "all",
    points: int = 5,
    threshold: float | None = None,
    lower: bool = False,
) -> Measure:
    """What was asked for, completed by what the arms have."""
    Window.parse(window)
    finals = list(dict.fromkeys(name for arm in arms for run in arm.runs for name in run.finals))
    known = list(dict.fromkeys(name for arm in arms for name in arm.metrics()))
    broken = [f"{run.name}: {run.lacks}" for arm in arms for run in arm.runs if run.lacks]
    if broken and not finals and not known:
        more = f"; {len(broken) - 1} more" if len(broken) > 1 else ""
        raise UsageError(f"no run here has come to a score or a curve yet ({broken[0]}{more})")
    if metric is not None and metric in finals and summary in (None, TEST):
        return Measure(metric, TEST, lower=lower or _less_is_better(arms, metric))
    if summary == TEST or (summary is None and metric is None and TEST in finals):
        if TEST not in finals:
            raise UsageError(f"there are no final test scores here; take another --summary: {', '.join(SUMMARIES[1:])}")
        if metric is not None and not any(run.items for arm in arms for run in arm.runs):
            raise UsageError(f"no final score {metric!r}{nearest(metric, finals)}; there are {', '.join(finals)}")
        return Measure(TEST, TEST, lower=lower or _less_is_better(arms, TEST))
    faults = {name: why for arm in arms for run in arm.runs for name, why in run.faults.items()}
    if metric is None and not known and faults:
        raise UsageError(next(iter(faults.values())))
    metric = _metric(metric, [*known, *(name for name in faults if name == metric)], finals)
    if metric in faults:
        raise UsageError(faults[metric])
    summary = summary or ("auc" if _has_curves(arms, metric) else "final")
    if summary == "steps_to" and threshold is None:
        raise UsageError("--summary steps_to needs a value to --reach")
    if threshold is not None and not math.isfinite(threshold):
        raise UsageError(f"--reach is a number that a run can come to, got {threshold}")
    return Measure(metric, summary, window, points, threshold, lower or _less_is_better(arms, metric))


def _less_is_better(arms: Sequence[Arm], metric: str) -> bool:
    """Whether all runs say so of their own scores."""
    return metric in SCORES and all(run.lower for arm in arms for run in arm.runs)


def _metric(metric: str | None, known: Sequence[str], finals: Sequence[str]) -> str:
    if not known:
        raise UsageError("none of these has a curve; `--summary test` compares final scores")
    if metric is None:
        preferred = [name for name in _PREFERRED if name in known]
        if len(known) == 1 or preferred:
            return preferred[0] if preferred else known[0]
        raise UsageError(f"there are {len(known)} metrics; choose one with --metric: {_listed(known)}")
    if metric not in known:
        there = [*known, *finals]
        raise UsageError(f"no metric {metric!r}{nearest(metric, there)}; there are {_listed(there)}")
    return metric


def _listed(names: Sequence[str]) -> str:
    more = f", and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _has_curves(arms: Sequence[Arm], metric: str) -> bool:
    return any(len(run.curves[metric].steps) > 1 for arm in arms for run in arm.runs if metric in run.curves)


def looked_over(runs: Sequence[Run], measure: Measure) -> list[tuple[Run, bool, str]]:
    """Of each run of one task whether it has a number to give, and what it lacks. One that broke off is used where its curve
    is nearly as long as the longest: else it would shorten all of them."""
    longest = max((run.curves[measure.metric].steps[-1] for run in runs if measure.metric in run.curves), default=0.0)
    found = []
    for run in runs:
        if measure.summary == TEST:
            there, missing = measure.metric in run.finals, f"has no {measure.metric}"
        else:
            there, missing = measure.metric in run.curves, f"has no curve of {measure.metric}"
            if there and run.lacks:
                there = run.curves[measure.metric].steps[-1] >= _NEARLY * longest
        found.append((run, there, run.lacks or ("" if there else missing)))
    return found


def told(who: str, fit: bool, why: str) -> str:
    """What a run lacks, and what becomes of it."""
    return f"{who} {why}; {'used as far as it goes' if fit else 'left out'}"


def sorted_out(runs: Sequence[Run], measure: Measure) -> tuple[list[Run], list[str]]:
    """The runs of one task that have a number to give, and what must be said of the others and of those that are not
    whole."""
    found = looked_over(runs, measure)
    notes = [told(run.name, fit, why) for run, fit, why in found if why]
    return [run for run, fit, _ in found if fit], notes


def numbers(runs: Sequence[Run], measure: Measure) -> tuple[list[float], list[str]]:
    """The number of each run, all of one task and both arms, and what must be said about how they came about."""
    assert measure.summary != "steps_to"
    check_sizes(runs, measure)
    if measure.summary == TEST:
        return [run.finals[measure.metric] for run in runs], []
    found = [run.curves[measure.metric] for run in runs]
    low, high = curves.common(found)
    ends = {(curve.steps[0], curve.steps[-1]) for curve in found}
    notes = []
    if len(ends) > 1:
        found = [curve.between(low, high) for curve in found]
        longest = max(end for _, end in ends)
        notes.append(
            f"curves of {measure.metric} differ in length (they end at steps {min(e for _, e in ends):g} to {longest:g}): "
            f"compared over {low:g} to {high:g}, which all cover"
        )
    return [_summarised(curve, measure) for curve in found], notes


def check_sizes(runs: Sequence[Run], measure: Measure, where: str = "") -> None:
    """Complain of a value that nothing can be computed from; `where` is what the complaint begins with."""
    for run in runs:
        values = (run.finals[measure.metric],) if measure.summary == TEST else run.curves[measure.metric].values
        large = max(values, key=abs)
        if abs(large) > _LARGEST:
            raise UsageError(
                f"{where}{run.name}: {measure.metric} is {large:g}, and no spread can be computed of values beyond "
                f"{_LARGEST:g}; give them in a larger unit, or leave the run out"
            )


def _summarised(curve: Curve, measure: Measure) -> float:
    window = Window.parse(measure.window)
    if measure.summary == "auc":
        return curves.auc(curve, window)
    if measure.summary == "mean":
        return curves.mean(curve, window)
    if measure.summary == "slope":
        return curves.slope(curve, window)
    if measure.summary == "last":
        return curves.last(curve, measure.points)
    if measure.summary == "best":
        return curves.best(window.of(curve), lowest=measure.lower)
    return curves.final(curve)
