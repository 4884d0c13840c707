"""The files of a whole run, derived from its jobs: `results.csv`, `leaderboard.csv`, `summary.json`; and `pareto.json` for
tasks that aim at several things.

A row per job of the manifest, in its order, whether it has run or not. All of it is a function of the jobs' stories and of
how their processes ended, so it can be made at any time, also while jobs run. Columns that depend on the clock begin with
`time` or `seconds`.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

from sharpen.bench import benchmark, layout, objectives, story, tensorboard
from sharpen.bench.artifacts import results
from sharpen.bench.layout import RunFolder
from sharpen.bench.reuse import reused_from
from sharpen.core.digest import Json
from sharpen.core.printable import csv_cells
from sharpen.core.redact import redact, redact_json
from sharpen.files import write_atomic, write_json
from sharpen.ledger.payments import Paid, account_name, read_accounts
from sharpen.stats.intervals import bounded_mean

PROCESS = "process.json"
PARETO = "pareto.json"
SKIPPED = "skipped"

CLASSIC = (
    "run_id", "job_id", "task_id", "suite", "trainer_id", "seed", "status", "score_initial", "score_final", "score_best",
    "time_seconds", "resolved_trainer_kwargs", "resolved_optimizer_kwargs", "eval_kwargs", "feedback", "tb_logdir",
)  # fmt: skip
"""Columns that users of Trace-Bench know, under the names they know them by. Scores are on the test split."""

OURS = (
    "arm", "steps", "best_step", "score_val_raw", "score_val_confirmed", "confirmed_low", "confirmed_high", "gain",
    "gain_low", "gain_high", "score_by_type", "calls", "prompt_tokens", "completion_tokens", "money", "target_calls",
    "target_tokens", "target_money", "optimizer_calls", "optimizer_tokens", "optimizer_money", "judge_calls",
    "judge_tokens", "judge_money", "failed_rollouts", "seconds_cpu", "seconds_steps", "repeat",
    "score_initial_normalised", "score_final_normalised", "score_best_normalised", "score_val_raw_normalised",
    "score_val_confirmed_normalised", "confirmed_low_normalised", "confirmed_high_normalised", "gain_normalised",
    "gain_low_normalised", "gain_high_normalised", "benchmark", "reused_from",
)  # fmt: skip


def write_tables(folder: RunFolder, known: dict[str, dict[str, Json]] | None = None) -> None:
    """Derive the run's files anew. Rows of jobs at their end are kept in `known`, so that they are derived only once."""
    rows = list(table(folder, {} if known is None else known))
    aims = sorted({name for one in rows if one["objectives"] for name in one["objectives"]["stated"]})
    write_atomic(folder.path / "results.csv", _csv((*CLASSIC, *OURS, *(f"test_{name}" for name in aims)), rows))
    if aims:
        write_json(folder.path / PARETO, {"schema_version": layout.SCHEMA_VERSION, "tasks": objectives.of_study(rows)})
    board = leaderboard(rows)
    write_atomic(folder.path / "leaderboard.csv", _csv(tuple(board[0]) if board else ("task_id",), board))
    write_json(folder.path / "summary.json", summary(folder, rows))


def table(folder: RunFolder, known: dict[str, dict[str, Json]]) -> Iterator[dict[str, Json]]:
    """A row per job."""
    manifest = folder.manifest
    for job_id, about in manifest["jobs"].items():
        if job_id not in known:
            made = skipped(folder, job_id, about) if "skipped" in about else row(folder, job_id, about)
            if made["status"] == "ok" and made["seconds_cpu"] is not None:  # its process has ended too
                known[job_id] = made
        yield known.get(job_id) or made


