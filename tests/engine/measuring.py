"""What tests of measurements start from: a task, a model that fails on demand, and a job to do something with."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from sharpen.core.candidate import Candidate
from sharpen.core.chat import Message, Reply, Request
from sharpen.core.errors import ModelError, ModelErrorKind
from sharpen.core.item import Item
from sharpen.core.outcome import Outcome, scored
from sharpen.core.rng import Stream
from sharpen.core.task import Attempt, Splits, Task
from sharpen.core.usage import Usage
from sharpen.engine.job import Job
from sharpen.engine.replay import read_events
from sharpen.engine.retry import RetryPolicy
from sharpen.models.scripted import ScriptedModel
from sharpen.testing.jobs import make_setup, running_job

T = TypeVar("T")
K = ModelErrorKind
A, B = Candidate("skill A"), Candidate("skill B")
HASTY = RetryPolicy(attempts=2, first_pause=0.0)


class Length(Task):
    """Scores the share of the answer's characters up to ten; asks `turns` questions per item."""

    name = "length"

    def __init__(self, turns: int = 1) -> None:
        self.calls_per_rollout = turns

    def splits(self) -> Splits:
        def items(split: str, count: int) -> tuple[Item, ...]:
            return tuple(Item(f"{split}-{n}", {"input": f"{split} {n}"}, n % 2) for n in range(count))

        return Splits(items("train", 12), items("val", 10), items("test", 10))

    def seed(self) -> Candidate:
        return A

    async def rollout(self, item: Item, candidate: Candidate, attempt: Attempt) -> Outcome:
        said = ""
        for turn in range(self.calls_per_rollout):
            asked = Message("user", f"{item.text} turn {turn}")
            said = (await attempt.complete(Request(messages=(Message("system", candidate.text), asked)))).text
        return scored(item.id, item.reference, soft=min(10, len(said)) / 10, answer=said)


class Fake(ScriptedModel):
    """Answers with what it was asked, each in its own time; fails on items as told; every call costs an odd sum."""

    def __init__(self, *, noise: float = 0.0, salt: int = 0, failing: dict[str, ModelError] | None = None) -> None:
        super().__init__("scripted/fake", lambda request: request.messages[-1].content, noise=noise)
        self.salt = salt
        self.failing = failing or {}
        self.asked: Counter[str] = Counter()

    async def complete(self, request: Request) -> Reply:
        text = request.messages[-1].content
        self.asked[text] += 1
        await asyncio.sleep(Stream(self.salt, text).random() * 0.01)
        for name, error in self.failing.items():
            if name in text:
                raise error
        reply = await super().complete(request)
        return Reply(reply.text, Usage(1, 3, 0, 5, 0.1 + len(text) / 7), reply.finish)

    def bound(self, request: Request) -> tuple[int, float | None]:
        return 10, 4.0

    @property
    def calls(self) -> int:
        return sum(self.asked.values())


def work(
    folder: Path, model: Fake, do: Callable[[Job], Awaitable[T]], *, task: Task | None = None, seed: int = 0, **how: Any
) -> T:
    async def main() -> T:
        setup = make_setup(task or Length(), {"target": model}, seed=seed)
        async with running_job(setup, folder, retry=HASTY, **how) as job:
            return await do(job)

    return asyncio.run(main())


def story(folder: Path) -> list[dict[str, Any]]:
    return [
        {key: value for key, value in line.items() if key != "clock"} for line in read_events(folder / "events.jsonl")
    ]


def unhealing(kind: ModelErrorKind = K.BAD_REQUEST) -> ModelError:
    return ModelError(kind, "no luck")
