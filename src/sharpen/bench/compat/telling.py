"""The story told once from beginning to end, and the classic files as they come of it."""

from __future__ import annotations

from typing import Any

from sharpen.bench.compat import summary
from sharpen.bench.compat.about import About, Verdict, verdict_in
from sharpen.bench.compat.epochs import epoch_files
from sharpen.bench.compat.known import Known
from sharpen.bench.compat.records import record
from sharpen.bench.compat.rollouts import as_json, as_lines
from sharpen.bench.compat.source import Source
from sharpen.bench.compat.step import Step
from sharpen.bench.compat.steps import step_files
from sharpen.bench.compat.story import Piece, Span, spans
from sharpen.bench.compat.texts import find_texts, skill_files


def files(source: Source) -> dict[str, str]:
    """The texts of all files by path, as far as the story goes. A step's record never changes once the step is done."""
    pieces = spans(source.lines)
    about = About(source, find_texts(source, pieces))
    known = about.known()
    found: dict[str, str] = dict(skill_files("skills/skill_v0000", about.texts.get(source.started["candidate"])))
    history: list[dict[str, Any]] = []
    learning_rates: list[dict[str, Any]] = []
    for span in pieces:
        verdicts = _follow(span, known)
        if span.piece is Piece.STEP:
            revised = span.first("revised")
            verdict = verdict_in(span, verdicts, None if revised is None else revised["candidate"])
            step = Step(about, span, verdict, known)
            found |= step_files(step)
            told, decision = record(step), step.lr_decision
            history += [] if told is None else [told]
            learning_rates += [] if decision is None else [{"step": span.number, **decision}]
        elif span.piece is Piece.EPOCH:
            updated = span.first("slow_updated")
            verdict = verdict_in(span, verdicts, None if updated is None else updated["candidate"])
            found |= epoch_files(about, span, verdict, known)
        if span.done is not None:
            current = about.texts.get(span.done["current"])
            found |= skill_files(f"skills/skill_v{span.done['step']:04d}", current)
    best = summary.where(about, pieces)["best"]
    found |= skill_files("best_skill", about.texts.get(best))
    found |= summary.measurement_files(about, known)
    found["config.json"] = as_json(summary.config(about))
    found["history.json"] = as_json(history)
    found["summary.json"] = as_json(summary.summary(about, pieces, history, known))
    found["runtime_state.json"] = as_json(summary.runtime_state(about, pieces))
    if learning_rates:
        found["lr_history.jsonl"] = as_lines(learning_rates)
    return found


def _follow(span: Span, known: Known) -> list[Verdict]:
    """Take in what was measured in a piece; returns its decisions with what was known at each."""
    verdicts = []
    for line in span.lines:
        if line["type"] == "decided":
            verdicts.append(Verdict(line, known.selection(line["new"]), known.selection(line["old"])))
        known.feed(line)
    return verdicts
