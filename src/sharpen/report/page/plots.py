"""The pictures of a whole run, chosen by what there is: learning curves, scores, effects, profile, radar, types, spend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from sharpen.bench.comparison.assembly import Compared
from sharpen.bench.evidence.nouns import TEST, Arm
from sharpen.report import text
from sharpen.report.comparison import level, number, p_value
from sharpen.report.page import radar as radars
from sharpen.report.page.axes import spread, with_interval
from sharpen.report.page.bars import Bar, bars
from sharpen.report.page.curves import UNIT, Banded, curves
from sharpen.report.page.forest import Row, Value, forest
from sharpen.report.page.gather import Gathered, JobStory
from sharpen.report.page.marks import Picture
from sharpen.report.page.means import banded, within
from sharpen.report.page.normal import differences
from sharpen.stats.aggregates import Scores
from sharpen.stats.curves import Curve
from sharpen.stats.means import Estimate
from sharpen.stats.normalise import Reference
from sharpen.stats.profiles import profile

EVALUATED = "score of the policy"
_METRICS = {"val": "score on val of the current candidate", "best": "best score on val", "train": "score of the batch"}
_MOST_TYPES = 40
_RESAMPLES = 5_000
_LEVELS = 50


def file_name(*words: str) -> str:
    """A name that is good for a file."""
    joined = "-".join(words).lower()
    return "-".join("".join(c if c.isalnum() else " " for c in joined).split()) or "plot"


def learning(found: Gathered) -> Iterator[Picture]:
    """A picture per task with the curves of all arms. An arm keeps its colour in every picture, also where it has nothing
    to show."""
    for task in found.tasks:
        words, rows = _rows(found, task)
        if any(rows.values()):
            series = [banded(name, row) for name, row in rows.items()]
            band = ", mean and 95 % band" if any(one.low for one in series) else ""
            yield curves(
                file_name("curves", task), f"{task}: {words}", series, "step", f"score{band}",
                within=within(list(rows.values())), normal=found.normal(task),
            )  # fmt: skip


def _rows(found: Gathered, task: str) -> tuple[str, dict[str, list[Curve]]]:
    """What is drawn of a task, and the curves of each arm."""
    for metric, words in _METRICS.items():
        rows = {arm.name: [r.curves[metric] for r in arm.on(task) if metric in r.curves] for arm in found.arms}
        if any(rows.values()):
            return EVALUATED if any(job.is_policy for job in found.on(task)) else words, rows
    return "", {}


def standings(found: Gathered) -> Iterator[Picture]:
    """The test scores of the arms: all tasks on one scale where scores are in 0..1, else each task on its own."""
    rows = {task: _standing(found, task) for task in found.tasks}
    rows = {task: own for task, own in rows.items() if own}
    title = "Test scores of the arms, mean over seeds with its 95 % interval"
    if all(map(_unit, rows.values())) and not any(found.normal(task) for task in rows):
        flat = [row for task, own in rows.items() for row in (Row(task), *own)]
        if flat:
            yield forest("scores", title, flat, (), "score on test", within=UNIT)
        return
    for task, own in rows.items():
        yield forest(
            file_name("scores", task), f"{task}: {title[:1].lower()}{title[1:]}", own, (), "score on test",
            within=UNIT if _unit(own) else None, normal=found.normal(task),
        )  # fmt: skip


def _unit(rows: Sequence[Row]) -> bool:
    """Whether everything in these rows is a score in 0..1."""
    ends = (x for row in rows for v in row.values for x in (v.value, v.low, v.high))
    return all(x is None or 0.0 <= x <= 1.0 for x in ends)


def _standing(found: Gathered, task: str) -> list[Row]:
    place = {arm.name: at for at, arm in enumerate(found.arms)}
    own = [row for row in found.board if row["task_id"] == task and row["score_mean"] is not None]
    made = []
    for row in own:
        value = Value(row["score_mean"], row["score_low"], row["score_high"], place[row["arm"]])
        made.append(Row(row["arm"], (value,), with_interval(value.value, value.low, value.high)))
    return made


def effects(found: Sequence[Compared], arms: Sequence[Arm]) -> Picture | None:
    """The difference of each arm to the first one, by task and over all tasks. Where the scores of several tasks are
    normalised, so are the effects; those of one task have a second scale."""
    place = {arm.name: at for at, arm in enumerate(arms)}
    scaled = any(one.pooled_normalised is not None for one in found)
    rows = []
    for one in found:
        own = list(_effects(one, scaled=scaled))
        if own:
            rows.append(Row(f"{one.new} against {one.old}"))
        for task, effect, p in own:
            value = Value(effect.value, effect.low, effect.high, place[one.new])
            rows.append(Row(task, (value,), f"{number(effect.value, sign=True)}, p {p_value(p)}"))
    if not rows:
        return None
    words = f"{'normalised ' if scaled else ''}{found[0].measure.words}"
    title = f"Effects on {words}: new minus old with {level(found)} intervals; p adjusted by Holm's rule"
    normal = None if scaled else _one_scale(found)
    return forest("effects", title, rows, (), f"difference in {words}", zero=True, normal=normal)


def _effects(one: Compared, *, scaled: bool) -> Iterator[tuple[str, Estimate, float | None]]:
    for row in one.rows:
        told = row.normalised if scaled else row.result
        if told is not None:
            yield row.task or "all", told.effect, row.adjusted
    over = one.pooled_normalised if scaled else one.pooled
    if over is not None:
        yield "all tasks", over.effect, one.adjusted


def _one_scale(found: Sequence[Compared]) -> Reference | None:
    """The scale that all rows have in common."""
    scales = {row.normalised.reference if row.normalised is not None else None for one in found for row in one.rows}
    return differences(scales.pop()) if len(scales) == 1 else None


def performance(found: Gathered) -> Picture | None:
    """The share of runs above each score, over the tasks that all arms ran; of normalised scores where every task has them,
    and of none where scores of different tasks have no scale in common."""
    tested = {
        arm.name: {t: [r.finals[TEST] for r in arm.on(t) if TEST in r.finals] for t in arm.tasks} for arm in found.arms
    }
    scored = {name: by_task for name, by_task in tested.items() if any(by_task.values())}
    tasks = dict.fromkeys(task for by_task in scored.values() for task in by_task)
    shared = [task for task in tasks if all(by_task.get(task) for by_task in scored.values())]
    if len(scored) < 2 or not shared or max(len(own[task]) for own in scored.values() for task in shared) < 2:
        return None
    scales = {task: found.normal(task) for task in shared}
    whole = all(scales.values())
    kept = {
        name: {task: _on_scale(own[task], scales[task] if whole else None) for task in shared}
        for name, own in scored.items()
    }
    values = [value for own in kept.values() for row in own.values() for value in row]
    unit = all(0.0 <= value <= 1.0 for value in values)
    if not (unit or whole or len(shared) == 1):
        return None
    low, high = UNIT if unit else spread(values)
    levels = tuple(low + (high - low) * place / _LEVELS for place in range(_LEVELS + 1))
    series = []
    for name in tested:
        if name not in kept:
            series.append(Banded(name, (), ()))
            continue
        one = profile(Scores(kept[name], name), levels, resamples=_RESAMPLES)
        series.append(Banded(name, one.thresholds, one.shares, one.low, one.high))
    kind = "normalised test score" if whole else "test score"
    title = f"Performance profile: the share of runs whose {kind} is above each threshold, with 95 % bands"
    return curves("profile", title, series, f"{kind} τ", "share of runs above τ", spots=False)


def _on_scale(values: Sequence[float], normal: Reference | None) -> list[float]:
    return list(values) if normal is None else normal.of_all(values)


def by_type(found: Gathered) -> Iterator[Picture]:
    """For each task with several types, the arms' means on each of them."""
    for task in found.tasks:
        table = type_means(found.on(task), [arm.name for arm in found.arms])
        if len(table) < 2:
            continue
        rows = [
            Row(kind, tuple(Value(mean, series=place) for place, mean in enumerate(means) if mean is not None))
            for kind, means in list(table.items())[:_MOST_TYPES]
        ]
        title = f"{task}: test scores by type, mean over seeds"
        rows = [row for row in rows if row.values]
        names = [arm.name for arm in found.arms]
        yield forest(
            file_name("types", task), title, rows, names, "score on test", within=UNIT if _unit(rows) else None,
            normal=found.normal(task),
        )  # fmt: skip


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
        scales = {task: found.normal(task) for task in found.tasks}
        whole = all(scales.values())
        table = {task: [means.get((task, name)) for name in names] for task in found.tasks}
        title = "Normalised test scores by task, cut to 0..1" if whole else "Test scores by task"
        if whole:
            table = {
                task: [None if x is None else share_of(x, scales[task]) for x in row] for task, row in table.items()
            }
        yield from over_axes("radar", title, table, names)
        return
    for task in found.tasks:
        table = type_means(found.on(task), names)
        yield from over_axes(file_name("radar", task), f"{task}: test scores by type", table, names)


def share_of(score: float, normal: Reference | None) -> float:
    """A score as a share of the way from random to the reference, which is what a radar has room for."""
    return score if normal is None else min(1.0, max(0.0, normal.of(score) / normal.scale))


def over_axes(
    name: str, title: str, table: Mapping[str, Sequence[float | None]], names: Sequence[str]
) -> Iterator[Picture]:
    """A radar of the arms' scores by axis, where there are axes and arms enough and all scores lie in 0..1."""
    scored = [any(row[place] is not None for row in table.values()) for place in range(len(names))]
    whole = {
        axis: row
        for axis, row in table.items()
        if all(x is not None for x, there in zip(row, scored, strict=True) if there)
    }
    bounded = all(x is None or 0.0 <= x <= 1.0 for row in whole.values() for x in row)
    if radars.LEAST <= len(whole) <= radars.MOST and sum(scored) > 1 and bounded:
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
