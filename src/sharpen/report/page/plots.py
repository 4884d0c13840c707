"""The pictures of a whole run, chosen by what there is: learning curves, scores, effects, profile, radar, types, spend."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from sharpen.bench.comparison.assembly import Compared
from sharpen.bench.evidence.nouns import TEST, Arm
from sharpen.report import text
from sharpen.report.comparison import number, p_value
from sharpen.report.page import radar as radars
from sharpen.report.page.bars import Bar, bars
from sharpen.report.page.curves import Banded, curves
from sharpen.report.page.forest import Row, Value, forest
from sharpen.report.page.gather import Gathered, JobStory
from sharpen.report.page.marks import Picture
from sharpen.stats.aggregates import Scores
from sharpen.stats.curves import Curve, common
from sharpen.stats.errors import BadData
from sharpen.stats.intervals import bounded_mean
from sharpen.stats.profiles import profile

_METRICS = {"val": "score on val of the current candidate", "best": "best score on val", "train": "score of the batch"}
_MOST_TYPES = 40
_MOST_POINTS = 200
_RESAMPLES = 5_000
_LEVELS = tuple(level / 50 for level in range(51))


def file_name(*words: str) -> str:
    """A name that is good for a file."""
    joined = "-".join(words).lower()
    return "-".join("".join(c if c.isalnum() else " " for c in joined).split()) or "plot"


def learning(found: Gathered) -> Iterator[Picture]:
    """A picture per task with the curves of all arms."""
    for task in found.tasks:
        for metric, words in _METRICS.items():
            rows = {arm.name: [r.curves[metric] for r in arm.on(task) if metric in r.curves] for arm in found.arms}
            series = [_banded(name, row) for name, row in rows.items()]
            if any(one.thin or one.values for one in series):
                title = f"{task}: {words}"
                # An arm keeps its colour in every picture, also where it has nothing to show.
                yield curves(file_name("curves", task), title, series, "step", f"{words}, mean and 95 % band")
                break


def _banded(name: str, row: Sequence[Curve]) -> Banded:
    """The mean over the steps that all runs cover, with a band that stays within 0..1; single runs as thin lines."""
    if not row:
        return Banded(name, (), ())
    thin = tuple(tuple(zip(one.steps, one.values, strict=True)) for one in row) if len(row) > 1 else ()
    try:
        first, last = common(row)
    except BadData:
        return Banded(name, (), (), thin=thin)
    steps = sorted({step for one in row for step in one.steps if first <= step <= last})
    steps = steps[:: max(1, math.ceil(len(steps) / _MOST_POINTS))]
    values = [[one.at(step) for one in row] for step in steps]
    means = tuple(fmean(at) for at in values)
    if len(row) < 2 or not all(0.0 <= value <= 1.0 for at in values for value in at):
        return Banded(name, tuple(steps), means, thin=thin)
    bounds = [bounded_mean(at)[:2] for at in values]
    return Banded(name, tuple(steps), means, tuple(low for low, _ in bounds), tuple(high for _, high in bounds), thin)


def standings(found: Gathered) -> Picture | None:
    """The test scores of the arms on each task."""
    place = {arm.name: at for at, arm in enumerate(found.arms)}
    rows = []
    for task in found.tasks:
        own = [row for row in found.board if row["task_id"] == task and row["score_mean"] is not None]
        if own:
            rows.append(Row(task))
        for row in own:
            value = Value(row["score_mean"], row["score_low"], row["score_high"], place[row["arm"]])
            figures = f"{text.score(value.value)} {text.interval(value.low, value.high)}"
            rows.append(Row(row["arm"], (value,), figures.removesuffix(f" {text.NOTHING}")))
    if not rows:
        return None
    title = "Test scores of the arms, mean over seeds with its 95 % interval"
    return forest("scores", title, rows, (), "score on test", within=(0.0, 1.0))


def effects(found: Sequence[Compared], arms: Sequence[Arm]) -> Picture | None:
    """The difference of each arm to the first one, by task and over all tasks."""
    place = {arm.name: at for at, arm in enumerate(arms)}
    rows = []
    for one in found:
        own = []
        for row in one.rows:
            if row.result is not None:
                effect = row.result.effect
                own.append((row.task or "all", effect.value, effect.low, effect.high, row.adjusted))
        if one.pooled is not None:
            effect = one.pooled.effect
            own.append(("all tasks", effect.value, effect.low, effect.high, one.adjusted))
        if own:
            rows.append(Row(f"{one.new} against {one.old}"))
        for task, value, low, high, p in own:
            rows.append(
                Row(task, (Value(value, low, high, place[one.new]),), f"{number(value, sign=True)}, p {p_value(p)}")
            )
    if not rows:
        return None
    words = found[0].measure.words
    title = f"Effects on {words}: new minus old with 95 % intervals; p adjusted by Holm's rule"
    return forest("effects", title, rows, (), f"difference in {words}", zero=True)


def performance(arms: Sequence[Arm]) -> Picture | None:
    """The share of runs above each score, over the tasks that all arms ran."""
    tested = {arm.name: {t: [r.finals[TEST] for r in arm.on(t) if TEST in r.finals] for t in arm.tasks} for arm in arms}
    scored = {name: by_task for name, by_task in tested.items() if any(by_task.values())}
    tasks = dict.fromkeys(task for by_task in scored.values() for task in by_task)
    shared = [task for task in tasks if all(by_task.get(task) for by_task in scored.values())]
    if len(scored) < 2 or not shared or max(len(own[task]) for own in scored.values() for task in shared) < 2:
        return None
    series = []
    for name in tested:
        if name not in scored:
            series.append(Banded(name, (), ()))
            continue
        one = profile(Scores({task: scored[name][task] for task in shared}, name), _LEVELS, resamples=_RESAMPLES)
        series.append(Banded(name, one.thresholds, one.shares, one.low, one.high))
    title = "Performance profile: the share of runs whose test score is above each threshold, with 95 % bands"
    return curves("profile", title, series, "test score τ", "share of runs above τ", spots=False)


def by_type(found: Gathered) -> Iterator[Picture]:
    """For each task with several types, the arms' means on each of them."""
    for task in found.tasks:
        table = type_means([job for job in found.jobs if job.task == task], [arm.name for arm in found.arms])
        if len(table) < 2:
            continue
        rows = [
            Row(kind, tuple(Value(mean, series=place) for place, mean in enumerate(means) if mean is not None))
            for kind, means in list(table.items())[:_MOST_TYPES]
        ]
        title = f"{task}: test scores by type, mean over seeds"
        rows = [row for row in rows if row.values]
        names = [arm.name for arm in found.arms]
        yield forest(file_name("types", task), title, rows, names, "score on test", within=(0.0, 1.0))


