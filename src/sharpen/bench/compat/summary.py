"""What a job came to: `summary.json`, `config.json`, `runtime_state.json`, and the measurements at its beginning and end.

`best_selection_hard` is the hard score, whatever metric the gate goes by, and stands there only where the best was measured
on every item decisions rest on. The score it was chosen by, and the confirmed one with its interval, are under `sharpen`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sharpen
from sharpen.bench.compat import tokens
from sharpen.bench.compat.about import About, seen
from sharpen.bench.compat.epochs import counts, epoch_stats
from sharpen.bench.compat.known import Draw, Known, draws_of
from sharpen.bench.compat.rollouts import as_json
from sharpen.bench.compat.story import Line, Span, elapsed
from sharpen.bench.compat.words import SETTINGS
from sharpen.bench.export import model_name
from sharpen.engine.metric import mean_of

_TESTS = {"initial": "test_eval_baseline", "best": "test_eval", "final": "test_eval_final"}
_ROW = ("hard_acc", "low", "high", "scored", "failed")


def config(about: About) -> dict[str, Any]:
    """The settings under their classic names, and all of them as they are here."""
    started, plan, params = about.source.started, about.plan, about.source.params
    names = {
        role: model_name(name, started["models"].get(role, {}))
        for role, name in about.source.names.items()
        if role in started["models"]
    }
    return {
        "env": started["task"],
        "target_model": names.get("target"),
        "optimizer_model": names.get("optimizer"),
        "seed": started["seed"],
        "train_size": started["splits"]["train"][0],
        "sel_env_num": None if plan is None else plan["deciding"],
        "test_env_num": started["splits"]["test"][0],
        "eval_test": True,
        "use_gate": about.gate != "force",
        "steps_per_epoch": None if plan is None else plan["steps_per_epoch"],
        "total_steps": None if plan is None else plan["steps"],
        **{theirs: params.get(ours) for theirs, ours in SETTINGS.items()},
        "sharpen": {
            name: started[name] for name in ("job_id", "task_version", "trainer_version", "params", "models", "render")
        },
    }


def runtime_state(about: About, pieces: Sequence[Span]) -> dict[str, Any]:
    """Where the training stands between two steps."""
    last = where(about, pieces)
    step = next((span.number for span in reversed(pieces) if span.done is not None and "action" in span.done), 0)
    return {
        "last_completed_step": step,
        "current_skill_path": f"skills/skill_v{step:04d}.md",
        "current_score": last["current_score"],
        "current_origin": about.origin_of(last["current"]),
        "best_skill_path": "best_skill.md",
        "best_score": last["best_score"],
        "best_step": last["best_step"],
        "best_origin": about.origin_of(last["best"]),
    }


def where(about: About, pieces: Sequence[Span]) -> dict[str, Any]:
    """The current and the best candidate after the last piece that came to its end, the closing included."""
    initial = about.source.started["candidate"]
    found: dict[str, Any] = {
        "current": initial, "current_score": None, "best": initial, "best_score": None, "best_step": 0
    }  # fmt: skip
    for span in pieces:
        if span.done is not None:
            kept = {name: span.done[name] for name in found if name in span.done}
            if "best_step" not in kept and kept["best"] != found["best"]:
                kept["best_step"] = span.done["step"]
            found |= kept
    for line in about.source.lines:
        if line["type"] == "promoted":
            if line["candidate"] == found["current"]:
                found["current_score"] = line["measured"]
            if line["promoted"]:
                steps = 0 if about.plan is None else about.plan["steps"]
                found |= {"best": line["candidate"], "best_score": line["measured"], "best_step": steps}
        if line["type"] == "checkpointed" and line["path"].endswith("/best"):
            found["best_step"] = line["step"]
    return found


def summary(about: About, pieces: Sequence[Span], history: Sequence[dict[str, Any]], known: Known) -> dict[str, Any]:
    started, lines = about.source.started, about.source.lines
    last = where(about, pieces)
    best, final = known.selection(last["best"]), known.selection(_final(lines) or last["current"])
    initial = known.selection(started["candidate"])
    told = counts(history)
    gains = {line["new"]: line for line in lines if line["type"] == "gained"}
    tested = _tested(about)
    return {
        "version": f"sharpen-{sharpen.__version__}",
        "config": config(about),
        "baseline_selection_hard": initial.hard if initial.whole else None,
        "best_selection_hard": best.hard if best.whole else None,
        "final_selection_hard": final.hard if final.whole else None,
        "final_selection_soft": final.soft if final.whole else None,
        "best_step": last["best_step"],
        "current_origin": about.origin_of(last["current"]),
        "best_origin": about.origin_of(last["best"]),
        "total_steps": len(history),
        **{f"total_{name}": count for name, count in told.items()},
        "epoch_stats": epoch_stats(history, pieces, known),
        **_scores("baseline_test", tested.get("initial")),
        **_scores("test", tested.get("best")),
        **_scores("final_test", tested.get("final")),
        "test_delta_hard": gains["best"]["mean"] if "best" in gains else None,
        "final_test_delta_hard": gains["final"]["mean"] if "final" in gains else None,
        "total_wall_time_s": elapsed(lines),
        "token_summary": tokens.used(lines),
        "sharpen": {
            "status": next((line["status"] for line in reversed(lines) if line["type"] == "job_ended"), "unfinished"),
            "total_drafts": sum(record["sharpen"]["action"] == "draft" for record in history),
            "gate_metric": about.metric.name,
            "best_score": last["best_score"],
            "best_confirmed": _told(
                lines, "best_confirmed", ("value", "low", "high", "items", "how", "raw", "initial")
            ),
            "promotion": _told(lines, "promoted", ("candidate", "effect", "low", "high", "promoted", "measured")),
            "selection": {
                "initial": seen(initial, about.metric),
                "best": seen(best, about.metric),
                "final": seen(final, about.metric),
            },
            "test": {line["which"]: _row(line["score"]) for line in lines if line["type"] == "tested"},
            "test_delta_hard": {
                which: {name: line[name] for name in ("mean", "low", "high", "items", "method")}
                for which, line in gains.items()
            },
        },
    }


def measurement_files(about: About, known: Known) -> dict[str, str]:
    """The initial candidate on val, the final one on val where it was checked, and all three on test."""
    lines = about.source.lines
    found = about.selection_files("selection_eval_baseline", about.source.started["candidate"], known)
    checked = next((line for line in lines if line["type"] == "promoted"), None)
    if checked is not None:
        found |= about.selection_files("final_selection_eval", checked["candidate"], known)
    for which, draws in _tested(about).items():
        line = next(line for line in lines if line["type"] == "tested" and line["which"] == which)
        home = _TESTS[which]
        found |= about.rollouts.files(home, line["candidate"], draws)
        found[f"{home}/summary.json"] = as_json({kind: _row(row) for kind, row in line["by_type"].items()})
    return found


def _tested(about: About) -> dict[str, list[Draw]]:
    """The attempts on test of each candidate that has a score there."""
    lines = about.source.lines
    groups = {
        group["candidate"]: group
        for line in lines
        if line["type"] == "measured" and line["purpose"] == "test"
        for group in line["groups"]
    }
    return {
        line["which"]: draws_of(about.source, groups[line["candidate"]]) for line in lines if line["type"] == "tested"
    }


def _scores(name: str, draws: Sequence[Draw] | None) -> dict[str, float | None]:
    hard, soft = ([], []) if draws is None else ([draw.hard for draw in draws], [draw.soft for draw in draws])
    return {f"{name}_hard": mean_of(hard), f"{name}_soft": mean_of(soft)}


def _row(row: Sequence[Any]) -> dict[str, Any]:
    """A test score: `total` counts all items, `hard_acc` is the mean of those that were scored."""
    found = dict(zip(_ROW, row, strict=True))
    return {"total": found["scored"] + found["failed"], **found}


def _final(lines: Sequence[Line]) -> str | None:
    saved = [line for line in lines if line["type"] == "checkpointed" and line["path"].endswith("/final")]
    return saved[-1]["candidate"] if saved else None


def _told(lines: Sequence[Line], kind: str, names: Sequence[str]) -> dict[str, Any] | None:
    line = next((line for line in reversed(lines) if line["type"] == kind), None)
    return None if line is None else {name: line.get(name) for name in names}
