"""A study for people: its matrix before it runs, its leaderboard and failures afterwards. Read from the run's files."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich.text import Text

from sharpen.bench import benchmark
from sharpen.bench.matrix import Matrix, Skipped
from sharpen.bench.outlook import Outlook
from sharpen.bench.reuse import Found
from sharpen.bench.study import StudyConfig
from sharpen.bench.tables import PARETO
from sharpen.core.redact import redact
from sharpen.report import objectives, text
from sharpen.report.closing import Block, table

_MOST_ROWS = 200


def shown_matrix(
    study: StudyConfig,
    matrix: Matrix,
    outlooks: Sequence[Outlook],
    whole: Outlook,
    elsewhere: Mapping[str, Found] | None = None,
) -> Iterator[Block]:
    """The jobs with their ids, and what they would take; what other runs have of them, where such were named."""
    reused = {job_id: one.run.path.name for job_id, one in (elsewhere or {}).items() if one.run is not None}
    made = table("job", "task", "arm", "seed", "calls", "tokens", "money", "time", left=3)
    for job, outlook in list(zip(matrix.jobs, outlooks, strict=True))[:_MOST_ROWS]:
        amounts = ("reused", *[""] * 3) if job.job_id in reused else _amounts(outlook)
        made.add_row(job.job_id, job.cell.task, job.cell.arm, job.cell.draw, *amounts)
    made.add_row("all", "", "", "", *_amounts(whole))
    yield made
    if len(matrix.jobs) > _MOST_ROWS:
        yield Text(f"... and {len(matrix.jobs) - _MOST_ROWS} more")
    for run, count in Counter(reused.values()).items():
        yield Text(f"{text.plural(count, 'job')} taken over from {run}, at no cost.")
    for why, count in Counter(one.why for one in (elsewhere or {}).values() if one.run is None).items():
        yield Text(f"{text.plural(count, 'job')} to run afresh: {why}.")
    yield from map(Text, shown_skipped(matrix.skipped))
    most = whole.most.calls
    bound = "no bound on calls is known: set budget.calls" if most is None else f"at most {_rough(most)} calls in all"
    yield Text(f"\n{text.plural(len(matrix.jobs), 'job')}, {study.parallel} at a time; {bound}.")
    shown = whole.most if whole.about is None else whole.about
    yield Text("~ is about, ≤ at most; tokens and money are a guess, for the skill as long as it is now.", style="dim")
    if shown.money is None:
        yield Text(
            "Money is not known: a file named in SHARPEN_PRICES can say it (docs/models.md shows one).", style="dim"
        )
    if shown.seconds is None:
        yield Text("Time is not known: `sharpen doctor` times the model, and is remembered here.", style="dim")


def shown_skipped(skipped: Sequence[Skipped]) -> list[str]:
    """What is left out and why, each reason once."""
    counts = Counter(one.reason for one in skipped)
    return [f"{text.plural(count, 'job')} skipped: {redact(reason)}" for reason, count in counts.items()]


def _amounts(outlook: Outlook) -> Iterator[str]:
    """Calls, tokens, money and time: about, where that is known, else at most."""
    shown = outlook.most if outlook.about is None else outlook.about
    for name, write in (("calls", _rough), ("tokens", _rough), ("money", _money), ("seconds", text.clock)):
        value = getattr(shown, name)
        if value is None and name in outlook.capped:
            yield f"≤ {write(getattr(outlook.most, name))}"
        elif value is None:
            yield "unknown"
        elif name == "money" and value == 0:
            yield "free"
        else:
            bound = name in outlook.capped or (outlook.about is None and name == "calls")
            yield f"{'≤' if bound else '~'} {write(value)}"


def _money(dollars: float) -> str:
    return f"{dollars:.2g} $" if dollars < 100 else f"{dollars:,.0f} $"


def _rough(number: float) -> str:
    """Three digits are all that an estimate has."""
    return text.count(float(f"{number:.3g}"))


def closing(run: Path) -> Iterator[Block]:
    """The leaderboard of each task, and what failed and why."""
    rows = _read(run / "leaderboard.csv")
    for task in dict.fromkeys(row["task_id"] for row in rows):
        yield Text(f"\n{task}", style="bold")
        own = [row for row in rows if row["task_id"] == task]
        scaled = any(row.get("score_mean_normalised") for row in own)
        more = ["normalised", "95 % interval"] if scaled else []
        made = table("arm", "test score", "95 % interval", *more, "seeds", "gain", "calls", "tokens", left=1)
        for row in own:
            made.add_row(
                row["arm"], *_scored(row, ""), *(_scored(row, "_normalised") if scaled else ()), row["n"],
                text.signed(_number(row, "gain_mean")), _whole(row, "calls_mean"), _whole(row, "tokens_mean"),
            )  # fmt: skip
        yield made
        if scaled:
            yield Text(_meaning(next(row for row in own if row["score_mean_normalised"])), style="dim")
    yield from _fronts(run)
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    counts = ", ".join(f"{count} {state.replace('_', ' ')}" for state, count in summary["counts"].items())
    yield Text(f"\n{text.plural(summary['total_jobs'], 'job')}: {counts}.")
    paid = summary.get("paid")
    if paid and paid["calls"]:
        lost = (
            f" ({text.plural(paid['lost_calls'], 'call')} of them without a usable reply)" if paid["lost_calls"] else ""
        )
        yield Text(f"Paid: {text.plural(paid['calls'], 'call')}{lost}, {text.plural(paid['tokens'], 'token')}.")
    for job, reason in summary["failures"].items():
        yield Text(f"  {job} failed: {text.short(reason, 200)}", style="red")
    for reason, count in Counter(summary.get("skipped", {}).values()).items():
        yield Text(f"  {count} skipped: {text.short(reason, 200)}", style="yellow")
    for source, count in Counter(summary["reused"]["jobs"].values()).items():
        yield Text(f"  {count} taken over from {source}, at no cost.")
    yield Text(f"\nresults       {run / 'results.csv'}\nleaderboard   {run / 'leaderboard.csv'}")


def _scored(row: Mapping[str, str], kind: str) -> tuple[str, str]:
    ends = (_number(row, f"score_{end}{kind}") for end in ("low", "high"))
    return text.score(_number(row, f"score_mean{kind}")), text.interval(*ends)


def _meaning(row: Mapping[str, str]) -> str:
    told = {name: _number(row, name) for name in ("random_score", "human_score", "scale")}
    scale = benchmark.scale_of({**told, "protocol": row["protocol"], "reference": row["reference"]})
    assert scale is not None, "a normalised score has a scale"
    return benchmark.meaning(scale)


def _fronts(run: Path) -> Iterator[Block]:
    """For each task with several aims, the front over all its jobs."""
    path = run / PARETO
    tasks = json.loads(path.read_text(encoding="utf-8"))["tasks"] if path.exists() else {}
    for task, found in tasks.items():
        if found["front"]:
            yield Text(f"\n{task}: objectives", style="bold")
            yield from objectives.front(found)


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _number(row: Mapping[str, str], name: str) -> float | None:
    return float(row[name]) if row.get(name) else None


def _whole(row: Mapping[str, str], name: str) -> str:
    value = _number(row, name)
    return text.NOTHING if value is None else text.count(round(value))
