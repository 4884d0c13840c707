"""One step as its events tell it, in the terms the classic files use. What is written of it is the business of others."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from sharpen.bench.compat.about import About, Verdict
from sharpen.bench.compat.known import Draw, Known, draws_of
from sharpen.bench.compat.story import Line, Span
from sharpen.bench.compat.texts import base_of
from sharpen.bench.compat.words import action_of, change_of, payload_key
from sharpen.engine.metric import mean_of

_FULL_MARKS = 1.0 - 1e-9


class Step:
    """What the events say of a step, and what was known on val when it ended."""

    def __init__(self, about: About, span: Span, verdict: Verdict | None, known: Known) -> None:
        self.about, self.span, self.verdict, self.known = about, span, verdict, known
        self.params = about.source.params
        self.done = span.done
        self.base = base_of(span)
        self.proposed = span.first("proposed")
        self.selected = span.first("selected")
        self.revised = span.first("revised")
        self.notes = span.first("notes_kept")
        self.readings: list[Line] = (span.first("reflected") or {}).get("readings", [])
        self.candidate: str | None = None if self.revised is None else self.revised["candidate"]
        self.chosen: int | None = None if self.selected is None else self.selected["chosen"]

    @property
    def action(self) -> str:
        return "" if self.done is None else action_of(self.done, self.about.gate)

    @property
    def report(self) -> list[Line]:
        """What became of each edit; nothing where a document was written anew."""
        return [] if self.revised is None else self.revised["report"]

    @cached_property
    def draws(self) -> list[Draw]:
        """The step's own rollouts."""
        rolled = next((line for line in self.span.all("measured") if line["purpose"] == "train"), None)
        return [] if rolled is None else draws_of(self.about.source, rolled["groups"][0])

    @property
    def changes(self) -> list[Line]:
        """The changes that are new in this step: all but those of a draft it builds on."""
        if self.revised is None:
            return []
        edits, new = self.revised["edits"], len(self.report) or int(self.rewritten)
        return list(edits[len(edits) - new :])

    @property
    def rewritten(self) -> bool:
        return self.revised is not None and bool(self.revised.get("texts"))

    @property
    def merged(self) -> Line | None:
        """The alternative the step went on with, or the first where it went on with none."""
        if self.proposed is None or not self.proposed["alternatives"]:
            return None
        found: Line = self.proposed["alternatives"][self.chosen or 0]
        return found

    @property
    def n_ranked(self) -> int | None:
        """Changes left after clipping. None where a document was written from suggestions: how many of them went into it
        is not told."""
        if self.merged is None or self.selected is None:
            return 0
        if payload_key([change_of(change) for change in self.merged["edits"]]) == "revise_suggestions":
            return None
        return next((row[4] for row in self.selected["tried"] if row[0] == (self.chosen or 0)), 0)

    @property
    def change_summary(self) -> str | None:
        return str(self.changes[-1]["summary"]) if self.rewritten else None

    @property
    def lr_decision(self) -> dict[str, Any] | None:
        """The optimizer's own decision on the edit budget, where it had one to take."""
        told = self.span.first("budget_chosen")
        if told is None:
            return None
        return {
            "learning_rate": told["budget"],
            "reasoning": told["reasons"],
            "confidence": told["confidence"],
            "risk_notes": told["risks"],
            "fallback": not told["usable"],
            "pool": told["pool"],
        }

    @property
    def appendix_counters(self) -> dict[str, Any]:
        if self.notes is None:
            return {}
        return {
            "appendix_notes_added": len(self.notes["added"]),
            "appendix_notes_total": self.notes["total"],
            "appendix_consolidated": self.notes["consolidated"],
        }

    @property
    def n_fail(self) -> int:
        return sum(draw.hard is not None and draw.hard < _FULL_MARKS for draw in self.draws)

    def batches(self) -> list[dict[str, Any]]:
        """The accumulated batches. There are no seeds of batches here: the order of an epoch follows from the job's."""
        size = self.params["batch_size"]
        chunks: list[Sequence[Draw]] = [self.draws[at : at + size] for at in range(0, len(self.draws), size)]
        return [
            {
                "batch_idx": number,
                "batch_seed": None,
                "n_envs": len(batch),
                "hard": mean_of([draw.hard for draw in batch]),
                "soft": mean_of([draw.soft for draw in batch]),
                "n_failure_patches": self.patches("failures", number),
                "n_success_patches": self.patches("successes", number),
            }
            for number, batch in enumerate(chunks)
        ]

    def patches(self, kind: str | None = None, batch: int | None = None) -> int:
        """Minibatches whose analyst proposed something."""
        return sum(
            reading["changes"] > 0 and kind in (None, reading["kind"]) and batch in (None, reading["batch"])
            for reading in self.readings
        )
