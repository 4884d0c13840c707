"""The files of one step, `steps/step_0001/...`: what was read, proposed, chosen, changed, tried and decided."""

from __future__ import annotations

from typing import Any

from sharpen.bench.compat.records import record
from sharpen.bench.compat.rollouts import as_json
from sharpen.bench.compat.step import Step
from sharpen.bench.compat.story import Line
from sharpen.bench.compat.texts import skill_files
from sharpen.bench.compat.words import change_of, payload_key, status_of

_KINDS = {"failures": "fail", "successes": "succ"}
_PREVIEW = 200


def step_files(step: Step) -> dict[str, str]:
    """All of them by path. Of a step that was not brought to its end: what there is."""
    home = f"steps/step_{step.span.number:04d}"
    found: dict[str, Any] = {
        "merged_patch.json": _merged_patch(step),
        "ranked_edits.json": _ranked(step),
        "edit_apply_report.json": _report(step),
        "lr_decision.json": step.lr_decision,
        "appendix_notes.json": _appendix(step),
        "trajectory_digest.json": _digest(step),
        "step_record.json": record(step),
        **_rewriting(step),
        **_patches(step),
    }
    texts = {f"{home}/{name}": as_json(value) for name, value in found.items() if value is not None}
    texts |= dict(skill_files(f"{home}/candidate_skill", step.about.texts.get(step.candidate)))
    if step.base is not None:
        batch = step.params["batch_size"] if step.params["accumulation"] > 1 else None
        texts |= step.about.rollouts.files(f"{home}/rollout", step.base, step.draws, batch)
    if step.verdict is not None and step.candidate is not None:
        texts |= step.about.selection_files(f"{home}/selection_eval", step.candidate, step.known)
    return texts


def _patches(step: Step) -> dict[str, Any]:
    """What each analyst made of its minibatch, numbered by kind."""
    found: dict[str, Any] = {}
    for kind, word in _KINDS.items():
        readings = [reading for reading in step.readings if reading["kind"] == kind]
        found |= {f"patches/minibatch_{word}_{n:03d}.json": _patch(reading) for n, reading in enumerate(readings)}
    return found


def _patch(reading: Line) -> dict[str, Any]:
    """The changes themselves are in the events only after merging."""
    patterns = [
        {"failure_type": p["pattern"], "count": p["count"], "task_ids": p["items"]} for p in reading["patterns"]
    ]
    return {
        "batch_size": len(reading["items"]),
        "batch_idx": reading["batch"],
        "source_type": "failure" if reading["kind"] == "failures" else "success",
        "failure_summary": patterns,
        "patch": {"reasoning": reading["summary"], "n_edits": reading["changes"]},
        "appendix_notes": reading["notes"],
        "task_ids": reading["items"],
        "error": reading["error"],
    }


def _merged_patch(step: Step) -> dict[str, Any] | None:
    if step.merged is None or step.proposed is None:
        return None
    tried = [] if step.selected is None else step.selected["tried"]
    names = ("number", "score", "current_score", "items", "changes")
    return {
        **_patch_of(step.merged),
        "sharpen": {
            "chosen": step.chosen,
            "alternatives": [_patch_of(one) for one in step.proposed["alternatives"]],
            "tried": [dict(zip(names, row, strict=True)) for row in tried],
        },
    }


def _patch_of(alternative: Line) -> dict[str, Any]:
    changes = [change_of(change) for change in alternative["edits"]]
    about = {"reasoning": alternative["reason"], "source": alternative["source"], "support": alternative["support"]}
    return {**about, payload_key(changes): changes}


def _ranked(step: Step) -> dict[str, Any] | None:
    if step.merged is None or not step.report:
        return None
    return {"reasoning": step.merged["reason"], "edits": [change_of(change) for change in step.changes]}


def _report(step: Step) -> list[dict[str, Any]] | None:
    if not step.report:
        return None
    return [
        {
            "index": row["index"],
            "op": row["op"],
            "target": change["target"][:_PREVIEW],
            "content_preview": change["content"][:_PREVIEW],
            "status": status_of(row),
            "sharpen": {name: row[name] for name in ("status", "message", "part", "chars")},
        }
        for row, change in zip(step.report, step.changes, strict=True)
    ]


def _rewriting(step: Step) -> dict[str, Any]:
    made = step.about.texts.get(step.candidate)
    if not step.rewritten or made is None or step.merged is None:
        return {}
    name = "rewrite_result" if step.params["update_mode"] == "rewrite_from_suggestions" else "full_rewrite_result"
    told = {"reasoning": step.merged["reason"], "change_summary": step.change_summary, "new_skill": made.text}
    return {f"{name}.json": told}


def _appendix(step: Step) -> dict[str, Any] | None:
    if step.notes is None:
        return None
    proposed = [note for reading in step.readings for note in reading["notes"]]
    return {"appendix_notes": proposed, **step.appendix_counters}


def _digest(step: Step) -> dict[str, Any] | None:
    """The step as later ones were told of it."""
    if step.done is None:
        return None
    patterns = [pattern for r in step.readings if r["kind"] == "failures" for pattern in r["patterns"]]
    found: dict[str, Any] = {
        "step": step.span.number,
        "action": step.action,
        "n_total": len(step.draws),
        "n_fail": step.n_fail,
        "failure_patterns": [{"pattern": p["pattern"], "count": p["count"], "task_ids": p["items"]} for p in patterns],
    }
    if step.verdict is not None:
        found["score_before"] = step.verdict.old.score(step.about.metric)
        found["score_after"] = step.verdict.new.score(step.about.metric)
    if step.action == "reject":
        found["rejected_edits"] = [change_of(change) for change in step.changes]
    return found
