"""One step of a training in a line: what was changed, how it was decided, what it brought.

The input is a step as `results.json` holds it, so the same line stands in the progress of a running job, in `sharpen
status` and in the report at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sharpen.core.benchmark import POLICY_METRIC
from sharpen.report import text
from sharpen.skill import examples

_ACTIONS = {
    "accept": "accepted",
    "reject": "rejected",
    "draft": "kept as a draft: better on train, not proven on val",
    "kept_in_pool": "kept in the pool, behind the leader",
    "skip_not_novel": "skipped (nothing proposed was new enough)",
    "skip_no_failures": "skipped (the whole batch was right)",
    "skip_no_edits": "skipped (nothing was proposed)",
    "skip_no_promise": "skipped (nothing proposed did better on train items)",
    "skip_no_change": "skipped (the edits changed nothing)",
    "skip_no_rewrite": "skipped (no new document was written)",
    "skip_leak": "skipped (it would have given val or test items away)",
    "skip_tried": "skipped (an earlier step tried the same)",
}
_SLOW_ACTIONS = {
    "accept": "accepted",
    "reject": "rejected",
    "force_accept": "put in without proof; not measured yet",
    "no_content": "had nothing to say",
    "no_change": "says what it said before",
    "no_pairs": "had no items to look at",
    "same_candidate": "had nothing to compare: the skill did not change",
    "lost_answer": "brought no usable answer",
    "leak": "refused: it would have given val or test items away",
    "too_long": "refused: the skill would be too long",
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


def ended(step: Mapping[str, Any]) -> str:
    """What became of a step, and what its analysts wanted and could not have."""
    whys = dict.fromkeys(text.short(why, 80) for source, _, why in step.get("refused", ()) if source == "analysts")
    return action(step["action"]) + (f"; the analysts' changes can't be made: {'; '.join(whys)}" if whys else "")


def edit(record: Mapping[str, Any], most: int = 64) -> str:
    """A change in short: what an edit does, to which text; or what a rewriting was about."""
    if "op" not in record:
        return f"rewrite: {_content(record.get('summary') or record.get('title') or 'the whole document', most)}"
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
    parts = [f"step {step['step']}: {ended(step)}"]
    if step["edits"]:
        parts.append(edits(step["edits"], 48))
    decision = step["decision"]
    if decision is not None:
        parts.append(f"{effect(decision)} on val, {text.plural(decision['rollouts'], 'rollout')}")
    return " · ".join(parts)


def asides(event: Mapping[str, Any]) -> list[str]:
    """What is worth a line of progress beside the steps: remarks on the plan, the long view, what was cut."""
    kind = event["type"]
    if kind == "planned":
        return [f"note: {remark}" for remark in event["remarks"]]
    if kind == "slow_updated":
        counts = Counter(row[1] for row in event["pairs"])
        seen = ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in sorted(counts.items()))
        return [f"epoch {event['epoch']}: slow update {slow_action(event['action'])}" + (f" · {seen}" if seen else "")]
    if kind == "notes_kept":
        fewer = ", after making fewer of them" if event["consolidated"] else ""
        return [f"step {event['step']}, appendix: {text.plural(event['total'], 'note')}{fewer}; not measured yet"]
    if kind == "policy_evaluated":
        came_to = text.score(event["metrics"][POLICY_METRIC])
        normalised = "" if event["normalised"] is None else f" (normalised {text.score(event['normalised'])})"
        episodes = text.plural(event["episodes"], "episode") + (", the best so far" if event["best"] else "")
        return [f"step {event['step']:,}: mean return {came_to}{normalised} over {episodes}"]
    if kind == "shortened":
        return [
            f"note: a question was cut by {text.count(event['characters'])} characters to fit the optimizer's context"
        ]
    return []


def slow_action(name: str) -> str:
    """What became of a slow update, in words."""
    return _SLOW_ACTIONS.get(name, name.replace("_", " "))


def _content(content: str, most: int) -> str:
    found = examples.parse(content)
    if not found.examples:
        return repr(text.short(content, most))
    first = found.examples[0]
    half = most // 2
    shown = f"example {text.short(first.input, half)} → {text.short(first.output, half)}"
    more = len(found.examples) - 1
    return shown + (f" and {more} more" if more else "")
