"""A study for people: its matrix before it runs, its leaderboard and failures afterwards. Read from the run's files."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich.text import Text

from sharpen.bench.matrix import Matrix
from sharpen.bench.outlook import Outlook
from sharpen.bench.study import StudyConfig
from sharpen.bench.tables import PARETO
from sharpen.report import objectives, text
from sharpen.report.closing import Block, table

_MOST_ROWS = 200


def shown_matrix(study: StudyConfig, matrix: Matrix, outlooks: Sequence[Outlook], whole: Outlook) -> Iterator[Block]:
    """The jobs with their ids, and what they would take."""
    made = table("job", "task", "arm", "seed", "calls", "tokens", "money", "time", left=3)
    for job, outlook in list(zip(matrix.jobs, outlooks, strict=True))[:_MOST_ROWS]:
        made.add_row(job.job_id, job.cell.task, job.cell.arm, str(job.cell.config.seed), *_amounts(outlook))
    made.add_row("all", "", "", "", *_amounts(whole))
    yield made
    if len(matrix.jobs) > _MOST_ROWS:
        yield Text(f"... and {len(matrix.jobs) - _MOST_ROWS} more")
    most = whole.most.calls
    bound = "no bound on calls is known: set budget.calls" if most is None else f"at most {_rough(most)} calls in all"
    yield Text(f"\n{text.plural(len(matrix.jobs), 'job')}, {study.parallel} at a time; {bound}.")
    shown = whole.most if whole.about is None else whole.about
    yield Text("~ is about, ≤ at most; tokens and money are a guess, for the skill as long as it is now.", style="dim")
    if shown.money is None:
        yield Text("Money is not known: name a file with the models' prices in SHARPEN_PRICES.", style="dim")
    if shown.seconds is None:
        yield Text("Time is not known: `sharpen doctor` times the model, and is remembered here.", style="dim")


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
        made = table("arm", "test score", "95 % interval", "seeds", "gain", "calls", "tokens", left=1)
        for row in (row for row in rows if row["task_id"] == task):
            made.add_row(
                row["arm"], text.score(_number(row, "score_mean")),
                text.interval(_number(row, "score_low"), _number(row, "score_high")), row["n"],
                text.signed(_number(row, "gain_mean")), _whole(row, "calls_mean"), _whole(row, "tokens_mean"),
            )  # fmt: skip
        yield made
    yield from _fronts(run)
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    counts = ", ".join(f"{count} {state.replace('_', ' ')}" for state, count in summary["counts"].items())
    yield Text(f"\n{text.plural(summary['total_jobs'], 'job')}: {counts}.")
    for job, reason in summary["failures"].items():
        yield Text(f"  {job} failed: {text.short(reason, 200)}", style="red")
    yield Text(f"\nresults       {run / 'results.csv'}\nleaderboard   {run / 'leaderboard.csv'}")


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
