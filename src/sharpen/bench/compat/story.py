"""A job's events cut into the pieces the classic files are about: steps, the ends of epochs, and the closing.

A piece that was not brought to its end (a running, crashed or capped job) is there too, with `done` None. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Line = dict[str, Any]

_CLOSING_EVENTS = frozenset({"budget_ended", "job_ended", "promoted", "best_confirmed", "tested", "gained"})
_CLOSING_STAGES = frozenset({"promote", "confirm", "test"})


class Piece(StrEnum):
    OPENING = "opening"
    STEP = "step"
    EPOCH = "epoch"
    CLOSING = "closing"


@dataclass(frozen=True)
class Span:
    """The lines of one piece. `number` is the step's or the epoch's; `began` the seconds that had passed before."""

    piece: Piece
    number: int
    lines: tuple[Line, ...]
    began: float
    done: Line | None = None

    def all(self, kind: str) -> list[Line]:
        return [line for line in self.lines if line["type"] == kind]

    def first(self, kind: str) -> Line | None:
        return next((line for line in self.lines if line["type"] == kind), None)

    @property
    def seconds(self) -> float:
        return round(elapsed(self.lines) - self.began, 3)

    def stage_seconds(self, stage: str) -> float | None:
        """How long a stage took; None where it did not come to its end."""
        told = [line["clock"].get("seconds", 0.0) for line in self.all("stage_done") if line["stage"] == stage]
        return round(sum(told), 3) if told else None


def elapsed(lines: Sequence[Line]) -> float:
    return max((line["clock"].get("elapsed", 0.0) for line in lines), default=0.0)


def planned(lines: Sequence[Line]) -> Line | None:
    return next((line for line in lines if line["type"] == "planned"), None)


def spans(lines: Sequence[Line]) -> list[Span]:
    """The pieces in order. Together they hold every line once."""
    plan = planned(lines)
    per_epoch, steps = (1, 0) if plan is None else (plan["steps_per_epoch"], plan["steps"])
    found: list[Span] = []
    held: list[Line] = []
    piece, number, began = Piece.OPENING, 0, 0.0

    def close(done: Line | None = None) -> None:
        nonlocal began
        if held:
            found.append(Span(piece, number, tuple(held), began, done))
            began = elapsed(held)
            held.clear()

    for line in lines:
        kind = line["type"]
        if piece not in (Piece.OPENING, Piece.CLOSING) and _is_closing(line):
            close()
            piece, number = Piece.CLOSING, 0
        held.append(line)
        if piece is Piece.OPENING and kind == "checkpointed":
            close()
            piece, number = Piece.STEP, 1
        elif kind == "step_done":
            close(line)
            ended, epoch = line["step"], line["epoch"]
            if ended % per_epoch == 0:
                piece, number = Piece.EPOCH, epoch
            else:
                piece, number = (Piece.STEP, ended + 1) if ended < steps else (Piece.CLOSING, 0)
        elif kind == "epoch_done":
            close(line)
            piece, number = (Piece.STEP, line["step"] + 1) if line["step"] < steps else (Piece.CLOSING, 0)
    close()
    return found


def _is_closing(line: Line) -> bool:
    stage = line.get("stage") if line["type"] in ("measured", "stage_done", "asked") else None
    return line["type"] in _CLOSING_EVENTS or stage in _CLOSING_STAGES
