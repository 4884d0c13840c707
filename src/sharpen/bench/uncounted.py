"""Calls that nobody counts: a task of the user's own may reach a model with a client of its own, past the gateway.

Such calls are not in the ledger, not in any table and under no cap. Nothing here can see them. What can be seen is that a
task says it asks no model while one is configured for it, or that it never asked the one that was opened.
"""

from __future__ import annotations

from sharpen.bench.config import BudgetConfig, ModelsConfig, RunConfig
from sharpen.core.task import Task

REMEDY = (
    "calls made by your own client are not counted, not capped and not stored; to have them counted, set calls_per_rollout "
    "to the most that a rollout makes, and ask through attempt.complete (docs/own-task.md)"
)


def warning(config: RunConfig, task: Task) -> str:
    """Why counts and caps may not hold; nothing where there is no doubt."""
    if task.calls_per_rollout > 0 or task.trainee != "text" or type(task).__module__.startswith("sharpen."):
        return ""
    standard, caps = ModelsConfig(), config.budget.model_dump(exclude={"seconds"})
    asked_for = [
        *(
            f"models.{role}={name}"
            for role in ("target", "judge")
            if (name := getattr(config.models, role)) != getattr(standard, role)
        ),
        *(f"budget.{name}={cap:g}" for name, cap in caps.items() if cap != getattr(BudgetConfig(), name)),
    ]
    if not asked_for:
        return ""
    return f"task {task.name!r} says calls_per_rollout = 0, so {' and '.join(asked_for)} has no effect on it; {REMEDY}"
