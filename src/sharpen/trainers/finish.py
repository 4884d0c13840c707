"""The closing measurement, the same for every trainer: confirm the best where selection had no hand, then test.

The score a candidate was chosen by flatters it. So the best is measured again before its score is reported: on val items
that were held back. Where none were, and the model may answer differently, it is measured with fresh samples of the same
items, and that is said: it still flatters what was chosen to suit them. Then the initial, the best and the final candidate
are measured on the test split, which nothing before has seen, and compared in pairs. Where the budget has no room for a
final candidate that is not the best one, training ends with the best one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import isfinite

from sharpen.core.candidate import Candidate
from sharpen.core.errors import BudgetExhausted
from sharpen.core.item import Item, groups_of
from sharpen.engine.evaluation import Evaluation, Group
from sharpen.engine.events import BestConfirmed, BudgetEnded, Gained, Normalised, Tested
from sharpen.engine.job import Job
from sharpen.engine.metric import HARD, Metric
from sharpen.stats.paired import Interval, paired_difference
from sharpen.stats.summary import summarise, summarise_by_type
from sharpen.trainers.base import Trained

FRESH_SAMPLE = 1_000_000
"""Samples from this number on are used for confirming alone."""


async def finish(job: Job, trained: Trained, *, step: int) -> bool:
    """Confirm, test, compare and save what a training came to. False if the budget did not allow for all of it."""
    with job.stage(step, "confirm"):
        confirmed = await _confirm(job, trained)
    with job.stage(step, "test"):
        tested = await _test(job, trained)
    metrics = {
        "raw": trained.raw,
        "confirmed": confirmed.value,
        "low": confirmed.low,
        "high": confirmed.high,
        "how": confirmed.how,
        "step": trained.best_step,
    }
    job.checkpoint(trained.best, trained.best_step, metrics, name="best")
    job.checkpoint(tested.final, step, {}, name="final")
    job.shelf.close(trained.best, trained.best_step, trained.raw, metrics)
    return tested is trained


async def _confirm(job: Job, trained: Trained) -> BestConfirmed:
    items: Sequence[Item] = trained.held_back
    sample, how = 0, "val items held back"
    if not items and job.repeatable:
        items, sample, how = job.splits.val, FRESH_SAMPLE, "fresh samples of the val items it was chosen on"
    if not items:
        event = BestConfirmed(trained.best.digest, "no val items to spare", 0, trained.raw, *[None] * 4)
    else:
        wanted = _distinct([trained.best, trained.initial])
        measured = await job.measure([Group(c, items, sample) for c in wanted], purpose="confirm")
        low, high = job.task.score_range
        scores = trained.metric.values(measured[0])
        best, initial = (
            summarise(scores, low=low, high=high, groups=groups_of(items)),
            trained.metric.mean(measured[-1]),
        )
        event = BestConfirmed(trained.best.digest, how, best.n, trained.raw, best.mean, best.low, best.high, initial)
    job.emit(event)
    tell_normalised(job, "confirmed", event.value, event.low, event.high)
    return event


async def _test(job: Job, trained: Trained) -> Trained:
    """Measure on the test split; what comes back is what was tested."""
    low, high = job.task.score_range
    try:
        found = await _on_test(job, [trained.initial, trained.best, trained.final])
    except BudgetExhausted as error:
        if trained.final in (trained.initial, trained.best):
            raise
        job.emit(BudgetEnded(str(error)))
        trained = replace(trained, final=trained.best)
        found = await _on_test(job, [trained.initial, trained.best])
    roles = {"initial": trained.initial, "best": trained.best, "final": trained.final}
    for which, candidate in roles.items():
        evaluation = found[candidate]
        groups, types = groups_of(evaluation.items), [item.type for item in evaluation.items]
        by_type = summarise_by_type(types, evaluation.hard, low=low, high=high, groups=groups)
        whole = summarise(evaluation.hard, low=low, high=high, groups=groups)
        rows = {name: summary.row() for name, summary in by_type.items()}
        job.emit(Tested(which, candidate.digest, whole.row(), rows, groups or []))
        tell_normalised(job, f"test/{which}", whole.mean, whole.low, whole.high)
    for which in ("best", "final"):
        gain = paired_gain(found[roles[which]], found[trained.initial], span=high - low)
        # One difference without bounds tells nothing of others.
        below, above = (gain.low, gain.high) if gain.n > 1 or isfinite(high - low) else (None, None)
        job.emit(Gained(which, "initial", gain.mean, below, above, gain.n, gain.method, gain.p))
        tell_normalised(job, f"gain/{which}", gain.mean, below, above, difference=True)
    return trained


async def _on_test(job: Job, wanted: Iterable[Candidate]) -> dict[Candidate, Evaluation]:
    candidates = _distinct(wanted)
    measured = await job.measure([Group(c, job.splits.test) for c in candidates], purpose="test")
    return dict(zip(candidates, measured, strict=True))


def tell_normalised(
    job: Job, what: str, value: float | None, low: float | None, high: float | None, *, difference: bool = False
) -> None:
    """The same on the benchmark's scale, where there is one."""
    against = job.shelf.benchmark
    if against is None or against.random_score is None:
        return
    turn = against.normalised_difference if difference else against.normalised
    ends = sorted(end for end in (turn(low), turn(high)) if end is not None)
    job.emit(Normalised(what, turn(value), *(ends if len(ends) == 2 else (None, None))))


def paired_gain(new: Evaluation, old: Evaluation, metric: Metric = HARD, span: float = 1.0) -> Interval:
    """The difference of two evaluations of the same items, over those that were scored in both."""
    values = zip(metric.values(new), metric.values(old), new.items, strict=True)
    pairs = [(a, b, item) for a, b, item in values if a is not None and b is not None]
    groups = groups_of([item for _, _, item in pairs])
    return paired_difference([a for a, _, _ in pairs], [b for _, b, _ in pairs], span=span, groups=groups)


def _distinct(candidates: Iterable[Candidate]) -> list[Candidate]:
    return list(dict.fromkeys(candidates))
