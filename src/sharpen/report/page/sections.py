"""What a page says of a study: verdicts, leaderboard, effects, curves, profile, radar, types, spend, and its jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sharpen.report import comparison, text
from sharpen.report.page import html, job_sections, plots
from sharpen.report.page.gather import Gathered, JobStory
from sharpen.report.page.job_sections import Section

_MOST_JOBS = 40
"""More jobs than this are told in a row each, and no more: the page has to open in a moment."""


def sections(found: Gathered) -> Iterator[Section]:
    """A run of one job is told as that job; a study as a whole, with its jobs to unfold."""
    if len(found.jobs) == 1:
        yield from job_sections.sections(found.jobs[0])
        return
    yield "Verdict", _verdicts(found)
    yield "Mind", _warnings(found)
    yield "Leaderboard", html.figure(plots.standings(found)) + _board(found)
    yield "Effects", html.figure(plots.effects(found.compared, found.arms)) + _effects(found)
    several = len({row["seed"] for row in found.rows}) > 1
    note = "Thin lines are single runs; the mean is over the steps that all of them cover." if several else ""
    yield "Learning curves", html.side_by_side([html.figure(one, note) for one in plots.learning(found)])
    yield "Performance profile", html.figure(plots.performance(found.arms))
    yield "Radar", html.side_by_side([html.figure(one) for one in plots.shapes(found)])
    yield "By type", "".join(map(html.figure, plots.by_type(found)))
    yield "Spend", html.figure(plots.spend(found)) + _spend(found)
    yield "Jobs", _jobs(found)


def _verdicts(found: Gathered) -> str:
    counts = ", ".join(f"{number} {state.replace('_', ' ')}" for state, number in found.summary["counts"].items())
    made = [html.paragraph(comparison.sentence(one), f"verdict {_kind(one.verdict)}") for one in found.compared]
    if found.silent:
        made.append(html.paragraph(f"Not compared: {found.silent}.", "verdict open"))
    made.append(html.paragraph(f"{text.plural(found.summary['total_jobs'], 'job')}: {counts}."))
    made += [
        html.paragraph(f"{job} failed: {text.short(why, 300)}", "doubt")
        for job, why in found.summary["failures"].items()
    ]
    return "".join(made)


def _kind(verdict: str) -> str:
    return verdict if verdict in ("better", "worse") else "open"


def _warnings(found: Gathered) -> str:
    warnings = dict.fromkeys(warning for one in found.compared for warning in one.warnings)
    return f"<ul>{''.join(f'<li>{html.safe(one)}</li>' for one in warnings)}</ul>" if warnings else ""


def _board(found: Gathered) -> str:
    rows = [
        [
            row["task_id"], row["arm"], text.score(row["score_mean"]), text.interval(row["score_low"], row["score_high"]),
            str(row["n"]), text.signed(row["gain_mean"]), str(row["failed"]),
        ]
        for row in found.board
        if row["score_mean"] is not None or row["failed"]
    ]  # fmt: skip
    return html.table(("task", "arm", "test score", "95 % interval", "seeds", "gain", "failed"), rows, 2)


def _effects(found: Gathered) -> str:
    if not found.compared:
        return ""
    head = ("task", "old", "new", "old mean", "new mean", "effect", "95 % interval", "p", "adjusted", "n", "size",
            "P(new higher)")  # fmt: skip
    rows = [[row.task, one.old, one.new, *comparison.cells(row)] for one in found.compared for row in one.rows]
    for one in found.compared:
        if one.pooled is not None:
            effect = one.pooled.effect
            low, high = (comparison.number(end, sign=True) for end in (effect.low, effect.high))
            figures = [comparison.number(effect.value, sign=True), f"[{low}, {high}]"]
            figures += [comparison.p_value(one.pooled.p), comparison.p_value(one.adjusted)]
            rows.append(["all tasks", one.old, one.new, "", "", *figures, str(effect.n), "", ""])
    return html.table(head, rows, 3) + html.paragraph(comparison.family(found.compared), "quiet")


def _spend(found: Gathered) -> str:
    rows = [
        [row["task_id"], row["arm"], text.count(row["calls_mean"]), text.count(row["tokens_mean"]),
         comparison.money(row["money_mean"]), text.seconds(row["seconds_mean"])]
        for row in found.board
        if row["calls_mean"] is not None
    ]  # fmt: skip
    totals = found.summary["totals"]
    if not totals["calls"]:
        return ""
    tokens = totals["prompt_tokens"] + totals["completion_tokens"]
    price = "unknown in money" if totals["money"] is None else comparison.money(totals["money"])
    said = f"In all {text.plural(totals['calls'], 'call')} and {text.plural(tokens, 'token')}; {price}."
    head = ("task", "arm", "calls", "tokens", "money", "seconds")
    return html.table(head, rows, 2) + html.paragraph(
        f"{'The table is per job, mean over seeds. ' if rows else ''}{said}", "quiet"
    )


def _jobs(found: Gathered) -> str:
    if len(found.jobs) > _MOST_JOBS:
        words = f"There are {len(found.jobs)} jobs, so each is a row here. `sharpen status` has the steps of each."
        return html.paragraph(words) + _rows(found.rows)
    return _rows(found.rows) + "".join(_job(job) for job in found.jobs)


def _rows(rows: Sequence[Any]) -> str:
    head = ("job", "task", "arm", "seed", "status", "steps", "before", "after", "gain", "calls")
    made = [
        [row["job_id"], row["task_id"], row["arm"], str(row["seed"]), row["status"].replace("_", " "), str(row["steps"]),
         text.score(row["score_initial"]), text.score(row["score_best"]), text.signed(row["gain"]), text.count(row["calls"])]
        for row in rows
    ]  # fmt: skip
    return html.table(head, made, 3)


def _job(job: JobStory) -> str:
    told = "".join(f"<h3>{html.safe(name)}</h3>{body}" for name, body in job_sections.sections(job) if body)
    return html.details(f"<b>{html.safe(job.title)}</b> <code>{html.safe(job.job_id)}</code>", told)
