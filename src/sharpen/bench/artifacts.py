"""What is derived from a job's events: `results.json`, the curves for TensorBoard, and the reading of a job for people.

`results` is a pure function of the lines of `events.jsonl`, so it can be made at any time for a running, crashed or
finished job, and two jobs with the same story have the same results. Whatever depends on the clock is under `clock`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sharpen.bench import benchmark, objectives, policy_curve, tensorboard
from sharpen.core.usage import NOTHING, Usage
from sharpen.engine.replay import read_events
from sharpen.engine.spec import JobSpec
from sharpen.files import write_json
from sharpen.stats.normalise import Reference
from sharpen.tasks.textual import CUT_OFF

SCHEMA_VERSION = 1

Line = dict[str, Any]

_CURVE = ("batch_score", "current_score", "best_score")
_INTERVAL = ("mean", "low", "high")
_VERDICT = ("gate", "accepted", "reason", "effect", "low", "high", "evidence", "rollouts", "items")

MOST_CUT_OFF = 0.1
"""The share of answers cut off at `max_tokens` from which on it is worth a word."""


def write(folder: Path) -> None:
    """Derive `results.json` and the curves for TensorBoard anew from the story."""
    lines = read_events(folder / "events.jsonl")
    if lines:
        write_json(folder / "results.json", results(lines))
        tensorboard.write(folder, lines)


def write_job_meta(folder: Path, spec: JobSpec) -> None:
    """What the job is, for whoever opens its folder."""
    fields = {name: getattr(spec, name) for name in spec.__dataclass_fields__}
    write_json(folder / "job_meta.json", {"schema_version": SCHEMA_VERSION, "job_id": spec.job_id, **fields})


def results(lines: Sequence[Line]) -> dict[str, Any]:
    """Everything a job came to, as far as its story goes."""
    started, repeated = _first(lines, "job_started") or {}, _first(lines, "repeat_stated")
    ended, capped = _last(lines, "job_ended"), _first(lines, "budget_ended")
    against = benchmark.stated(lines)
    scale = benchmark.scale_of(against)
    return {
        "schema_version": SCHEMA_VERSION,
        "job_id": started.get("job_id"),
        "task": started.get("task"),
        "trainer": started.get("trainer"),
        "seed": started.get("seed"),
        "trainee": benchmark.POLICY if _first(lines, policy_curve.ADVANCED) else "text",
        **({} if repeated is None else {"repeat": repeated["repeat"]}),
        **({} if against is None else {"benchmark": against}),
        "status": ended["status"] if ended else "unfinished",
        "message": ended["message"] if ended else "",
        "budget_ended": None if capped is None else capped["message"],
        "steps": [benchmark.with_normalised(row, _CURVE, scale) for row in _steps(lines)],
        "remarks": (_first(lines, "planned") or {}).get("remarks", []),
        "epochs": epochs(lines),
        "promotion": _promotion(lines),
        "best": _best(lines, scale),
        "test": {line["which"]: _summary(line, scale) for line in _all(lines, "tested")},
        "gain": {line["new"]: _gain(line, scale) for line in _all(lines, "gained")},
        "objectives": objectives.of_job(lines),
        "usage": _usage(lines),
        "model_never_asked": _model_never_asked(started, lines),
        "cut_off": _cut_off(lines),
        "failed_rollouts": sum(len(group["failed"]) for line in _all(lines, "measured") for group in line["groups"]),
        "lost_answers": sum(line["error"] is not None for line in _all(lines, "asked")),
        "clock": _clock(lines),
    }


def _steps(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """Every step of a text's training with what the job had used by then; every evaluation of a policy's."""
    told = _by_step(lines)
    taken = [{**step(told[done["step"]], done), **spent} for done, spent in _curve(lines)]
    nothing = {"calls": 0, "tokens": 0, "money": 0.0}
    return taken or [{**row, **nothing} for row in policy_curve.rows(lines)]


def step(lines: Sequence[Line], done: Line) -> dict[str, Any]:
    """What a step came to: its edits, the gate's verdict, and how it ended. `done` is its `step_done` line."""
    number = done["step"]
    revised = next((line for line in _all(lines, "revised") if line["step"] == number), None)
    put_forward = revised["candidate"] if revised else None
    decided = next(
        (line for line in _all(lines, "decided") if line["step"] == number and line["new"] == put_forward), None
    )
    found = _pick(done, "step", "epoch", "action", "batch_score", "current", "current_score", "best", "best_score")
    found["edits"] = _made(revised["edits"], revised["report"]) if revised else []
    found["report"] = revised["report"] if revised else []
    refused = [line for line in _all(lines, "refused") if line["step"] == number]
    found["refused"] = [row[1:] for line in refused for row in line["alternatives"]]
    found["decision"] = _pick(decided, *_VERDICT) if decided else None
    return found


