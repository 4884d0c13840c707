"""Questions to a model outside of rollouts: reflection, merging, ranking, judging.

A reply that must match a schema is asked for with it where the endpoint can, always validated, and asked for once more
with the error. If that fails too, the answer says so: the caller goes on without it, and the event makes it visible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sharpen.core.chat import Message, Request
from sharpen.core.errors import FATAL, ModelError
from sharpen.core.redact import redact
from sharpen.core.usage import NOTHING, Usage
from sharpen.engine.durability import go_back
from sharpen.engine.events import Asked
from sharpen.engine.gateway import Gateway, NotStored
from sharpen.engine.meter import Meter
from sharpen.engine.replay import Place, Story

if TYPE_CHECKING:
    from pydantic import BaseModel


@dataclass(frozen=True)
class Question:
    role: str
    messages: tuple[Message, ...]
    schema: type[BaseModel] | None
    scope: tuple[str | int, ...]
    max_tokens: int
    temperature: float


@dataclass(frozen=True)
class Answer:
    """`value` is the validated object (or the text, where no schema was given); None when `error` says why not."""

    value: Any
    error: str | None = None
    asked_again: bool = False


async def put(gateway: Gateway, story: Story, meter: Meter, question: Question, seed: int, stage: str) -> Answer:
    """Ask, validate, ask once more if need be; leave one event."""

    def known() -> dict[str, Any]:
        return {"type": Asked.type, "stage": stage, "role": question.role, "scope": list(question.scope)}

    async with story.place(known) as place:
        on_record = _failure_on_record(place)
        if on_record is not None:
            answer, usage = on_record
            gateway.count(usage, question.role)
        else:
            answer, usage = await _ask_again_if_lost(gateway, story, place, question, seed)
            gateway.ledger.flush()  # what an event stands on is stored before it
        event = Asked(stage, question.role, list(question.scope), answer.asked_again, answer.error, usage.told())
        await story.fill(place, event)
    meter.add(stage, "ask", {question.role: usage})
    return answer


async def _ask_again_if_lost(
    gateway: Gateway, story: Story, place: Place, question: Question, seed: int
) -> tuple[Answer, Usage]:
    """The answer, from the ledger where the question is on record. What a power failure took is asked again."""
    if place.recorded is not None:
        try:
            return await _ask(gateway, question, seed, on_record=True)
        except NotStored as error:
            go_back(story, story.number_of(place), gateway.ledger.path, str(error))
    return await _ask(gateway, question, seed)


async def _ask(gateway: Gateway, question: Question, seed: int, *, on_record: bool = False) -> tuple[Answer, Usage]:
    from sharpen.models.schema import json_schema, reask, validate

    request = Request(
        messages=question.messages,
        max_tokens=question.max_tokens,
        temperature=question.temperature,
        schema=None if question.schema is None else json_schema(question.schema),
    )
    usage = NOTHING
    problem = ""
    for again in (False, True):
        draw = [seed, list(question.scope), int(again)]
        try:
            reply = await gateway.complete(question.role, request, draw, keep_request=True, on_record=on_record)
        except ModelError as error:
            if error.kind in FATAL:
                raise
            return Answer(None, redact(f"{error.kind}: {error}"), again), usage + error.usage
        usage += reply.usage
        if question.schema is None:
            return Answer(reply.text, asked_again=again), usage
        checked = validate(reply.text, question.schema)
        if not checked.error:
            return Answer(checked.value, asked_again=again), usage
        problem = checked.error
        request = reask(request, reply, problem)
    return Answer(None, redact(f"bad_reply: {problem}"), True), usage


def _failure_on_record(place: Place) -> tuple[Answer, Usage] | None:
    """A question that brought nothing usable when the story was first told is not put again while it is retold."""
    told = place.recorded
    if told is None or told.get("type") != Asked.type or told["error"] is None:
        return None
    return Answer(None, told["error"], told["asked_again"]), Usage.from_told(told["usage"])
