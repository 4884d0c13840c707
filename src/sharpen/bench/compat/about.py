"""What the writers of steps, epochs and the summary all need of a job, worked out once; and a verdict as they tell it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sharpen.bench.compat.known import Known, Selection
from sharpen.bench.compat.rollouts import Rollouts, as_json
from sharpen.bench.compat.source import Source
from sharpen.bench.compat.story import Line, Span, planned
from sharpen.bench.compat.texts import Texts
from sharpen.engine.metric import Metric

_ORIGINS = {"step": "step", "slow_update": "slow_update", "notes": "appendix"}


@dataclass(frozen=True)
class Verdict:
    """A gate's decision, and what was known of both candidates when it was taken."""

    told: Line
    new: Selection
    old: Selection

    def effect(self) -> dict[str, Any]:
        names = ("gate", "accepted", "reason", "effect", "low", "high", "evidence", "rollouts", "items")
        return {name: self.told[name] for name in names}


@dataclass(frozen=True)
class About:
    source: Source
    texts: Texts

    @cached_property
    def plan(self) -> Line | None:
        return planned(self.source.lines)

    @property
    def gate(self) -> str:
        return str(self.source.params["gate"])

    @cached_property
    def metric(self) -> Metric:
        params = self.source.params
        return Metric(params.get("gate_metric", "hard"), params.get("gate_mixed_weight", 0.5))

    @cached_property
    def rollouts(self) -> Rollouts:
        return Rollouts(self.source, self.texts)

    def known(self) -> Known:
        return Known(self.source, 0 if self.plan is None else self.plan["deciding"])

    def step_in_epoch(self, step: int) -> int:
        per_epoch = 1 if self.plan is None else self.plan["steps_per_epoch"]
        return 1 + (step - 1) % int(per_epoch)

    def hash_of(self, candidate: str | None) -> str | None:
        """The classic hash: the first 16 hex digits of the SHA-256 of the document."""
        made = self.texts.get(candidate)
        return None if made is None else hashlib.sha256(made.text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def length_of(self, candidate: str | None) -> int | None:
        made = self.texts.get(candidate)
        return None if made is None else len(made.text)

    def origin_of(self, candidate: str | None) -> str | None:
        """Where a candidate came from: `initial`, `step_0003`, `slow_update_0006`, `appendix_0003`, or `draft`."""
        return self._origins.get(candidate or "")

    @cached_property
    def _origins(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for line in self.source.lines:
            if line["type"] == "checkpointed":
                kind, _, step = line["path"].rpartition("/")[2].rpartition("_")
                name = f"{_ORIGINS.get(kind, kind)}_{step}" if kind else "draft"
                found.setdefault(line["candidate"], "initial" if name == "step_0000" else name)
        return found

    def selection_files(self, folder: str, candidate: str, known: Known) -> dict[str, str]:
        """A candidate's attempts on the items decisions rest on, as far as they were made."""
        found = self.rollouts.files(folder, candidate, known.draws(candidate))
        if found:
            found[f"{folder}/summary.json"] = as_json(seen(known.selection(candidate), self.metric))
        return found


def seen(selection: Selection, metric: Metric) -> dict[str, Any]:
    """What was seen of a candidate on val: means over the items it was tried on, and how many of how many these are."""
    return {
        "hard": selection.hard,
        "soft": selection.soft,
        "score": selection.score(metric),
        "items": len(selection.draws),
        "of": selection.of,
    }


def verdict_in(span: Span, verdicts: list[Verdict], candidate: str | None) -> Verdict | None:
    """The decision on a candidate that was taken within a piece of the story."""
    there = span.all("decided")
    return next((v for v in verdicts if v.told["new"] == candidate and any(v.told is line for line in there)), None)
