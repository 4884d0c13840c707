"""The files of an epoch's end, `slow_update/epoch_02/...` and `meta_skill/epoch_02/...`, and what each epoch came to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sharpen.bench.compat import tokens
from sharpen.bench.compat.about import About, Verdict, seen
from sharpen.bench.compat.known import Draw, Known, draws_of
from sharpen.bench.compat.rollouts import as_json
from sharpen.bench.compat.story import Line, Piece, Span
from sharpen.bench.compat.texts import skill_files
from sharpen.bench.compat.words import category_of, taken
from sharpen.engine.metric import mean_of

_FULL_MARKS = 1.0 - 1e-9


def epoch_files(about: About, span: Span, verdict: Verdict | None, known: Known) -> dict[str, str]:
    """What the long view over an epoch left. There is none after the first epoch."""
    found: dict[str, str] = {}
    updated = span.first("slow_updated")
    if updated is not None:
        home = f"slow_update/epoch_{span.number:02d}"
        previous, current = (_looked_back(about, span, which) for which in (0, 1))
        found[f"{home}/slow_result.json"] = as_json(_slow_result(about, span, updated, verdict, known))
        pairs = [
            {"id": item, "category": category_of(category), "prev_hard": was, "curr_hard": now}
            for item, category, was, now in updated["pairs"]
        ]
        found[f"{home}/comparison_pairs.json"] = as_json(pairs)
        if updated["policy"] != "mixed":
            found[f"{home}/comparison_pairs_all.json"] = as_json(_all_pairs(previous, current))
        found |= dict(skill_files(f"{home}/candidate_skill", about.texts.get(updated["candidate"])))
        found |= about.rollouts.files(f"{home}/rollout_prev", updated["previous"], previous)
        found |= about.rollouts.files(f"{home}/rollout_curr", updated["current"], current)
        if verdict is not None:
            found |= about.selection_files(f"{home}/selection_eval", updated["candidate"], known)
    written = span.first("meta_skill_written")
    if written is not None:
        told = {
            "action": written["action"],
            "reasoning": written["reasons"],
            "meta_skill_content": written["content"],
            "time_s": span.stage_seconds("meta_skill"),
        }
        found[f"meta_skill/epoch_{span.number:02d}/meta_skill_result.json"] = as_json(told)
    return found


def _slow_result(about: About, span: Span, updated: Line, verdict: Verdict | None, known: Known) -> dict[str, Any]:
    candidate = updated["candidate"]
    selection = known.selection(candidate) if verdict is not None else None
    whole = selection if selection is not None and selection.whole else None
    best = span.done is not None and span.done["best"] == candidate
    prev, curr = (mean_of([draw.hard for draw in _looked_back(about, span, which)]) for which in (0, 1))
    return {
        "action": taken(updated["action"], about.gate, best=best),
        "reasoning": updated["reasons"],
        "slow_update_content": updated["content"],
        "time_s": span.stage_seconds("slow_update"),
        "prev_hard": prev,
        "curr_hard": curr,
        "candidate_hash": about.hash_of(candidate),
        "update_origin": "slow_update",
        "update_target": "skill",
        "selection_hard": None if whole is None else whole.hard,
        "selection_soft": None if whole is None else whole.soft,
        "sharpen": {
            "epoch": updated["epoch"],
            "policy": updated["policy"],
            "tried": updated["tried"],
            "previous": updated["previous"],
            "current": updated["current"],
            "candidate": candidate,
            "selection": None if verdict is None else seen(verdict.new, about.metric),
            "decision": None if verdict is None else verdict.effect(),
        },
    }


def _looked_back(about: About, span: Span, which: int) -> list[Draw]:
    """The attempts with the previous epoch's candidate (0) or with today's (1)."""
    measured = [line for line in span.all("measured") if line["purpose"] == "slow-update"]
    return [draw for line in measured for draw in draws_of(about.source, line["groups"][which])]


def _all_pairs(previous: Sequence[Draw], current: Sequence[Draw]) -> list[dict[str, Any]]:
    """Every item that was attempted with both, before the policy chose among them."""
    return [
        {"id": was.item, "category": _category(was.hard, now.hard), "prev_hard": was.hard, "curr_hard": now.hard}
        for was, now in zip(previous, current, strict=True)
        if was.hard is not None and now.hard is not None
    ]


def _category(was: float, now: float) -> str:
    if was >= _FULL_MARKS:
        return "stable_success" if now >= _FULL_MARKS else "regressed"
    return "improved" if now >= _FULL_MARKS else "persistent_fail"


def epoch_stats(history: Sequence[dict[str, Any]], pieces: Sequence[Span], known: Known) -> list[dict[str, Any]]:
    """What each epoch came to. `known` is what was known in the end."""
    found = []
    before = next((record["sharpen"]["base"] for record in history), None)
    for epoch in sorted({record["epoch"] for record in history}):
        steps = [record for record in history if record["epoch"] == epoch]
        end = next((span for span in pieces if span.piece is Piece.EPOCH and span.number == epoch), None)
        done = None if end is None else end.done
        last = done if done is not None else steps[-1]
        after = done["current"] if done is not None else steps[-1]["sharpen"]["current"]
        found.append(
            {
                "epoch": epoch,
                "steps": len(steps),
                **counts(steps),
                "best_score_at_epoch_end": last["best_score"],
                "current_score_at_epoch_end": last["current_score"],
                "sharpen": _epoch_beyond(steps, end, pieces, known, (before, after)),
            }
        )
        before = after
    return found


def counts(records: Sequence[dict[str, Any]]) -> dict[str, int]:
    """How steps ended. A draft counts among the rejects."""
    actions = [record["action"] for record in records]
    return {
        "accepts": sum("accept" in action for action in actions),
        "rejects": actions.count("reject"),
        "skips": sum(action.startswith("skip") for action in actions),
    }


def _epoch_beyond(
    steps: Sequence[dict[str, Any]],
    end: Span | None,
    pieces: Sequence[Span],
    known: Known,
    ends: tuple[str | None, str],
) -> dict[str, Any]:
    before, after = ends
    numbers = {record["step"] for record in steps}
    spans = [span for span in pieces if span.piece is Piece.STEP and span.number in numbers]
    lines = [line for span in [*spans, *([end] if end else [])] for line in span.lines]
    updated = None if end is None else end.first("slow_updated")
    gain = None if before is None else known.difference(after, before)
    accepted = [line for line in lines if line["type"] == "decided" and line["accepted"]]
    return {
        "finished": end is not None and end.done is not None,
        "drafts": sum(record["sharpen"]["action"] == "draft" for record in steps),
        "slow_update": None if updated is None else updated["action"],
        "rollout_hard": _weighted(steps),
        "accepted_effects": [{name: line[name] for name in ("step", "effect", "low", "high")} for line in accepted],
        "selection_delta_hard": None
        if gain is None
        else {"mean": gain.mean, "low": gain.low, "high": gain.high, "items": gain.n, "method": gain.method},
        "tokens": tokens.used(lines),
        "wall_time_s": round(sum(span.seconds for span in [*spans, *([end] if end else [])]), 3),
    }


def _weighted(steps: Sequence[dict[str, Any]]) -> float | None:
    """The mean hard score over all rollouts of these steps that have one."""
    rows = [(r["rollout_hard"], r["rollout_n"] - r["sharpen"]["failed_rollouts"]) for r in steps]
    known = [(score, count) for score, count in rows if score is not None and count]
    return sum(score * count for score, count in known) / sum(count for _, count in known) if known else None