def row(folder: RunFolder, job_id: str, about: Mapping[str, Any]) -> dict[str, Json]:
    """What a job came to, as far as it went."""
    home = folder.job(job_id)
    told = story.read(home)
    lines, found = told.lines, results(told.lines)
    process = layout.read_json(home / PROCESS) if (home / PROCESS).exists() else None
    test, best, gain = found["test"], found["best"] or {}, found["gain"].get("best", {})
    confirmed = best.get("confirmed", {})
    status, reason = _status(found, process, running=layout.is_running(home))
    if told.damage:
        status, reason = "failed", told.damage
    models = about.get("models") or {}
    return {
        "run_id": folder.path.name,
        "job_id": job_id,
        "task_id": about["task"],
        "suite": about.get("suite", ""),
        "trainer_id": about["trainer"],
        "seed": about["seed"],
        "status": status,
        **{f"score_{which}": test.get(which, {}).get("mean") for which in ("initial", "final", "best")},
        "time_seconds": found["clock"]["seconds"],
        "resolved_trainer_kwargs": lines[0]["params"] if lines else about.get("params", {}),
        "resolved_optimizer_kwargs": {"model": models["optimizer"]} if models.get("optimizer") else {},
        "eval_kwargs": {
            **(about.get("settings") or {}),
            **{name: models[name] for name in sorted(models) if name != "optimizer"},
        },
        "feedback": reason,
        "tb_logdir": f"jobs/{job_id}/{tensorboard.FOLDER}" if (home / tensorboard.FOLDER).exists() else "",
        "arm": about.get("arm", about["trainer"]),
        "steps": found["steps"][-1]["step"] if found["steps"] else 0,
        "best_step": best.get("step"),
        "score_val_raw": best.get("raw"),
        "score_val_confirmed": confirmed.get("value"),
        "confirmed_low": confirmed.get("low"),
        "confirmed_high": confirmed.get("high"),
        "gain": gain.get("mean"),
        "gain_low": gain.get("low"),
        "gain_high": gain.get("high"),
        "score_by_type": {name: one["mean"] for name, one in test.get("best", {}).get("by_type", {}).items()},
        **{name: found["usage"]["total"][name] for name in ("calls", "prompt_tokens", "completion_tokens", "money")},
        **_by_role(found["usage"]["stages"]),
        "objectives": found["objectives"],
        **{f"test_{name}": mean for name, mean in _tested(found["objectives"]).items()},
        "failed_rollouts": found["failed_rollouts"],
        "seconds_cpu": None if process is None else process["clock"]["cpu"],
        "seconds_steps": found["clock"]["stages"],
        "reused_from": reused_from(home),
        "repeat": about.get("repeat", 0),
        "trainee": found["trainee"],
        "benchmark": found.get("benchmark"),
        **_normalised(found),
    }


def _normalised(found: Mapping[str, Any]) -> dict[str, Json]:
    """What a job came to on its benchmark's scale; nothing where it has none."""
    best, gain = (one.get("normalised") or {} for one in (found["best"] or {}, found["gain"].get("best", {})))
    tested = {which: row.get("normalised") or {} for which, row in found["test"].items()}
    made = {f"score_{which}": tested.get(which, {}).get("mean") for which in ("initial", "final", "best")}
    made |= {"score_val_raw": best.get("raw"), "score_val_confirmed": best.get("value")}
    made |= {"confirmed_low": best.get("low"), "confirmed_high": best.get("high")}
    made |= {"gain": gain.get("mean"), "gain_low": gain.get("low"), "gain_high": gain.get("high")}
    return {f"{name}_normalised": value for name, value in made.items()}


def job_payments(folder: RunFolder) -> dict[str, Paid]:
    """By job id: what each job of a run has really paid, from the ledger. Jobs that the run no longer has are there too."""
    jobs = account_name(folder.path / "jobs", folder.ledger) + "/"
    paid = read_accounts(folder.ledger)
    return {account.removeprefix(jobs): used for account, used in paid.items() if account.startswith(jobs)}


def skipped(folder: RunFolder, row_id: str, about: Mapping[str, Any]) -> dict[str, Json]:
    """The row of a job that was left out: as of one that has not begun, with what is missing."""
    return {**row(folder, row_id, about), "status": SKIPPED, "feedback": about["skipped"]}


