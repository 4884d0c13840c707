"""One step of a training in a line: what was changed, how it was decided, what it brought.

The input is a step as `results.json` holds it, so the same line stands in the progress of a running job, in `sharpen
status` and in the report at the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sharpen.report import text
from sharpen.skill import examples

_ACTIONS = {
    "accept": "accepted",
    "reject": "rejected",
    "draft": "kept as a draft: better on train, not proven on val",
    "skip_no_failures": "skipped (the whole batch was right)",
    "skip_no_edits": "skipped (nothing was proposed)",
    "skip_no_promise": "skipped (nothing proposed did better on train items)",
    "skip_no_change": "skipped (the edits changed nothing)",
    "skip_leak": "skipped (it would have given val or test items away)",
    "skip_tried": "skipped (an earlier step tried the same)",
}
_VERBS = {
    "append": "add",
    "insert_after": "add",
    "insert_before": "add",
    "replace": "replace",
    "delete": "remove",
}


def action(name: str) -> str:
    """What became of a step, in words."""
    return _ACTIONS.get(name, name.replace("_", " "))


def edit(record: Mapping[str, Any], most: int = 64) -> str:
    """An edit in short: what it does, to which text."""
    verb = _VERBS.get(record["op"], record["op"])
    if record["op"] == "delete":
        return f"{verb} {_content(record['target'], most)}"
    if record["op"] == "replace":
        half = most // 2
        return f"{verb} {_content(record['target'], half)} by {_content(record['content'], half)}"
    return f"{verb} {_content(record['content'], most)}"


def edits(records: Sequence[Mapping[str, Any]], most: int = 64) -> str:
    """The edits of a step in short, the first two by name."""
    named = [edit(record, most) for record in records[:2]]
    more = len(records) - len(named)
    return "; ".join(named) + (f"; and {text.plural(more, 'more edit')}" if more > 0 else "")


def effect(decision: Mapping[str, Any] | None) -> str:
    """What the gate saw: the estimated effect on val and its interval, as far as it has them."""
    if decision is None:
        return text.NOTHING
    bounds = text.interval(decision["low"], decision["high"], sign=True)
    if decision["effect"] is None:
        return bounds
    found = text.signed(decision["effect"])
    return found if bounds == text.NOTHING else f"{found} {bounds}"


def line(step: Mapping[str, Any]) -> str:
    """The step as one line of progress."""
    parts = [f"step {step['step']}: {action(step['action'])}"]
    if step["edits"]:
        parts.append(edits(step["edits"], 48))
    decision = step["decision"]
    if decision is not None:
        parts.append(f"{effect(decision)} on val, {text.plural(decision['rollouts'], 'rollout')}")
    return " · ".join(parts)


def _content(content: str, most: int) -> str:
    found = examples.parse(content)
    if not found.examples:
        return repr(text.short(content, most))
    first = found.examples[0]
    half = most // 2
    shown = f"example {text.short(first.input, half)} → {text.short(first.output, half)}"
    more = len(found.examples) - 1
    return shown + (f" and {more} more" if more else "")
