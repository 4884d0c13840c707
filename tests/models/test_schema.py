"""Replies with a shape: found wherever they stand, never guessed, and wrong ones explained."""

from __future__ import annotations

import json
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from sharpen.core.chat import Message, Reply, Request
from sharpen.models.schema import json_schema, reask, validate


class Edit(BaseModel):
    op: Literal["append", "delete"]
    content: str = ""


class Patch(BaseModel):
    model_config = ConfigDict(extra="forbid")
    summary: str
    edits: list[Edit] = Field(default_factory=list)


GOOD = {"summary": "fine", "edits": [{"op": "append", "content": "```json\n{not this}\n```"}]}
TEXT = json.dumps(GOOD)


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        f"\n  {TEXT}\n",
        f"```json\n{json.dumps({'summary': 'fine', 'edits': GOOD['edits']}, indent=2)}\n```",
        f"Here you are:\n```\n{TEXT}\n```\nAnything else?",
        f"Sure! {TEXT} I hope that {{helps}}.",
        f"A set is written {{a, b}}. {TEXT}",
        f'<think>maybe {{"summary": "draft"}}</think>{TEXT}',
        f"{TEXT}\n\nOnce more: {TEXT}",
    ],
)
def test_the_value_is_found(text: str) -> None:
    checked = validate(text, Patch)
    assert checked.error == ""
    assert checked.data == GOOD
    assert checked.value == Patch.model_validate(GOOD)


def test_raw_newlines_inside_strings_are_forgiven() -> None:
    assert validate('{"summary": "two\nlines"}', Patch).data == {"summary": "two\nlines", "edits": []}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no JSON"),
        ("I would rather not.", "no JSON"),
        ('{"summary": "a"} or {"summary": "b"}', "2 different JSON values"),
        (TEXT[:-5], "breaks off"),
        ('{"summary": "a", "edits": [{"op": "app', "breaks off"),
        ('{"summary": "a", "edits": [', "breaks off"),
        ('{"summary": "a",, "edits": []}', "broken"),
        ("[1, 2]", "the reply: "),
        ("{}", "summary: Field required"),
        ('{"summary": "a", "edits": [{"op": "add"}]}', "edits.0.op: Input should be 'append' or 'delete' (got 'add')"),
        ('{"summary": "a", "extra": 1}', "extra: Extra inputs are not permitted"),
        ('{"summary": NaN}', "NaN is not a JSON value"),
        ("{" * 100_000, "too many"),
        ('{"a":' * 100_000, "cannot be read"),
        ("{}, " * 100_000, "too many"),
        ("{x} " * 100 + TEXT, "too many"),
        ("[" * 100_000, "no JSON"),
    ],
)
def test_what_does_not_fit_is_explained(text: str, why: str) -> None:
    checked = validate(text, Patch)
    assert checked.value is None
    assert why in checked.error


def test_a_fragment_of_a_broken_object_is_not_taken_for_the_answer() -> None:
    assert validate('{"edits": [{"summary": "inner"}] oops', Patch).value is None


def test_many_errors_are_summed_up() -> None:
    text = json.dumps({"summary": "a", "edits": [{"op": "x" * 1000}] * 9})
    error = validate(text, Patch).error
    assert error.endswith("and 4 more")
    assert len(error) < 1000


@given(st.text())
def test_any_content_survives_a_fence(content: str) -> None:
    wrapped = f"Before.\n```json\n{json.dumps({'summary': content})}\n```\nAfter."
    assert validate(wrapped, Patch).data == {"summary": content, "edits": []}


@given(st.text())
def test_no_text_makes_it_fail(text: str) -> None:
    checked = validate(text, Patch)
    assert (checked.value is None) == bool(checked.error)


def test_asking_again_shows_the_reply_and_the_error() -> None:
    request = Request(messages=(Message("user", "Go."),), schema=json_schema(Patch), shared=1)
    again = reask(request, Reply("nonsense"), "there is no JSON object in it")
    assert [m.role for m in again.messages] == ["user", "assistant", "user"]
    assert again.messages[1].content == "nonsense"
    assert "there is no JSON object in it" in again.messages[2].content
    assert (again.schema, again.shared) == (request.schema, 1)


def test_asking_again_continues_a_prompt() -> None:
    again = reask(Request(prompt="Go: "), Reply("nonsense"), "no JSON")
    assert again.prompt is not None
    assert again.prompt.startswith("Go: nonsense")
    assert "no JSON" in again.prompt