def leaderboard(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Json]]:
    """Per task and arm: the mean of the test scores over seeds with its 95 % interval, the gain, and what it took; all over
    the jobs that came to a score, of which there are `n`. What was skipped has no place in it."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for one in (one for one in rows if one["status"] != SKIPPED):
        groups.setdefault((one["task_id"], one["arm"]), []).append(one)
    made = []
    for (task, arm), members in groups.items():
        done = [one for one in members if one["score_best"] is not None]
        scores = [one["score_best"] for one in done]
        gains = [one["gain"] for one in done if one["gain"] is not None]
        ends = (-inf, inf) if members[0]["trainee"] == benchmark.POLICY else (0.0, 1.0)
        low, high, method = bounded_mean(scores, 0.95, *ends) if len(scores) > 1 else (None, None, "one seed")
        mean, gain = (sum(some) / len(some) if some else None for some in (scores, gains))
        made.append(
            {
                "task_id": task,
                "rank": None,
                "arm": arm,
                "trainer_id": members[0]["trainer_id"],
                "score_mean": mean,
                "score_low": low,
                "score_high": high,
                "interval": method,
                "n": len(scores),
                "failed": sum(one["status"] == "failed" for one in members),
                "gain_mean": gain,
                "calls_mean": _mean(done, "calls"),
                "tokens_mean": _mean(done, "prompt_tokens", "completion_tokens"),
                "money_mean": _mean(done, "money"),
                "seconds_mean": _mean(done, "time_seconds"),
                **_board_normalised(members, mean, low, high, gain),
            }
        )
    return [one for task in dict.fromkeys(m["task_id"] for m in made) for one in _ranked(task, made)]


def summary(folder: RunFolder, rows: Sequence[Mapping[str, Any]]) -> dict[str, Json]:
    counts: dict[str, int] = {}
    for one in rows:
        counts[one["status"]] = counts.get(one["status"], 0) + 1
    own, taken = [one for one in rows if not one["reused_from"]], [one for one in rows if one["reused_from"]]
    manifest = folder.manifest
    return {
        "schema_version": layout.SCHEMA_VERSION,
        "run_id": folder.path.name,
        "tags": manifest.get("tags", []),
        "total_jobs": len(rows),
        "counts": counts,
        "totals": _totals(own),
        "paid": _paid(folder, own),
        "reused": {"jobs": {one["job_id"]: one["reused_from"] for one in taken}, "totals": _totals(taken)},
        "failures": {one["job_id"]: one["feedback"] for one in rows if one["status"] == "failed"},
        "skipped": {one["job_id"]: one["feedback"] for one in rows if one["status"] == SKIPPED},
        "clock": {"seconds": sum(one["time_seconds"] or 0.0 for one in own)},
    }


def _paid(folder: RunFolder, rows: Sequence[Mapping[str, Any]]) -> dict[str, Json]:
    """What was really paid, by the ledger: by jobs that were killed and for calls that were lost too. Money is not known
    where a price is not."""
    paid = sum(job_payments(folder).values(), Paid())
    money = None if any(one["money"] is None for one in rows) else round(paid.money, 9)
    return {"calls": paid.calls, "tokens": paid.tokens, "money": money, "lost_calls": paid.lost}


def _totals(rows: Sequence[Mapping[str, Any]]) -> dict[str, Json]:
    """What these jobs used, all together."""
    totals = {name: sum(one[name] or 0 for one in rows) for name in ("calls", "prompt_tokens", "completion_tokens")}
    money = [one["money"] for one in rows]
    return {**totals, "money": None if None in money else round(sum(money), 9)}


def _ranked(task: str, made: Sequence[dict[str, Any]]) -> list[dict[str, Json]]:
    """The arms of one task, best first, with their ranks within it."""
    own = [one for one in made if one["task_id"] == task]
    own.sort(key=lambda one: (one["score_mean"] is None, -_sign(one) * (one["score_mean"] or 0.0)))
    return [{**one, "rank": rank} for rank, one in enumerate(own, start=1)]


def _sign(one: Mapping[str, Any]) -> float:
    """-1 where the benchmark's human score lies below the random one: less is better there."""
    low, high = one["random_score"], one["human_score"]
    return -1.0 if low is not None and high < low else 1.0


