"""Questions to a model: validated, asked once more with the error, then a counted failure that never stops the job."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from pydantic import BaseModel

from sharpen.core.chat import Message, Reply, Request
from sharpen.core.errors import BudgetExhausted, ModelError, ModelErrorKind, UsageError
from sharpen.core.rng import Stream
from sharpen.core.usage import Usage
from sharpen.engine.asking import Answer
from sharpen.engine.budget import Caps
from sharpen.engine.events import BudgetEnded, JobEnded
from sharpen.engine.executor import together
from sharpen.engine.job import Job
from sharpen.engine.replay import read_events
from sharpen.engine.retry import RetryPolicy
from sharpen.models.scripted import ScriptedModel
from sharpen.tasks.codebook import Codebook
from sharpen.testing.jobs import make_setup, running_job

T = TypeVar("T")
K = ModelErrorKind


class Colour(BaseModel):
    name: str
    depth: int


class Writer(ScriptedModel):
    """An optimizer that gives the listed replies (or raises the listed errors) in turn, then good ones; costs odd sums."""

    def __init__(self, *replies: str | ModelError, salt: int = 0) -> None:
        super().__init__("scripted/writer", lambda request: "")
        self.replies = list(replies)
        self.salt = salt
        self.asked: list[Request] = []

    async def complete(self, request: Request) -> Reply:
        self.asked.append(request)
        text = request.messages[-1].content
        said = self.replies.pop(0) if self.replies else json.dumps({"name": text, "depth": len(text)})
        await asyncio.sleep(Stream(self.salt, text).random() * 0.01)
        if isinstance(said, ModelError):
            raise said
        return Reply(said, Usage(1, 10, 0, 3, 0.1 + len(text) / 7))

    def bound(self, request: Request) -> tuple[int, float | None]:
        return 20, 4.0


def work(folder: Path, writer: Writer, do: Callable[[Job], Awaitable[T]], **how: Any) -> T:
    async def main() -> T:
        setup = make_setup(Codebook(), {"target": ScriptedModel("scripted/rules"), "optimizer": writer})
        async with running_job(setup, folder, retry=RetryPolicy(attempts=2, first_pause=0.0), **how) as job:
            return await do(job)

    return asyncio.run(main())


def ask(text: str = "blue", schema: type[BaseModel] | None = Colour) -> Callable[[Job], Awaitable[Answer]]:
    return lambda job: job.ask("optimizer", [Message("user", text)], schema=schema, scope=("reflect", text))


def events(folder: Path) -> list[dict[str, Any]]:
    return [{k: v for k, v in line.items() if k != "clock"} for line in read_events(folder / "events.jsonl")]


def test_a_good_answer_comes_back_validated(tmp_path: Path) -> None:
    writer = Writer()
    answer = work(tmp_path, writer, ask())
    assert answer == Answer(Colour(name="blue", depth=4))
    assert writer.asked[0].schema == Colour.model_json_schema()
    (event,) = events(tmp_path)
    assert (event["role"], event["scope"], event["error"], event["usage"][0]) == (
        "optimizer",
        ["reflect", "blue"],
        None,
        1,
    )


def test_without_a_schema_the_text_comes_back(tmp_path: Path) -> None:
    assert work(tmp_path, Writer("just so"), ask(schema=None)) == Answer("just so")


def test_a_bad_answer_is_asked_for_once_more_with_the_error(tmp_path: Path) -> None:
    writer = Writer('{"name": "blue"}', '{"name": "blue", "depth": 2}')
    assert work(tmp_path, writer, ask()) == Answer(Colour(name="blue", depth=2), asked_again=True)
    again = writer.asked[1].messages
    assert [m.role for m in again] == ["user", "assistant", "user"]
    assert again[1].content == '{"name": "blue"}' and "depth" in again[2].content
    assert events(tmp_path)[0]["usage"][:3] == [2, 20, 6]


def test_a_second_bad_answer_is_a_counted_failure(tmp_path: Path) -> None:
    writer = Writer("no", "still no")
    answer = work(tmp_path, writer, ask())
    assert answer.value is None and answer.asked_again
    assert answer.error is not None and answer.error.startswith("bad_reply: ")
    assert len(writer.asked) == 2
    assert events(tmp_path)[0]["error"] == answer.error


@pytest.mark.parametrize("kind", [K.TIMEOUT, K.BAD_REQUEST, K.BAD_REPLY, K.RATE_LIMITED])
def test_a_failed_call_is_an_answer_that_says_so(tmp_path: Path, kind: ModelErrorKind) -> None:
    answer = work(tmp_path, Writer(*[ModelError(kind, "no luck")] * 2), ask())
    assert answer.value is None and answer.error is not None and answer.error.startswith(f"{kind}: no luck")


@pytest.mark.parametrize("kind", [K.TIMEOUT, K.BAD_REQUEST, K.BAD_REPLY, K.RATE_LIMITED])
@pytest.mark.parametrize("first", [[], ['{"name": "blue"}']], ids=["at once", "when asked again"])
def test_a_failure_on_record_is_retold_and_not_asked_again(
    tmp_path: Path, kind: ModelErrorKind, first: list[str]
) -> None:
    spent: list[Usage] = []

    async def do(job: Job) -> Answer:
        answer = await ask()(job)
        spent.append(Usage.from_told(job.budget.spent.told()))
        return answer

    before = work(tmp_path, Writer(*first, *[ModelError(kind, "no luck")] * 2), do)
    told = (tmp_path / "events.jsonl").read_bytes()
    healthy = Writer()
    assert work(tmp_path, healthy, do) == before and before.error is not None
    assert healthy.asked == [] and (tmp_path / "events.jsonl").read_bytes() == told
    assert spent[0] == spent[1], "what was paid for counts towards the budget when it is retold"


def test_bad_replies_on_record_are_retold_and_not_asked_again(tmp_path: Path) -> None:
    before = work(tmp_path, Writer("no", "still no"), ask())
    healthy = Writer()
    assert work(tmp_path, healthy, ask()) == before
    assert healthy.asked == []


@pytest.mark.parametrize("kind", [K.AUTH, K.NOT_FOUND, K.UNREACHABLE])
def test_what_would_hit_every_call_is_raised(tmp_path: Path, kind: ModelErrorKind) -> None:
    with pytest.raises(ModelError, match="no luck"):
        work(tmp_path, Writer(*[ModelError(kind, "no luck")] * 3), ask())
    assert events(tmp_path) == []


def test_an_unknown_role_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'judge'"):
        work(tmp_path, Writer(), lambda job: job.ask("judge", [Message("user", "hi")]))


async def many(job: Job) -> None:
    with job.stage(1, "reflect"):
        await together(*(ask("x" * n)(job) for n in range(1, 12)))


def test_questions_side_by_side_are_told_in_the_order_they_were_put(tmp_path: Path) -> None:
    async def do(job: Job) -> None:
        await many(job)
        job.emit(JobEnded("done", "", job.meter.table()))

    stories = []
    for salt in range(6):
        work(tmp_path / str(salt), Writer(salt=salt), do)
        stories.append(events(tmp_path / str(salt)))
    assert [event["scope"][1] for event in stories[0][:-2]] == ["x" * n for n in range(1, 12)]
    assert all(story == stories[0] for story in stories), "not even in the last digit of the money"


def test_the_same_question_in_another_scope_is_another_event_and_the_same_reply(tmp_path: Path) -> None:
    async def do(job: Job) -> None:
        for scope in (("a", 1), ("b", 1)):
            await job.ask("optimizer", [Message("user", "blue")], schema=Colour, scope=scope)

    writer = Writer()
    work(tmp_path, writer, do)
    assert len(writer.asked) == 1 and [event["scope"] for event in events(tmp_path)] == [["a", 1], ["b", 1]]


@pytest.mark.parametrize("caps", [Caps(calls=5), Caps(tokens=90), Caps(money=6.0)], ids=repr)
def test_a_budget_that_ends_among_questions_ends_there_again(tmp_path: Path, caps: Caps) -> None:
    async def do(job: Job) -> None:
        try:
            await many(job)
        except BudgetExhausted as error:
            job.emit(BudgetEnded(str(error)))
        assert len(asyncio.all_tasks()) == 1, "nothing goes on behind the back of the trainer"

    stories = []
    for salt in range(3):
        folder = tmp_path / str(salt)
        work(folder, Writer(salt=salt), do, caps=caps)
        told = (folder / "events.jsonl").read_bytes()
        assert b"budget_ended" in told
        work(folder, Writer(salt=9), do, caps=caps)
        assert (folder / "events.jsonl").read_bytes() == told
        stories.append(events(folder))
    assert stories[0] == stories[1] == stories[2]
