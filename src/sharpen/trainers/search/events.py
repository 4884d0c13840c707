"""The events only searches tell: who was explored, what was proposed, who was let in, who stayed, who came out best."""

from __future__ import annotations

from dataclasses import dataclass

from sharpen.core.digest import Json
from sharpen.engine.events import Event


@dataclass(frozen=True)
class Explored(Event):
    """The members a step builds on: `[number, candidate, mean, items scored, times explored before]` each."""

    step: int
    count: int
    parents: list[list[Json]]


@dataclass(frozen=True)
class Offered(Event):
    """What was proposed: parent, candidate, who proposed it and why, its number of changes, and `refusal` where it goes no
    further (no_change, no_rewrite, leak, tried, not_novel). `lost_answers` counts answers of no use."""

    step: int
    usable: int
    children: list[dict[str, Json]]
    lost_answers: int


@dataclass(frozen=True)
class Admitted(Event):
    """Who may be measured on val: `[candidate, parent's score, own score, admitted]` each, the scores being what was
    compared; null where nothing was."""

    step: int
    how: str
    let_in: int
    children: list[list[Json]]


@dataclass(frozen=True)
class Crossed(Event):
    """A member made of the parts of two others, with its score and theirs, and whether it stays. `candidate` is null where
    no pair was left to cross."""

    step: int
    parents: list[int]
    candidate: str | None
    score: float | None
    better_parent: float | None
    stays: bool


@dataclass(frozen=True)
class PoolChanged(Event):
    """The pool at a step's end: `[number, candidate, parents, mean on val, val items tried, items won]` each, and the
    numbers of those who left."""

    step: int
    size: int
    members: list[list[Json]]
    left: list[int]


@dataclass(frozen=True)
class FinalistsMeasured(Event):
    """The last word on who is best: `[candidate, mean on all deciding val items]` each, the initial one included."""

    finalists: list[list[Json]]
    best: str
