"""The closing measurement, the same for every trainer: confirm the best where selection had no hand, then test.

The score a candidate was chosen by flatters it. So the best is measured again before its score is reported: with fresh
samples where the model may answer differently, else on val items that were held back. Then the initial, the best and the
final candidate are measured on the test split, which nothing before has seen, and compared in pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sharpen.core.candidate import Candidate
from sharpen.core.item import Item
from sharpen.engine.evaluation import Evaluation, Group
from sharpen.engine.events import BestConfirmed, Gained, Tested
from sharpen.engine.job import Job
from sharpen.engine.metric import HARD, Metric
from sharpen.stats.paired import Interval, paired_difference
from sharpen.stats.summary import summarise, summarise_by_type
from sharpen.trainers.base import Trained

FRESH_SAMPLE = 1_000_000
"""Samples from this number on are used for confirming alone."""


async def finish(job: Job, trained: Trained, *, step: int) -> None:
    """Confirm, test, compare and save what a training came to."""
    with job.stage(step, "confirm"):
        confirmed = await _confirm(job, trained)
    with job.stage(step, "test"):
        await _test(job, trained)
    metrics = {
        "raw": trained.raw,
        "confirmed": confirmed.value,
        "low": confirmed.low,
        "high": confirmed.high,
        "how": confirmed.how,
        "step": trained.best_step,
    }
    job.checkpoint(trained.best, trained.best_step, metrics, name="best")
    job.checkpoint(trained.final, step, {}, name="final")


async def _confirm(job: Job, trained: Trained) -> BestConfirmed:
    items: Sequence[Item] = job.splits.val if job.repeatable else trained.held_back
    sample = FRESH_SAMPLE if job.repeatable else 0
    how = "fresh samples of val" if job.repeatable else "val items held back"
    if not items:
        event = BestConfirmed(trained.best.digest, "not confirmed: no val items to spare", 0, trained.raw, *[None] * 4)
    else:
        wanted = _distinct([trained.best, trained.initial])
        measured = await job.measure([Group(c, items, sample) for c in wanted], purpose="confirm")
        scores = [score for score in trained.metric.values(measured[0]) if score is not None]
        best, initial = summarise(scores), trained.metric.mean(measured[-1])
        event = BestConfirmed(trained.best.digest, how, best.n, trained.raw, best.mean, best.low, best.high, initial)
    job.emit(event)
    return event


async def _test(job: Job, trained: Trained) -> None:
    roles = {"initial": trained.initial, "best": trained.best, "final": trained.final}
    candidates = _distinct(roles.values())
    measured = await job.measure([Group(c, job.splits.test) for c in candidates], purpose="test")
    found = dict(zip(candidates, measured, strict=True))
    for which, candidate in roles.items():
        evaluation = found[candidate]
        by_type = summarise_by_type([item.type for item in evaluation.items], evaluation.hard)
        whole = summarise(evaluation.scored, failed=len(evaluation.failures))
        job.emit(Tested(which, candidate.digest, whole.row(), {name: s.row() for name, s in by_type.items()}))
    for which in ("best", "final"):
        gain = paired_gain(found[roles[which]], found[trained.initial])
        job.emit(Gained(which, "initial", gain.mean, gain.low, gain.high, gain.n, gain.method))


def paired_gain(new: Evaluation, old: Evaluation, metric: Metric = HARD) -> Interval:
    """The difference of two evaluations of the same items, over those that were scored in both."""
    values = zip(metric.values(new), metric.values(old), strict=True)
    pairs = [(a, b) for a, b in values if a is not None and b is not None]
    return paired_difference([a for a, _ in pairs], [b for _, b in pairs])


def _distinct(candidates: Iterable[Candidate]) -> list[Candidate]:
    return list(dict.fromkeys(candidates))
