"""Caps that change between two sittings: what counts as more, what a job has used, and which caps come too late."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sharpen.bench import layout
from sharpen.bench.artifacts import results
from sharpen.bench.config import BudgetConfig
from sharpen.core.errors import UsageError
from sharpen.ledger.payments import Paid


def caps_of(budget: BudgetConfig) -> dict[str, float]:
    """The caps that are set, by name."""
    return {name: cap for name, cap in budget.model_dump().items() if cap is not None}


def are_larger(new: BudgetConfig, old: BudgetConfig) -> bool:
    """Whether a cap was raised or taken away."""
    now = new.model_dump()
    return any(now[name] is None or now[name] > cap for name, cap in caps_of(old).items())


def read_spent(folder: Path, paid: Paid) -> dict[str, float]:
    """What a job has used by its story, in which answers of the ledger count as if they were paid for, and at the least what
    it really paid, which a job that was killed had no time to tell of."""
    path = folder / "results.json"
    found: Mapping[str, Any] = layout.read_json(path) if path.exists() else results([])
    total = found["usage"]["total"]
    return {
        "calls": max(total["calls"], paid.calls),
        "tokens": max(total["prompt_tokens"] + total["completion_tokens"], paid.tokens),
        "money": max(total["money"] or 0.0, paid.money),
        "seconds": found["clock"]["seconds"] or 0.0,
    }


def refuse_late_caps(budget: BudgetConfig, spent: Mapping[str, float], job: Path) -> None:
    """Refuse caps below what a job has used already: it would be ended where it never was, and its record with it."""
    for name, cap in caps_of(budget).items():
        if spent[name] > cap:
            raise UsageError(
                f"budget.{name}={cap:g} is below the {spent[name]:g} that the job in {job} has used; give it at least "
                "that, or leave the job as it is"
            )
