"""Recording and replaying: the same answers without the model, no secret on the file, and bad files named by line."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from sharpen.core.chat import Message, Reply, Request
from sharpen.core.errors import ModelError, ModelErrorKind, UsageError
from sharpen.core.redact import remember
from sharpen.core.usage import Usage
from sharpen.models.base import Model
from sharpen.models.cassette import RecordingModel, ReplayModel, load
from sharpen.models.registry import open_model
from sharpen.models.scripted import ScriptedModel

SECRET = "cassette-secret-4711"


def question(text: str, **fields: Any) -> Request:
    return Request(messages=(Message("user", text),), **fields)


def record(path: Path, *requests: Request, model: Model | None = None) -> list[Reply]:
    async def main() -> list[Reply]:
        recorder = RecordingModel(model or ScriptedModel("scripted/echo"), path)
        await recorder.open()
        try:
            return [await recorder.complete(request) for request in requests]
        finally:
            await recorder.close()

    return asyncio.run(main())


def replay(path: Path, request: Request) -> Reply:
    return asyncio.run(ReplayModel(f"replay/{path}").complete(request))


def test_what_was_recorded_is_replayed(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "talk.jsonl"
    requests = [question("one"), question("two", seed=1, temperature=0.5), Request(prompt="three", stop=("\n",))]
    replies = record(path, *requests)
    assert [replay(path, request) for request in requests] == replies
    assert ReplayModel(f"replay/{path}").bound(requests[0]) == (2, 0.0)


def test_tool_calls_and_unknown_money_survive(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    reply = Reply(
        "", Usage(1, 10, 4, 2, None), "tool_calls", tool_calls=({"id": "1", "name": "look", "arguments": "{}"},)
    )

    class Caller(ScriptedModel):
        async def complete(self, request: Request) -> Reply:
            return reply

    record(path, question("x"), model=Caller("scripted/echo"))
    assert replay(path, question("x")) == reply


def test_a_replay_passes_for_the_recorded_model(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    record(path, question("x"), model=ScriptedModel("scripted/echo", render="turns"))
    model = open_model(f"replay/{path}")
    assert isinstance(model, Model)
    assert (model.family, model.render, model.deterministic) == ("scripted", "turns", True)


def test_an_unknown_request_is_refused_with_the_files_name(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    record(path, question("one", seed=1))
    for request in (question("two"), question("one"), question("one", seed=2), question("one", seed=1, max_tokens=7)):
        with pytest.raises(
            ModelError, match=r"talk\.jsonl holds no answer to request .*record:.*scripted/echo"
        ) as caught:
            replay(path, request)
        assert caught.value.kind is ModelErrorKind.BAD_REQUEST


def test_the_first_answer_is_kept_and_recording_goes_on_where_it_stopped(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    answers = iter(["first", "second", "third", "fourth"])
    model = ScriptedModel("scripted/mine", lambda request: next(answers))
    record(path, question("x"), question("x"), model=model)
    with path.open("ab") as file:
        file.write(b'{"id": "cut sho')
    record(path, question("x"), question("y"), model=model)
    assert len(path.read_text().splitlines()) == 3
    assert replay(path, question("x")).text == "first"
    assert replay(path, question("y")).text == "fourth"


def test_no_secret_reaches_the_file(tmp_path: Path) -> None:
    remember(SECRET)
    path = tmp_path / "talk.jsonl"
    assert record(path, question(f"the key is {SECRET}"))[0].text == f"the key is {SECRET}"
    assert SECRET not in path.read_text()
    assert json.loads(path.read_text().splitlines()[1])["id"] != "[redacted]"


def test_another_models_cassette_is_not_continued(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    record(path, question("x"))
    with pytest.raises(UsageError, match="was recorded from scripted/echo; choose another file"):
        record(path, question("x"), model=ScriptedModel("scripted/rules"))


def test_the_identity_follows_the_content(tmp_path: Path) -> None:
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    record(one, question("x"))
    record(two, question("x"))
    assert ReplayModel(f"replay/{one}").identity == ReplayModel(f"replay/{two}").identity
    record(two, question("y"))
    assert ReplayModel(f"replay/{one}").identity != ReplayModel(f"replay/{two}").identity


MODEL = {"name": "m", "family": "f", "render": "system", "identity": 1}
HEADER = json.dumps({"format": "sharpen.cassette", "version": 1, "model": MODEL}) + "\n"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "is empty"),
        ("nonsense\n", "line 1"),
        ('{"a": 1}\n', "is no cassette"),
        ("[]\n", "is no cassette"),
        (HEADER.replace('"version": 1', '"version": 9'), "version 9; this program reads version 1"),
        (HEADER + '{"id": "a"}\n', "line 2"),
        (HEADER + '{"id": "a", "reply": {"text": "x", "finish": "stop", "usage": 3, "tool_calls": []}}\n', "line 2"),
        (HEADER + "\n", "line 2"),
    ],
)
def test_a_broken_file_is_refused_with_the_place(tmp_path: Path, content: str, why: str) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_text(content)
    with pytest.raises(UsageError, match=why):
        load(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such cassette"):
        open_model(f"replay/{tmp_path}/none.jsonl")
