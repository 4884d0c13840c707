"""What a page says of one job: verdict, scores, the row of its candidates with what changed, gate, items, spend."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from sharpen.report import closing, diffs, objectives, policies, steps, text
from sharpen.report.comparison import number
from sharpen.report.page import html, job_plots
from sharpen.report.page.axes import NORMALISED
from sharpen.report.page.gather import JobStory, Version

Section = tuple[str, str]
"""A heading and what stands under it, as HTML. Without anything under it, a heading is not shown."""

_MOST_LINES = 400
_MOST_ROWS = 30
_HERE = 2


def sections(job: JobStory) -> Iterator[Section]:
    """All there is, in the order of a reader's questions."""
    found = job.results
    yield "Verdict", _verdict(job)
    scores = html.of_block(closing.scores(found))
    yield "Test scores", scores and scores + html.of_block(closing.scale(found))
    yield "Objectives", _objectives(job)
    note = "" if job.is_policy else "The score on val is that of the items measured by then."
    yield "Learning curve", html.figure(job_plots.learning(job), note)
    yield "By type", html.figure(job_plots.by_type(job)) or html.of_block(closing.by_type(found))
    yield "Candidates", "" if job.is_policy else lineage(job)
    yield ("Evaluations", _evaluations(job)) if job.is_policy else ("Steps", _steps(job))
    yield "Gate evidence", html.figure(job_plots.evidence(job)) + _decisions(job)
    yield "Items by step", html.figure(job_plots.items(job))
    yield "Spend", html.figure(job_plots.spend(job)) + html.of_block(closing.costs(found))
    yield "Time", html.of_block(policies.times(found)) if job.is_policy else ""
    yield "Settings", _settings(job)


def _verdict(job: JobStory) -> str:
    found = job.results
    parts = [html.of_block(closing.ended_early(found))]
    said = closing.verdict(found)
    if said is not None:
        kind = {"green": "better", "red": "worse"}.get(str(said.style), "open")
        parts.append(html.paragraph(said.plain, f"verdict {kind}"))
    elif found["status"] == "unfinished":
        done = text.plural(len(found["steps"]), "evaluation" if job.is_policy else "step")
        state = f"This job is {job.status.replace('_', ' ')}: {done} so far, no test yet."
        parts.append(html.paragraph(state, "verdict open"))
    parts.append(html.of_block(closing.confirmation(found)))
    return "".join(parts)


def _objectives(job: JobStory) -> str:
    found = job.results["objectives"]
    blocks = [objectives.tested(found), *objectives.front(found)]
    return "".join(html.of_block(block) for block in blocks)


def lineage(job: JobStory) -> str:
    """Every candidate that became the current one, with what changed from the one before."""
    if not job.versions:
        return ""
    made = []
    for before, one in zip((None, *job.versions), job.versions, strict=False):
        if before is None:
            made.append(html.details(_about(one, "the start"), html.preformatted(_whole(one))))
            continue
        change = diffs.between(before.candidate, one.candidate, most=_MOST_LINES)
        made.append(html.details(_about(one, _name(one)), html.preformatted(change), opened=len(job.versions) <= 8))
    row = f'<ol class="lineage" start="0">{"".join(f"<li>{one}</li>" for one in made)}</ol>'
    if len(job.versions) < 2 or job.best is None:
        return row
    return row + html.details(_about(job.best, "the best, in full"), html.preformatted(_whole(job.best)))


def _name(version: Version) -> str:
    kind = version.name.rpartition("_")[0].replace("_", " ")
    if version.name == "best":
        return "made the best by the final check"
    return f"step {version.step}" if kind == "step" else f"{kind or version.name}, after step {version.step}"


def _about(version: Version, name: str) -> str:
    said = [f"<b>{html.safe(name)}</b>", f"<code>{version.digest[:12]}</code>"]
    said.append(f"{text.count(version.candidate.length)} characters")
    for key, write in (("val", text.score), ("effect", text.signed)):
        value = version.metrics.get(key)
        if isinstance(value, int | float):
            said.append(f"{key} {write(float(value))}")
    return " · ".join(said)


def _whole(version: Version) -> Text:
    parts = version.candidate.parts
    shown = Text()
    for name, content in parts.items():
        if len(parts) > 1:
            shown.append(f"{name}\n", style="bold")
        shown.append("\n".join(diffs.printable(line) for line in content.splitlines()) + "\n")
    return shown


def _steps(job: JobStory) -> str:
    rows = [
        [
            str(row["step"]), steps.ended(row), steps.edits(row["edits"]) if row["edits"] else text.NOTHING,
            text.score(row["batch_score"]), text.score(row["current_score"]), text.score(row["best_score"]),
            text.count(row["calls"]),
        ]
        for row in job.results["steps"]
    ]  # fmt: skip
    return html.table(("step", "what became of it", "edits", "batch", "current", "best", "calls so far"), rows, 3)


def _evaluations(job: JobStory) -> str:
    """Of a policy, every evaluation with the training episodes before it; a long row is there to unfold."""
    found = job.results["steps"]
    more = job.normal is not None
    rows = []
    for row in found:
        own = (row.get("normalised") or {}).get("current_score")
        figures = [number(row["current_score"]), *([number(own)] if more else []), text.count(row["episodes"])]
        best = "best so far" if row["action"] == "best" else ""
        rows.append([f"{row['step']:,}", best, *figures, number(row["batch_score"])])
    head = ("step", "", "score", *([NORMALISED] if more else []), "episodes", "training episodes")
    made = html.table(head, rows, 2)
    told = html.of_block(policies.evaluations(job.results))
    return told + (html.details("All of them", made) if len(found) > _MOST_ROWS else made)


def _decisions(job: JobStory) -> str:
    rows = [
        [
            str(line["step"]), line["gate"], "accepted" if line["accepted"] else "not accepted", line["reason"],
            steps.effect(line), text.NOTHING if line["evidence"] is None else f"{line['evidence']:.3g}",
            text.count(line["rollouts"]), text.count(line["items"]),
        ]
        for line in job_plots.decisions(job.lines)
    ]  # fmt: skip
    head = ("step", "gate", "verdict", "why", "effect on val, 90 %", "evidence", "rollouts", "items")
    return html.table(head, rows, 4)


def _settings(job: JobStory) -> str:
    if not job.lines:
        return ""
    started = job.lines[0]
    sizes = ", ".join(f"{row[0]} {name}" for name, row in (started.get("splits") or {}).items())
    task = f"{started['task']} ({sizes})" if sizes else str(started["task"])
    rows = [["task", task], ["trainer", started["trainer"]], ["seed", str(started["seed"])]]
    rows += [[f"model: {role}", _model(about)] for role, about in (started.get("models") or {}).items() if about]
    rows += [[f"params: {name}", str(value)] for name, value in sorted((started.get("params") or {}).items())]
    return html.details("What decides the result", html.table(("setting", "value"), rows, _HERE))


def _model(about: object) -> str:
    if isinstance(about, dict):
        return ", ".join(f"{key} {value}" for key, value in about.items() if value not in (None, "", {}))
    return str(about)