def _made(edits: Sequence[Line], report: Sequence[Line]) -> list[Line]:
    """The edits that were made: of those new in a step, which stand last, the ones its report says were applied."""
    before = len(edits) - len(report)
    return [*edits[:before], *(edits[before + n] for n, row in enumerate(report) if row["status"] == "applied")]


def _by_step(lines: Sequence[Line]) -> dict[int, list[Line]]:
    """The lines that tell of a step's change, by step: a long training has too many to go through them for each step."""
    found: dict[int, list[Line]] = defaultdict(list)
    for line in lines:
        if line["type"] in ("revised", "refused", "decided"):
            found[line["step"]].append(line)
    return found


def _curve(lines: Sequence[Line]) -> Iterator[tuple[Line, dict[str, Any]]]:
    """Every step's last line, with what the job had used by then."""
    used = NOTHING
    for line in lines:
        if line["type"] == "measured":
            used = sum((Usage.from_told(row) for row in line["usage"].values()), used)
        elif line["type"] == "asked":
            used += Usage.from_told(line["usage"])
        elif line["type"] == "step_done":
            tokens = used.prompt_tokens + used.completion_tokens
            yield line, {"calls": used.calls, "tokens": tokens, "money": used.money}


def epochs(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """How the steps of each epoch ended, what the long view over it came to, and where it left the scores."""
    found = []
    steps: dict[int, list[str]] = defaultdict(list)
    for line in _all(lines, "step_done"):
        steps[line["epoch"]].append(line["action"])
    updates = {line["epoch"]: line for line in reversed(_all(lines, "slow_updated"))}
    for done in _all(lines, "epoch_done"):
        actions, slow = steps[done["epoch"]], updates.get(done["epoch"])
        found.append(
            {
                **_pick(done, "epoch", "current", "current_score", "best", "best_score", "unscored"),
                "steps": len(actions),
                "accepted": actions.count("accept"),
                "drafts": actions.count("draft"),
                "rejected": actions.count("reject"),
                "skipped": sum(action.startswith("skip") for action in actions),
                "slow_update": _slow_update(lines, slow),
            }
        )
    return found


def _slow_update(lines: Sequence[Line], told: Line | None) -> dict[str, Any] | None:
    """What the long view wrote, and the gate's verdict on it where it was put before the gate."""
    if told is None:
        return None
    asked = (line for line in _all(lines, "decided") if line["new"] == told["candidate"])
    decided = next((line for line in asked if line["step"] == told["step"]), None)
    return {**_pick(told, "step", "action", "content"), "decision": _pick(decided, *_VERDICT) if decided else None}


def _promotion(lines: Sequence[Line]) -> dict[str, Any] | None:
    """The final check of what training ended with, with the edits that lead to it where it is a draft."""
    told = _last(lines, "promoted")
    if told is None:
        return None
    revised = next((line for line in _all(lines, "revised") if line["candidate"] == told["candidate"]), None)
    found = _pick(told, "candidate", "effect", "low", "high", "promoted")
    return {**found, "edits": revised["edits"] if revised else []}


def _best(lines: Sequence[Line], scale: Reference | None) -> dict[str, Any] | None:
    confirmed = _last(lines, "best_confirmed")
    saved = next((line for line in reversed(_all(lines, "checkpointed")) if line["path"].endswith("/best")), None)
    done = _last(lines, "step_done") or next(reversed([*policy_curve.rows(lines)]), None)
    if confirmed is None and done is None:
        return None
    found: dict[str, Any] = {
        "candidate": confirmed["candidate"] if confirmed else done["best"] if done else None,
        "step": saved["step"] if saved else done["best_step"] if done else 0,
        "path": saved["path"] if saved else None,
        "raw": confirmed["raw"] if confirmed else done["best_score"] if done else None,
    }
    if confirmed is None:
        return benchmark.with_normalised(found, ("raw",), scale)
    about = _pick(confirmed, "value", "low", "high", "how", "initial")
    both = benchmark.with_normalised({**found, **about}, ("raw", "value", "low", "high", "initial"), scale)
    normalised = {"normalised": both["normalised"]} if scale is not None else {}
    return {**found, "confirmed": {**about, "n": confirmed["items"]}, **normalised}


def _gain(line: Line, scale: Reference | None) -> dict[str, Any]:
    found = {**_pick(line, "old", "mean", "low", "high", "method"), "n": line["items"], "p": line.get("p")}
    return benchmark.with_normalised(found, _INTERVAL, scale, differences=True)


def _summary(line: Line, scale: Reference | None) -> dict[str, Any]:
    names = (*_INTERVAL, "n", "failed")
    rows = {kind: dict(zip(names, row, strict=True)) for kind, row in line["by_type"].items()}
    return {
        "candidate": line["candidate"],
        **benchmark.with_normalised(dict(zip(names, line["score"], strict=True)), _INTERVAL, scale),
        "by_type": {kind: benchmark.with_normalised(row, _INTERVAL, scale) for kind, row in rows.items()},
    }


def _usage(lines: Sequence[Line]) -> dict[str, Any]:
    """By `stage/purpose` and role, and all together."""
    table: dict[str, dict[str, Usage]] = {}
    for line in lines:
        if line["type"] == "measured":
            _add(table, f"{line['stage']}/{line['purpose']}", line["usage"])
        elif line["type"] == "asked":
            _add(table, f"{line['stage']}/ask", {line["role"]: line["usage"]})
    total = sum((usage for row in table.values() for usage in row.values()), NOTHING)
    stages = {key: {role: _named(u) for role, u in sorted(row.items())} for key, row in sorted(table.items())}
    return {"stages": stages, "total": _named(total)}


def _cut_off(lines: Sequence[Line]) -> dict[str, int]:
    """How many answers ended at the most tokens they may have, and how many rollouts there were."""
    groups = [group for line in _all(lines, "measured") for group in line["groups"]]
    cut = sum(value is not None for group in groups for value in group.get("measures", {}).get(CUT_OFF, ()))
    return {"answers": cut, "rollouts": sum(len(group["items"]) for group in groups)}


def _model_never_asked(started: Line, lines: Sequence[Line]) -> bool:
    """Whether rollouts were made and a model was there for them, and none of them asked it."""
    measured = _all(lines, "measured")
    asked = any(row[0] for line in measured for row in line["usage"].values())
    scored = any(group["items"] and not group["failed"] for line in measured for group in line["groups"])
    return "target" in started.get("models", {}) and scored and not asked


def _add(table: dict[str, dict[str, Usage]], key: str, rows: dict[str, Any]) -> None:
    for role, row in rows.items():
        entry = table.setdefault(key, {})
        entry[role] = entry.get(role, NOTHING) + Usage.from_told(row)


def _named(usage: Usage) -> dict[str, Any]:
    return {
        "calls": usage.calls,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "money": None if usage.money is None else round(usage.money, 9),
    }


def _clock(lines: Sequence[Line]) -> dict[str, Any]:
    stages: dict[str, float] = {}
    for line in _all(lines, "stage_done"):
        stages[line["stage"]] = round(stages.get(line["stage"], 0.0) + line["clock"].get("seconds", 0.0), 3)
    return {
        "began": lines[0]["clock"].get("at") if lines else None,
        "last": lines[-1]["clock"].get("at") if lines else None,
        "seconds": lines[-1]["clock"].get("elapsed") if lines else None,
        "steps": [
            line["clock"].get("elapsed") for line in _all(lines, "step_done") or _all(lines, policy_curve.EVALUATED)
        ],
        "stages": stages,
    }


def _all(lines: Sequence[Line], kind: str) -> list[Line]:
    return [line for line in lines if line["type"] == kind]


def _first(lines: Sequence[Line], kind: str) -> Line | None:
    return next((line for line in lines if line["type"] == kind), None)


def _last(lines: Sequence[Line], kind: str) -> Line | None:
    return next((line for line in reversed(lines) if line["type"] == kind), None)


def _pick(line: Line, *names: str) -> dict[str, Any]:
    return {name: line[name] for name in names}
