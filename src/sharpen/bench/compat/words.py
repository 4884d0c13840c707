"""What things are called in the classic files: actions, edit statuses, pair categories, settings, token stages. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sharpen.bench.compat.story import Line

SETTINGS = {
    "num_epochs": "epochs",
    "batch_size": "batch_size",
    "accumulation": "accumulation",
    "minibatch_size": "minibatch_size",
    "merge_batch_size": "merge_batch_size",
    "failure_only": "failure_only",
    "edit_budget": "edit_budget",
    "min_edit_budget": "min_edit_budget",
    "lr_scheduler": "schedule",
    "lr_control_mode": "budget_control",
    "skill_update_mode": "update_mode",
    "use_slow_update": "slow_update",
    "slow_update_samples": "slow_update_samples",
    "slow_update_gate_with_selection": "slow_update_gate",
    "longitudinal_pair_policy": "longitudinal_pair_policy",
    "use_meta_skill": "meta_skill",
    "use_skill_aware_reflection": "skill_aware",
    "skill_aware_appendix_source": "appendix_source",
    "skill_aware_consolidate_threshold": "consolidate_threshold",
    "gate_metric": "gate_metric",
    "gate_mixed_weight": "gate_mixed_weight",
}
"""The classic name of each setting that has the same meaning here."""

STAGES = {
    "reflect": "analyst",
    "merge": "merge",
    "rank": "ranking",
    "budget": "lr_autonomous",
    "rewrite": "rewrite",
    "slow_update": "slow_update",
    "meta_skill": "meta_skill",
    "consolidate": "appendix_consolidate",
}
"""The classic stage of a question to the optimizer, by the first word of its scope."""

TIMINGS = {
    "rollout": "rollout",
    "reflect": "reflect",
    "aggregate": "aggregate",
    "select": "select",
    "gate": "evaluate",
}
"""The classic name of each stage that is timed. Updating is done within select here."""

_ACTIONS = {"draft": "reject", "skip_no_edits": "skip_no_patches", "skip_no_failures": "skip_no_patches"}
_REFUSALS = {"protected": "protected_region", "incomplete": "missing_target", "not_found": "target_not_found"}


def action_of(done: Line, gate: str) -> str:
    """How a step ended. A draft was turned down by the gate: the current skill stayed as it was."""
    action: str = done["action"]
    return taken(_ACTIONS.get(action, action), gate, best=done["best_step"] == done["step"])


def taken(action: str, gate: str, *, best: bool) -> str:
    """An acceptance by its classic name; any other action as it is."""
    if action != "accept":
        return action
    if gate == "force":
        return "force_accept"
    return "accept_new_best" if best else "accept"


def status_of(row: Mapping[str, Any]) -> str:
    """What became of an edit."""
    status, op = row["status"], row["op"]
    if status == "applied":
        return f"applied_{op}"
    if status in ("incomplete", "not_found"):
        return f"skipped_{op}_{_REFUSALS[status]}"
    return f"skipped_{_REFUSALS.get(status, status)}"


def category_of(category: str) -> str:
    return "persistent_fail" if category == "persistent_failure" else category


def change_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """A proposed change: an edit, a suggestion or a whole rewriting, whichever it is."""
    support = {"support_count": record["support"], "source": record["source"]}
    if "op" in record:
        kept = {name: record[name] for name in ("op", "target", "content")}
        return {**kept, **support, **({} if record["part"] is None else {"part": record["part"]})}
    if "instruction" in record:
        kept = {name: record[name] for name in ("title", "motivation", "instruction")}
        return {"type": record["kind"], **kept, **support}
    texts = record.get("texts", {})
    document = {"new_skill": next(iter(texts.values()))} if len(texts) == 1 else {"new_parts": texts} if texts else {}
    return {"change_summary": record["summary"], **document, **support}


def payload_key(changes: list[dict[str, Any]]) -> str:
    """Under which name a patch keeps its changes."""
    if any("instruction" in change for change in changes):
        return "revise_suggestions"
    return "skill_candidates" if any("change_summary" in change for change in changes) else "edits"
