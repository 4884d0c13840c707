"""What a page says of a study: verdicts, leaderboard, effects, curves, profile, radar, types, spend, and its jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sharpen.bench.benchmark import meaning
from sharpen.report import comparison, comparison_arms, text
from sharpen.report.page import html, job_sections, plots
from sharpen.report.page.axes import NORMALISED
from sharpen.report.page.gather import Gathered, JobStory
from sharpen.report.page.job_sections import Section

MOST_NAMES = 6
"""Of more tasks or arms than this a sentence names the first."""
_MOST_JOBS = 40
"""Of more jobs than this only some are told in full: the page has to open in a moment."""


def sections(found: Gathered) -> Iterator[Section]:
    """A run of one job is told as that job; a study as a whole, with its jobs to unfold."""
    if len(found.jobs) == 1:
        yield from job_sections.sections(found.jobs[0])
        return
    yield "Verdict", _verdicts(found)
    yield "Mind", _warnings(found)
    yield "Leaderboard", html.side_by_side([html.figure(one) for one in plots.standings(found)]) + _board(found)
    yield "Effects", html.figure(plots.effects(found.compared, found.arms)) + _effects(found)
    several = len({row["seed"] for row in found.rows}) > 1
    note = "Thin lines are single runs; the mean is over the steps that all of them cover." if several else ""
    yield "Learning curves", html.side_by_side([html.figure(one, note) for one in plots.learning(found)])
    yield "Performance profile", html.figure(plots.performance(found))
    yield "Radar", html.side_by_side([html.figure(one) for one in plots.shapes(found)])
    yield "By type", html.side_by_side([html.figure(one) for one in plots.by_type(found)])
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
    """Each once; what is to be said of several tasks names them together."""
    said: dict[str, list[str]] = {}
    for warning in dict.fromkeys(warning for one in found.compared for warning in one.warnings):
        task, colon, rest = warning.partition(": ")
        if colon and task in found.tasks:
            said.setdefault(rest, []).append(task)
        else:
            said.setdefault(warning, [])
    made = [f"{named(tasks)}: {words}" if tasks else words for words, tasks in said.items()]
    return f"<ul>{''.join(f'<li>{html.safe(one)}</li>' for one in made)}</ul>" if made else ""


def named(names: Sequence[str]) -> str:
    """Names for a sentence."""
    more = len(names) - MOST_NAMES
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:MOST_NAMES])} and {more} more"


def _board(found: Gathered) -> str:
    there = [row for row in found.board if row["score_mean"] is not None or row["failed"]]
    more = any(row["score_mean_normalised"] is not None for row in there)
    rows = []
    for row in there:
        figures = [comparison.number(row["score_mean"]), html.interval(row["score_low"], row["score_high"])]
        if more:
            ends = row["score_low_normalised"], row["score_high_normalised"]
            figures += [comparison.number(row["score_mean_normalised"]), html.interval(*ends)]
        figures += [str(row["n"]), comparison.number(row["gain_mean"], sign=True), str(row["failed"])]
        rows.append([row["task_id"], row["arm"], *figures])
    scaled = (NORMALISED, "95 % interval") if more else ()
    head = ("task", "arm", "test score", "95 % interval", *scaled, "seeds", "gain", "failed")
    return html.table(head, rows, 2) + html.quiet(_scales(found) if more else "")


def _scales(found: Gathered) -> str:
    """What 0 and 1 stand for: once where it is the same on all tasks."""
    said: dict[str, list[str]] = {}
    for task in found.tasks:
        scale = found.normal(task)
        said.setdefault("" if scale is None else meaning(scale), []).append(task)
    if len(said) == 1:
        return next(iter(said))
    return " ".join(f"{named(tasks)}: {sentence}" for sentence, tasks in said.items() if sentence)


def _effects(found: Gathered) -> str:
    if not found.compared:
        return ""
    head = ("task", "old", "new", "old mean", "new mean", "effect", "95 % interval", "p", "adjusted", "p of t alone", "n",
            "size", "P(new higher)")  # fmt: skip
    rows = [[row.task, one.old, one.new, *comparison.cells(row)] for one in found.compared for row in one.rows]
    for one in found.compared:
        if one.pooled is not None:
            rows.append(["all tasks", one.old, one.new, *comparison.over_tasks(one, one.pooled)])
    made = html.table(head, rows, 3) + html.paragraph(comparison.family(found.compared), "quiet")
    for title, (names, cells), foot in comparison_arms.sections(found.compared, None):
        plain = [name.replace("\n", " ").strip() for name in names]
        made += f"<h3>{html.safe(title)}</h3>{html.table(plain, cells, 3)}{html.quiet(foot)}"
    return made


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
        kept = _middle(found.jobs)
        said = f"Of {len(found.jobs)} jobs, that with the middle test score of each arm on each task is told in full."
        return html.paragraph(said) + _rows(found.rows) + "".join(_job(job) for job in kept[:_MOST_JOBS])
    return _rows(found.rows) + "".join(_job(job) for job in found.jobs)


def _middle(jobs: Sequence[JobStory]) -> list[JobStory]:
    """Of each arm on each task the job with the middle score; of those without a score none."""
    groups: dict[tuple[str, str], list[tuple[float, str, JobStory]]] = {}
    for job in jobs:
        score = job.results["test"].get("best", {}).get("mean")
        if score is not None:
            groups.setdefault((job.task, job.arm), []).append((score, job.job_id, job))
    return [sorted(own, key=lambda one: one[:2])[(len(own) - 1) // 2][2] for own in groups.values()]


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
