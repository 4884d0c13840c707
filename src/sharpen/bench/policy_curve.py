"""The curve of a job that trains a policy, from its story: a row per evaluation, of the same shape as a step of a text's.

`current_score` is the mean return on the episodes that select, `best_score` that of the best so far, and `batch_score` the
mean return of the training episodes that ended since the evaluation before. Everything else that was measured is under
`metrics` (by the evaluation) and `train` (on the way there).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sharpen.core.benchmark import POLICY_METRIC, POLICY_SCORES

EVALUATED = "policy_evaluated"
ADVANCED = "advanced"
TRAIN_RETURN = "train_return_mean"
RETURNS = tuple(name.replace("eval_", "eval/") for name in POLICY_SCORES)
"""What an evaluation measures that is a score, by its name among the scalars."""

Line = Mapping[str, Any]


def rows(lines: Sequence[Line]) -> Iterator[dict[str, Any]]:
    """A row per evaluation, in order."""
    train: Mapping[str, Any] = {}
    best: dict[str, Any] = {"best": None, "best_score": None, "best_step": 0}
    for line in lines:
        if line["type"] == ADVANCED:
            train = line["metrics"]
        elif line["type"] == EVALUATED:
            score = line["metrics"].get(POLICY_METRIC)
            if line["best"]:
                best = {"best": line["candidate"], "best_score": score, "best_step": line["step"]}
            yield {
                "step": line["step"],
                "epoch": 0,
                "action": "best" if line["best"] else "evaluated",
                "batch_score": _number(train.get(TRAIN_RETURN)),
                "current": line["candidate"],
                "current_score": score,
                "best": best["best"],
                "best_score": best["best_score"],
                "best_step": best["best_step"],
                "edits": [],
                "report": [],
                "decision": None,
                "episodes": line["episodes"],
                "metrics": dict(line["metrics"]),
                "train": dict(train),
            }


def scalars(line: Line) -> dict[str, float]:
    """What an evaluation, or the stretch of training before it, measured: the finite numbers by a name with its kind."""
    kind = "eval" if line["type"] == EVALUATED else "train"
    found = {f"{kind}/{name.removeprefix(f'{kind}_')}": _number(value) for name, value in line["metrics"].items()}
    return {name: value for name, value in found.items() if value is not None}


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
