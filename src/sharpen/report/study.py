"""A study for people: its matrix before it runs, its leaderboard and failures afterwards. Read from the run's files."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from rich.text import Text

from sharpen.bench.matrix import Matrix
from sharpen.bench.study import StudyConfig
from sharpen.report import text
from sharpen.report.closing import Block, table

_MOST_ROWS = 200


def problems(matrix: Matrix) -> Iterator[Block]:
    """Everything that is wrong."""
    yield Text(f"{text.plural(len(matrix.problems), 'problem')}:", style="red")
    for problem in matrix.problems:
        yield Text(f"  {problem}")


def shown_matrix(study: StudyConfig, matrix: Matrix) -> Iterator[Block]:
    """The jobs with their ids, and what they may take at most."""
    made = table("job", "task", "arm", "seed", "most calls", left=3)
    for job in matrix.jobs[:_MOST_ROWS]:
        spec = job.parts.setup.spec
        made.add_row(job.job_id, job.cell.task, job.cell.arm, str(spec.seed), _calls(job.calls))
    yield made
    if len(matrix.jobs) > _MOST_ROWS:
        yield Text(f"... and {len(matrix.jobs) - _MOST_ROWS} more")
    known = [job.calls for job in matrix.jobs]
    most = sum(calls for calls in known if calls is not None) if None not in known else None
    cap = study.total.calls
    whole = (
        f"at most {text.count(most)} calls"
        if most is not None
        else "no cap on calls: `sharpen doctor` estimates a training"
    )
    limit = f", stopped at {text.count(cap)} in all" if cap is not None else ""
    yield Text(f"\n{text.plural(len(matrix.jobs), 'job')}, {study.parallel} at a time; {whole}{limit}.")


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
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    counts = ", ".join(f"{count} {state.replace('_', ' ')}" for state, count in summary["counts"].items())
    yield Text(f"\n{text.plural(summary['total_jobs'], 'job')}: {counts}.")
    for job, reason in summary["failures"].items():
        yield Text(f"  {job} failed: {text.short(reason, 200)}", style="red")
    yield Text(f"\nresults       {run / 'results.csv'}\nleaderboard   {run / 'leaderboard.csv'}")


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _number(row: Mapping[str, str], name: str) -> float | None:
    return float(row[name]) if row.get(name) else None


def _whole(row: Mapping[str, str], name: str) -> str:
    value = _number(row, name)
    return text.NOTHING if value is None else text.count(round(value))


def _calls(calls: int | None) -> str:
    return text.NOTHING if calls is None else text.count(calls)
