"""Attempts as rows: `results.jsonl` for each measurement, and what was said in `conversations.jsonl` beside it.

One file per measurement instead of three per attempt, and no item's id in a path. An attempt that failed for a reason that
is not the agent's has no score, where the classic files have a zero.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sharpen.bench.compat.known import Draw
from sharpen.bench.compat.source import Source
from sharpen.bench.compat.texts import Texts
from sharpen.core.outcome import Outcome
from sharpen.core.redact import redact_json

_FULL_MARKS = 1.0 - 1e-9


def as_json(value: Any) -> str:
    return _dumps(value, indent=2) + "\n"


def as_lines(rows: Iterable[Any]) -> str:
    return "".join(_dumps(row) + "\n" for row in rows)


def _dumps(value: Any, indent: int | None = None) -> str:
    """JSON without secrets, as it stands; escaped where it holds half a surrogate pair, which UTF-8 has no form for."""
    clean = redact_json(value)
    text = json.dumps(clean, indent=indent, ensure_ascii=False, allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(clean, indent=indent, allow_nan=False)
    return text


@dataclass(frozen=True)
class Rollouts:
    """Writes the attempts of a job."""

    source: Source
    texts: Texts

    def files(self, folder: str, candidate: str, draws: Sequence[Draw], batch: int | None = None) -> dict[str, str]:
        """The attempts of one candidate: first draws, further ones in a file of their own, and what was said in them.
        `batch` is how many make a batch, where batches are told apart."""
        if not draws:
            return {}
        pairs = [(draw, self._outcome(candidate, draw)) for draw in draws]
        rows = [self._row(*pair) for pair in pairs if pair[0].sample == 0]
        if batch is not None:
            rows = [{**row, "batch_idx": place // batch} for place, row in enumerate(rows)]
        found = {f"{folder}/results.jsonl": as_lines(rows)}
        further = [{**self._row(*pair), "sample": pair[0].sample} for pair in pairs if pair[0].sample != 0]
        if further:
            found[f"{folder}/further_samples.jsonl"] = as_lines(further)
        said = [_conversation(draw, outcome) for draw, outcome in pairs if outcome is not None and outcome.trajectory]
        if said:
            found[f"{folder}/conversations.jsonl"] = as_lines(said)
        return found

    def _outcome(self, candidate: str, draw: Draw) -> Outcome | None:
        made, item = self.texts.get(candidate), self.source.items.get(draw.item or "")
        if made is None or item is None or draw.failed is not None:
            return None
        return self.source.outcome(made, item, draw.sample)

    def _row(self, draw: Draw, outcome: Outcome | None) -> dict[str, Any]:
        row: dict[str, Any] = {"id": draw.item, "hard": draw.hard, "soft": draw.soft}
        item = self.source.items.get(draw.item or "")
        if item is not None:
            row |= {"task_type": item.type, "task_description": item.text}
        if outcome is not None:
            wrong = draw.hard is not None and draw.hard < _FULL_MARKS
            row |= {"predicted_answer": outcome.answer, "fail_reason": outcome.feedback if wrong else ""}
            row |= {"n_turns": sum(message.role == "assistant" for message in outcome.trajectory)}
        if draw.failed is not None:
            row |= {"error": draw.failed[0], "fail_reason": draw.failed[1]}
        return row


def _conversation(draw: Draw, outcome: Outcome) -> dict[str, Any]:
    said = [{"role": message.role, "content": message.content} for message in outcome.trajectory]
    return {"id": draw.item, "sample": draw.sample, "conversation": said}
