"""Where a job stands, told from its events alone: running, finished, stopped, failed, or ended by its budget.

Works for a job that runs in another process and for one that crashed. Whether a process holds the job's folder is the only
thing the events cannot say; the caller brings it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class State(StrEnum):
    RUNNING = "running"
    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"
    BUDGET = "budget"


_ENDINGS = {"done": State.FINISHED, "failed": State.FAILED, "budget": State.BUDGET}


@dataclass(frozen=True)
class Standing:
    """One job at a glance. `best` is the confirmed score on val where there is one, else the raw one."""

    run: str
    job_id: str
    task: str
    trainer: str
    seed: int | None
    state: State
    step: int
    steps: int | None
    best: float | None
    before: float | None
    after: float | None
    calls: int
    tokens: int
    seconds: float | None
    last: float | None
    message: str
    repeat: int = 0
    best_normalised: float | None = None
    after_normalised: float | None = None


def state_of(results: Mapping[str, Any], *, running: bool) -> State:
    if running:
        return State.RUNNING
    return _ENDINGS.get(results["status"], State.STOPPED)


def standing(run: str, lines: Sequence[Mapping[str, Any]], results: Mapping[str, Any], *, running: bool) -> Standing:
    """A job's standing from the lines of its story and what is derived from them."""
    total = results["usage"]["total"]
    test = results["test"]
    return Standing(
        run=run,
        job_id=results["job_id"] or "",
        task=results["task"] or "",
        trainer=results["trainer"] or "",
        seed=results["seed"],
        state=state_of(results, running=running),
        step=max((line["step"] for line in lines if line["type"] == "stage_done"), default=0),
        steps=planned_steps(lines),
        best=_best(results["best"]),
        before=test["initial"]["mean"] if "initial" in test else None,
        after=test["best"]["mean"] if "best" in test else None,
        calls=total["calls"],
        tokens=total["prompt_tokens"] + total["completion_tokens"],
        seconds=results["clock"]["seconds"],
        last=results["clock"]["last"],
        message=results["message"],
        repeat=results.get("repeat", 0),
        best_normalised=_best_normalised(results["best"]),
        after_normalised=test.get("best", {}).get("normalised", {}).get("mean"),
    )


def _best(best: Mapping[str, Any] | None) -> float | None:
    if best is None:
        return None
    value: float | None = best.get("confirmed", {}).get("value")
    return best["raw"] if value is None else value


def _best_normalised(best: Mapping[str, Any] | None) -> float | None:
    told: Mapping[str, float | None] = (best or {}).get("normalised", {})
    value = told.get("value")
    return told.get("raw") if value is None else value


def planned_steps(lines: Sequence[Mapping[str, Any]]) -> int | None:
    """How many steps a job is to take, where its trainer has said so."""
    return next((line["steps"] for line in lines if line["type"] == "planned"), None)
