"""Scoring candidates outside of training: any candidate, any split, with repeats, alone or against another.

A measurement is a job without a trainer: it goes through the same ledger, budget and retries, and leaves a story of its own.
An item that is attempted several times counts once, with the mean of its attempts, since attempts at one item are not
independent of each other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sharpen.bench import artifacts, benchmark
from sharpen.bench.runner import tell_start
from sharpen.core.candidate import Candidate
from sharpen.core.digest import Json
from sharpen.core.errors import UsageError
from sharpen.core.item import groups_of
from sharpen.core.usage import Usage
from sharpen.engine.evaluation import Evaluation, Group
from sharpen.engine.events import Event, Gained, JobEnded
from sharpen.engine.job import Job
from sharpen.engine.opening import How, Setup, open_job
from sharpen.stats.normalise import Reference
from sharpen.stats.paired import paired_difference
from sharpen.stats.summary import summarise, summarise_by_type
from sharpen.trainers.finish import tell_normalised

NAME = "eval"
FRESH = "fresh episodes"


@dataclass(frozen=True)
class Evaluated(Event):
    """A candidate's score on a split, whole and by task type: mean, low, high, scored items, failed rollouts."""

    which: str
    candidate: str
    split: str
    samples: int
    score: list[Json]
    by_type: dict[str, list[Json]]


@dataclass(frozen=True)
class Wish:
    """What is to be measured: candidates by name (the second one is what the first is compared with)."""

    candidates: Mapping[str, Candidate]
    split: str = "test"
    repeats: int = 1
    episodes: int | None = None
    """So many fresh episodes that are in no split, instead of a split's items."""

    @property
    def where(self) -> str:
        """What the items are, in a word."""
        return self.split if self.episodes is None else FRESH


@dataclass(frozen=True)
class Report:
    evaluated: tuple[Evaluated, ...]
    gain: Gained | None
    used: Usage
    paid_calls: int
    """Calls that were made now; the rest was in the ledger."""
    scale: Reference | None = None
    """What 0 and 1 of normalised scores stand for, where there is a benchmark."""


@dataclass(frozen=True)
class Files:
    """Where the measurement leaves its story, and the ledger it shares."""

    folder: Path
    ledger: Path


def samples(setup: Setup, wish: Wish) -> int:
    """How many attempts at each item tell something new. A wish that cannot be is refused."""
    if wish.episodes is not None and wish.episodes < 1:
        raise UsageError(f"episodes must be at least 1, got {wish.episodes}")
    if wish.episodes is None and not setup.splits[wish.split]:
        raise UsageError(f"the split {wish.split} of {setup.task.name} has no items")
    if wish.repeats < 1:
        raise UsageError(f"repeats must be at least 1, got {wish.repeats}")
    return wish.repeats if setup.sampling.seed is not None else 1


async def evaluate(
    setup: Setup, wish: Wish, files: Files, how: How, on_start: Callable[[Job], None] | None = None
) -> Report:
    """Measure what is wished for. What the ledger holds is not paid for again."""
    draws = samples(setup, wish)
    items = setup.splits[wish.split] if wish.episodes is None else setup.task.episodes(wish.episodes, setup.spec.seed)
    params: dict[str, Json] = {"split": wish.where, "repeats": draws}
    spec = dataclasses.replace(setup.spec, trainer=NAME, trainer_version="1", params=params)
    async with open_job(dataclasses.replace(setup, spec=spec), files.folder, files.ledger, how) as job:
        if on_start is not None:
            on_start(job)
        tell_start(job)
        groups = [Group(candidate, items, sample) for candidate in wish.candidates.values() for sample in range(draws)]
        with job.stage(0, NAME):
            measured = await job.measure(groups, purpose=NAME)
        by_name = {name: measured[number * draws : (number + 1) * draws] for number, name in enumerate(wish.candidates)}
        ends = setup.task.score_range
        found = tuple(_evaluated(name, wish.where, attempts, ends) for name, attempts in by_name.items())
        gain = _gain(by_name, ends[1] - ends[0]) if len(by_name) > 1 else None
        for event in found:
            job.emit(event)
            tell_normalised(job, f"{wish.where}/{event.which}", *event.score[:3])
        if gain is not None:
            job.emit(gain)
            tell_normalised(job, f"gain/{gain.new}", gain.mean, gain.low, gain.high, difference=True)
        job.emit(JobEnded("done", "", job.meter.table()))
        scale = benchmark.scale_of(spec.benchmark)
        report = Report(found, gain, job.meter.total, job.runtime.gateway.paid_calls, scale)
    artifacts.write(files.folder)
    return report


def item_means(attempts: Sequence[Evaluation]) -> list[float | None]:
    """The mean score of each item over its attempts; None where every one of them failed."""
    means: list[float | None] = []
    for scores in zip(*(evaluation.hard for evaluation in attempts), strict=True):
        known = [score for score in scores if score is not None]
        means.append(sum(known) / len(known) if known else None)
    return means


def _evaluated(name: str, split: str, attempts: Sequence[Evaluation], ends: tuple[float, float]) -> Evaluated:
    means = item_means(attempts)
    failed = sum(len(evaluation.failures) for evaluation in attempts)
    low, high = ends
    items = attempts[0].items
    groups = groups_of(items)
    missing = sum(mean is None for mean in means)
    whole = summarise(means, failed=failed - missing, low=low, high=high, groups=groups)
    by_type = summarise_by_type([item.type for item in items], means, low=low, high=high, groups=groups)
    rows = {kind: summary.row() for kind, summary in by_type.items()}
    return Evaluated(name, attempts[0].candidate.digest, split, len(attempts), whole.row(), rows)


def _gain(by_name: Mapping[str, Sequence[Evaluation]], span: float) -> Gained:
    (new_name, new), (old_name, old) = by_name.items()
    scores = zip(item_means(new), item_means(old), new[0].items, strict=True)
    pairs = [(a, b, item) for a, b, item in scores if a is not None and b is not None]
    groups = groups_of([item for _, _, item in pairs])
    gain = paired_difference([a for a, _, _ in pairs], [b for _, b, _ in pairs], span=span, groups=groups)
    return Gained(new_name, old_name, gain.mean, gain.low, gain.high, gain.n, gain.method, gain.p)