def _board_normalised(
    members: Sequence[Mapping[str, Any]], mean: float | None, low: float | None, high: float | None, gain: float | None
) -> dict[str, Json]:
    """What an arm came to on the scale that its jobs share; nothing where they have none, or not the same."""
    scales = {benchmark.scale_of(one["benchmark"]) for one in members if one["score_best"] is not None}
    scale = next(iter(scales)) if len(scales) == 1 else None
    found = benchmark.with_normalised({"mean": mean, "low": low, "high": high}, ("mean", "low", "high"), scale)
    gained = benchmark.with_normalised({"gain": gain}, ("gain",), scale, differences=True)
    told = {**found.get("normalised", {}), **gained.get("normalised", {})}
    return {
        **{f"score_{name}_normalised": told.get(name) for name in ("mean", "low", "high")},
        "gain_mean_normalised": told.get("gain"),
        "random_score": None if scale is None else scale.random,
        "human_score": None if scale is None else scale.reference,
        "scale": None if scale is None else scale.scale,
        "reference": None if scale is None else scale.source,
        "protocol": None if scale is None else scale.protocol,
    }


def _status(found: Mapping[str, Any], process: Mapping[str, Any] | None, *, running: bool) -> tuple[str, str]:
    if running:
        return "running", ""
    if found["status"] in ("done", "budget"):
        return "ok", found["budget_ended"] or ""
    if found["status"] == "failed":
        return "failed", found["message"]
    if process is not None:
        return ("stopped" if process["state"] == "stopped" else "failed"), process["reason"]
    if found["job_id"]:  # it has begun, and nobody was left to say how it ended
        return "stopped", "the run was killed"
    return "not_run", ""


def _tested(objectives: Mapping[str, Any] | None) -> Mapping[str, float]:
    """The means of the best candidate in each objective."""
    found: Mapping[str, float] = {} if objectives is None else objectives["test"].get("best", {})
    return found


def _by_role(stages: Mapping[str, Any]) -> dict[str, Json]:
    made: dict[str, Json] = {}
    for role in ("target", "optimizer", "judge"):
        rows = [row[role] for row in stages.values() if role in row]
        money = [one["money"] for one in rows]
        made[f"{role}_calls"] = sum(one["calls"] for one in rows)
        made[f"{role}_tokens"] = sum(one["prompt_tokens"] + one["completion_tokens"] for one in rows)
        made[f"{role}_money"] = None if None in money else round(sum(money), 9)
    return made


def _mean(rows: Sequence[Mapping[str, Any]], *names: str) -> float | None:
    known = [sum(one[name] for name in names) for one in rows if all(one[name] is not None for name in names)]
    return sum(known) / len(known) if known else None


def _csv(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for one in rows:
        writer.writerow(csv_cells({name: _cell(one.get(name)) for name in columns}).values())
    return redact(out.getvalue())


def _cell(value: Json) -> Json:
    if isinstance(value, dict | list):
        return json.dumps(redact_json(value), ensure_ascii=False, sort_keys=True)
    return "" if value is None else round(value, 9) if isinstance(value, float) else value


def rebuild(folder: RunFolder) -> list[Path]:
    """Derive every file of the run anew: each job's results, then the tables."""
    from sharpen.bench import artifacts

    for job in folder.jobs():
        if not story.read(job).damage:
            artifacts.write(job)
    write_tables(folder)
    return [folder.path / name for name in ("results.csv", "leaderboard.csv", "summary.json")]
