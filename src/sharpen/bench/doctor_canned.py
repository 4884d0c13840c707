"""Scoring texts without asking the model that does the task: what the scorer makes of right, empty and earlier answers.

A rollout is carried out as always, but its target says what it is told to. Other roles (a judge) are asked for real where a
gateway is given; where none is, a rollout that needs one ends with `AsksOthers`, and nothing was paid.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from sharpen.core.candidate import Candidate
from sharpen.core.chat import Reply, Request
from sharpen.core.digest import Json
from sharpen.core.item import Item
from sharpen.core.outcome import Outcome
from sharpen.core.rng import Stream
from sharpen.core.task import Task
from sharpen.core.usage import Usage
from sharpen.engine.gateway import Gateway

TARGET = "target"


class AsksOthers(Exception):
    """The rollout asks a model besides the target, and none may be asked."""


class AsksNobody(Exception):
    """The rollout came to its end without asking the target: it has its answers from elsewhere."""


class Canned:
    """An attempt whose target says `texts` in turn, then nothing. `draw` tells one asking of the judge from another."""

    def __init__(self, texts: Sequence[str], render: str, scratch: Path, others: Gateway | None, draw: Json) -> None:
        self._texts = list(texts)
        self.render = render
        self.scratch = scratch
        self._others = others
        self._draw = draw
        self.asked = 0
        self.cut = False
        self._other_calls = 0

    @property
    def rng(self) -> Stream:
        return Stream(0, "doctor")

    async def complete(self, request: Request, *, role: str = TARGET) -> Reply:
        if role == TARGET:
            said = self._texts[self.asked] if self.asked < len(self._texts) else ""
            self.asked += 1
            return Reply(self._as_it_would_arrive(said, request), Usage(1))
        if self._others is None:
            raise AsksOthers(role)
        self._other_calls += 1
        return await self._others.complete(role, request, [self._draw, self._other_calls])

    def _as_it_would_arrive(self, text: str, request: Request) -> str:
        """Cut where the request makes a model stop. A word is a token at least, so more words than tokens never arrive."""
        places = [text.find(stop) for stop in request.stop if stop in text]
        short = text[: min(places)] if places else text
        words = short.split()
        short = short if len(words) <= request.max_tokens else " ".join(words[: request.max_tokens])
        self.cut = self.cut or short.strip() != text.strip()
        return short


async def say(
    task: Task,
    item: Item,
    candidate: Candidate,
    texts: Sequence[str],
    render: str,
    others: Gateway | None = None,
    draw: Json = None,
) -> tuple[Outcome, Canned]:
    """The outcome of a rollout in which the target says `texts`, and how it went."""
    with tempfile.TemporaryDirectory(prefix="sharpen-") as scratch:
        attempt = Canned(texts, render, Path(scratch), others, draw)
        return await task.rollout(item, candidate, attempt), attempt
