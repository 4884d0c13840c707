"""What every model must hold to, as a suite that a plugin's tests inherit, and a model that watches another.

    class TestMyModel(ModelContract):
        @asynccontextmanager
        async def opened(self) -> AsyncIterator[Model]:
            model = MyModel("my/model")
            await model.open()
            yield model
            await model.close()

`Watched` passes everything on to another model, in an order of finishing of its own, and keeps count.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from sharpen.core.chat import Message, Reply, Request
from sharpen.core.digest import canonical, digest
from sharpen.core.rng import Stream
from sharpen.models.base import Model
from sharpen.tasks.render import STYLES

SOME = Request(messages=(Message("system", "Be brief."), Message("user", "Say seven.")), max_tokens=16)


class Watched:
    """A model around another. Each reply takes up to `jitter` seconds longer, in a way that depends on `salt`;
    `on_reply` is told of every call that was answered."""

    def __init__(
        self,
        model: Model,
        *,
        jitter: float = 0.0,
        salt: int = 0,
        on_reply: Callable[[Request], None] | None = None,
    ) -> None:
        self._model = model
        self._jitter = jitter
        self._salt = salt
        self._on_reply = on_reply
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    async def complete(self, request: Request) -> Reply:
        self.calls += 1
        if self._jitter:
            draw = Stream(self._salt, digest([request.key_fields(), request.seed]))
            await asyncio.sleep(draw.random() * self._jitter)
        reply = await self._model.complete(request)
        if self._on_reply is not None:
            self._on_reply(request)
        return reply


def asking(number: int) -> Request:
    """A question unlike those of other numbers."""
    return dataclasses.replace(SOME, messages=(*SOME.messages[:1], Message("user", f"Say {number}.")))


class ModelContract:
    """Inherit, and give `opened`: a new model object each time, open while the context lasts."""

    def opened(self) -> AbstractAsyncContextManager[Model]:
        raise NotImplementedError

    def with_model(self, use: Callable[[Model], Awaitable[None]]) -> None:
        async def main() -> None:
            async with self.opened() as model:
                await use(model)

        asyncio.run(main())

    def test_it_says_what_it_is(self) -> None:
        async def use(model: Model) -> None:
            assert isinstance(model, Model)
            assert model.name and model.family and model.endpoint
            assert model.render in STYLES
            assert model.concurrency >= 1
            assert isinstance(model.deterministic, bool)

        self.with_model(use)

    def test_its_identity_is_json_and_the_same_every_time(self) -> None:
        found: list[str] = []

        async def use(model: Model) -> None:
            found.append(canonical(model.identity))
            await model.complete(SOME)
            found.append(canonical(model.identity))

        self.with_model(use)
        self.with_model(use)
        assert len(set(found)) == 1 and found[0] not in ("null", '""', "{}")

    def test_a_reply_is_a_text_with_its_cost(self) -> None:
        async def use(model: Model) -> None:
            reply = await model.complete(SOME)
            assert isinstance(reply.text, str) and reply.finish
            assert reply.usage.calls == 1
            assert reply.usage.prompt_tokens >= 0 and reply.usage.completion_tokens >= 0
            assert reply.usage.cached_tokens <= reply.usage.prompt_tokens

        self.with_model(use)

    def test_no_reply_costs_more_than_its_bound(self) -> None:
        async def use(model: Model) -> None:
            for length in (1, 8, 64):
                request = dataclasses.replace(SOME, max_tokens=length)
                tokens, money = model.bound(request)
                usage = (await model.complete(request)).usage
                assert usage.tokens <= tokens
                assert usage.completion_tokens <= length
                assert money is None or usage.money is None or usage.money <= money

        self.with_model(use)

    def test_a_text_to_be_continued_is_answered_too(self) -> None:
        async def use(model: Model) -> None:
            reply = await model.complete(Request(prompt="Question: 1 + 1?\nAnswer:", max_tokens=8))
            assert isinstance(reply.text, str) and reply.usage.calls == 1

        self.with_model(use)

    def test_many_questions_at_once_get_the_answers_they_would_get_alone(self) -> None:
        async def use(model: Model) -> None:
            questions = [dataclasses.replace(asking(number), seed=number) for number in range(12)]
            together = await asyncio.gather(*(model.complete(question) for question in questions))
            alone = [await model.complete(question) for question in questions[:4]]
            assert [reply.usage.calls for reply in together] == [1] * 12
            if model.deterministic:
                assert [reply.text for reply in together[:4]] == [reply.text for reply in alone]

        self.with_model(use)

    def test_a_deterministic_model_repeats_itself(self) -> None:
        said: list[str] = []

        async def use(model: Model) -> None:
            if model.deterministic:
                said.append((await model.complete(SOME)).text)
                said.append((await model.complete(dataclasses.replace(SOME, shared=1))).text)

        self.with_model(use)
        self.with_model(use)
        assert len(set(said)) <= 1

    def test_a_question_that_is_given_up_does_not_disturb_the_next(self) -> None:
        async def use(model: Model) -> None:
            asked = asyncio.ensure_future(model.complete(asking(1)))
            await asyncio.sleep(0)
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
            assert (await model.complete(SOME)).usage.calls == 1

        self.with_model(use)

    def test_it_can_be_opened_and_closed_without_being_asked(self) -> None:
        async def use(model: Model) -> None:
            pass

        self.with_model(use)


@asynccontextmanager
async def opened(model: Model) -> AsyncIterator[Model]:
    """A model that is open while the context lasts."""
    await model.open()
    try:
        yield model
    finally:
        await model.close()