def type_means(jobs: Sequence[JobStory], arms: Sequence[str]) -> dict[str, list[float | None]]:
    """By type, the mean of each arm over its jobs; None where it has none."""
    scores: dict[str, dict[str, list[float]]] = {}
    for job in jobs:
        for kind, row in job.results["test"].get("best", {}).get("by_type", {}).items():
            if row["mean"] is not None:
                scores.setdefault(kind, {}).setdefault(job.arm, []).append(row["mean"])
    return {kind: [fmean(own[arm]) if own.get(arm) else None for arm in arms] for kind, own in sorted(scores.items())}


def shapes(found: Gathered) -> Iterator[Picture]:
    """A radar over tasks where there are enough of them, else one over the types of each task."""
    names = [arm.name for arm in found.arms]
    if len(names) < 2:
        return
    if len(found.tasks) >= radars.LEAST:
        means = {(row["task_id"], row["arm"]): row["score_mean"] for row in found.board}
        table = {task: [means.get((task, name)) for name in names] for task in found.tasks}
        yield from _radar("radar", "Test scores by task", table, names)
        return
    for task in found.tasks:
        table = type_means([job for job in found.jobs if job.task == task], names)
        yield from _radar(file_name("radar", task), f"{task}: test scores by type", table, names)


def _radar(
    name: str, title: str, table: Mapping[str, Sequence[float | None]], names: Sequence[str]
) -> Iterator[Picture]:
    scored = [any(row[place] is not None for row in table.values()) for place in range(len(names))]
    whole = {
        axis: row
        for axis, row in table.items()
        if all(x is not None for x, there in zip(row, scored, strict=True) if there)
    }
    if radars.LEAST <= len(whole) <= radars.MOST and sum(scored) > 1:
        arms = {
            arm: [row[place] or 0.0 for row in whole.values()] if scored[place] else []
            for place, arm in enumerate(names)
        }
        yield radars.radar(name, title, list(whole), arms)


def spend(found: Gathered) -> Picture | None:
    """Tokens of a job, mean over seeds, by task and arm."""
    place = {arm.name: at for at, arm in enumerate(found.arms)}
    many = len(found.tasks) > 1
    rows = [
        Bar(
            f"{row['task_id']} · {row['arm']}" if many else row["arm"],
            row["tokens_mean"],
            f"{text.count(row['tokens_mean'])} tokens",
            place[row["arm"]],
        )
        for row in sorted(found.board, key=lambda row: (found.tasks.index(row["task_id"]), place[row["arm"]]))
        if row["tokens_mean"]
    ]
    return bars("spend", "Tokens of a job, mean over seeds", rows) if rows else None
