"""What a report says of a policy where it would show a text: what it is, how its evaluations went, where the time went."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rich.text import Text

from sharpen.core.benchmark import POLICY_METRIC
from sharpen.core.candidate import Candidate
from sharpen.report import text

Results = Mapping[str, Any]

POLICY = "policy"
DESCRIPTION = "policy.json"


def is_policy(results: Results) -> bool:
    return bool(results.get("trainee") == POLICY)


def unit(results: Results) -> str:
    """What a score is the mean of."""
    return "episode" if is_policy(results) else "item"


def chosen_by(results: Results) -> str | None:
    """What the best was chosen by, where that is not the score the report shows."""
    metric: str | None = (results.get("benchmark") or {}).get("best_metric")
    return metric if is_policy(results) and metric != POLICY_METRIC else None


def described(policy: Candidate | None) -> Text | None:
    """What the network is, from the part that names its weights."""
    if policy is None or DESCRIPTION not in policy.parts:
        return None
    about = json.loads(policy.parts[DESCRIPTION])
    rows = [(name.replace("_", " "), _said(value)) for name, value in about.items() if value not in ({}, None, "")]
    width = max(len(name) for name, _ in rows)
    return Text("\n".join(f"  {name:<{width}}   {value}" for name, value in rows))


def evaluations(results: Results) -> Text | None:
    """How many there were, and which was the best."""
    rows = results["steps"]
    if not rows:
        return None
    words = f"{text.plural(len(rows), 'evaluation')}, the last at step {text.count(rows[-1]['step'])}"
    best = results["best"]
    if best is not None:
        metric = chosen_by(results) or POLICY_METRIC
        words += f"; the best by {metric} at step {text.count(best['step'])}"
    return Text(f"{words}.")


def times(results: Results) -> Text | None:
    """Seconds by stage: a policy costs no calls, only time."""
    clock = results["clock"]
    if not clock["stages"]:
        return None
    parts = ", ".join(f"{name} {text.seconds(seconds)} s" for name, seconds in clock["stages"].items())
    return Text(f"{text.clock(clock['seconds'])} in all: {parts}.")


def _said(value: Any) -> str:
    if isinstance(value, int):
        return text.count(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
