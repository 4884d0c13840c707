"""The record of a step in `history.json`, which is also its `step_record.json`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sharpen.bench.compat import tokens
from sharpen.bench.compat.about import seen
from sharpen.bench.compat.step import Step
from sharpen.bench.compat.story import Line
from sharpen.bench.compat.words import TIMINGS
from sharpen.engine.metric import mean_of


def record(step: Step) -> dict[str, Any] | None:
    """None for a step that was not brought to its end."""
    done, about = step.done, step.about
    if done is None:
        return None
    selection = None if step.verdict is None else step.known.selection(step.verdict.told["new"])
    whole = selection if selection is not None and selection.whole else None
    timing = {f"{word}_s": step.span.stage_seconds(ours) for ours, word in TIMINGS.items()}
    optional = {
        "lr_decision": step.lr_decision,
        "rewrite_change_summary": step.change_summary,
        "edit_apply_summary": _counts(step.report) if step.report else None,
        **step.appendix_counters,
    }
    return {
        "step": done["step"],
        "epoch": done["epoch"],
        "step_in_epoch": about.step_in_epoch(done["step"]),
        "timing": {**timing, "update_s": None},
        "tokens": tokens.used(step.span.lines),
        "rollout_hard": done["batch_score"],
        "rollout_soft": mean_of([draw.soft for draw in step.draws]),
        "rollout_n": len(step.draws),
        "accumulation_batches": step.batches(),
        "n_patches": step.patches(),
        "n_failure_patches": step.patches("failures"),
        "n_success_patches": step.patches("successes"),
        "n_edits_merged": 0 if step.merged is None else len(step.merged["edits"]),
        "n_edits_ranked": step.n_ranked,
        "edit_budget": None if step.selected is None else step.selected["edit_budget"],
        "lr_control_mode": step.params["budget_control"],
        "support_counts": [change["support"] for change in step.changes],
        "candidate_hash": about.hash_of(step.candidate),
        "candidate_skill_len": about.length_of(step.candidate),
        "selection_hard": None if whole is None else whole.hard,
        "selection_soft": None if whole is None else whole.soft,
        "gate_metric": about.metric.name,
        "candidate_gate_score": None if step.verdict is None else step.verdict.new.score(about.metric),
        "action": step.action,
        **{name: value for name, value in optional.items() if value is not None},
        "current_score": done["current_score"],
        "best_score": done["best_score"],
        "best_step": done["best_step"],
        "current_origin": about.origin_of(done["current"]),
        "best_origin": about.origin_of(done["best"]),
        "skill_len": about.length_of(done["current"]),
        "wall_time_s": step.span.seconds,
        "sharpen": _beyond(step, done),
    }


def _beyond(step: Step, done: Line) -> dict[str, Any]:
    """What the classic record has no place for."""
    return {
        "action": done["action"],
        "base": step.base,
        "candidate": step.candidate,
        "current": done["current"],
        "best": done["best"],
        "unscored": done.get("unscored", ""),
        "alternatives": 0 if step.proposed is None else len(step.proposed["alternatives"]),
        "lost_answers": 0 if step.proposed is None else step.proposed["lost_answers"],
        "failed_rollouts": sum(draw.failed is not None for draw in step.draws),
        "leaks": [] if step.revised is None else step.revised["leaks"],
        "selection": None if step.verdict is None else seen(step.verdict.new, step.about.metric),
        "decision": None if step.verdict is None else step.verdict.effect(),
    }


def _counts(report: Sequence[Line]) -> dict[str, int]:
    applied = sum(row["status"] == "applied" for row in report)
    return {"total": len(report), "applied": applied, "skipped": len(report) - applied, "errors": 0}
