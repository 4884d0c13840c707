"""Rows that hold a conversation are asked as messages; placeholders are filled in or refused, never sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sharpen.cli.app import run
from sharpen.core.candidate import Candidate
from sharpen.core.chat import Message, Request
from sharpen.core.errors import UsageError
from sharpen.core.item import Item, as_text
from sharpen.tasks import registry
from sharpen.tasks.placeholders import check_placeholders
from sharpen.tasks.render import render
from sharpen.tasks.textual import TextTask
from sharpen.testing.tasks import attempt

CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi!"},
    {"role": "user", "content": [{"type": "text", "text": "What is 1+1?"}]},
]
SKILL = Candidate("Answer the question.\n")


def data(folder: Path, **columns: Any) -> Path:
    rows = [{"answer": "2", "note": str(number), **columns} for number in range(12)]
    path = folder / "data.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def asked(task: TextTask, style: str = "system") -> Request:
    seen: list[Request] = []

    def answer(request: Request) -> str:
        seen.append(request)
        return "2"

    outcome = attempt(task, task.splits().train[0], answer, render=style)
    assert outcome.hard == 1.0
    return seen[0]


def open_task(path: Path, **settings: Any) -> TextTask:
    task = registry.get(str(path), **settings)
    assert isinstance(task, TextTask)
    return task


def test_a_conversation_is_asked_as_its_messages(tmp_path: Path) -> None:
    task = open_task(data(tmp_path, messages=CHAT), fields={"input": "messages"})
    for style in ("system", "turns"):
        request = asked(task, style)
        assert [(m.role, m.content.strip()) for m in request.messages] == [
            ("system", "Answer the question."),
            ("system", "Be brief."),
            ("user", "Hello"),
            ("assistant", "Hi!"),
            ("user", "What is 1+1?"),
        ]
        assert request.shared == 1
    request = asked(task, "completion")
    assert request.prompt is not None and request.prompt.startswith("Answer the question.\n\nUser:")
    assert request.prompt.endswith("User: Be brief.\n\nHello\nAssistant: Hi!\n\nUser: What is 1+1?\nAssistant:")
    item = task.splits().train[0]
    assert task.ask(item) == "System: Be brief.\nUser: Hello\nAssistant: Hi!\nUser: What is 1+1?"
    assert attempt(task, item, "2").trajectory[-2:] == (Message("user", "What is 1+1?"), Message("assistant", "2"))


@pytest.mark.parametrize(
    ("chat", "said"),
    [
        ([*CHAT, {"role": "assistant", "content": "2"}], "must end with a message of the user; an answer belongs into"),
        ([{"role": "human", "content": "x"}], r"needs a role \(system, user, assistant\)"),
        ([{"role": "user", "content": None}], "a text as content"),
        ([{"role": "user", "content": [{"type": "image_url"}]}], "a text as content"),
        ([{"role": "user", "content": "x", "tool_calls": []}], "message 1 of the conversation has 'tool_calls'"),
    ],
)
def test_a_conversation_that_cannot_be_asked_is_refused_with_its_line(tmp_path: Path, chat: Any, said: str) -> None:
    with pytest.raises(UsageError, match=rf"data\.jsonl, line \d+: the input: .*{said}"):
        open_task(data(tmp_path, input=chat))


def test_other_lists_and_objects_are_asked_as_json_and_never_as_python(tmp_path: Path) -> None:
    value = {"names": ["Ä", "b"], "ok": True, "none": None}
    assert asked(open_task(data(tmp_path, input=value))).messages[-1].content == json.dumps(value, ensure_ascii=False)
    task = open_task(data(tmp_path, meta=value), template="See {meta}: {note:>3}")
    assert asked(task).messages[-1].content.startswith("See " + json.dumps(value, ensure_ascii=False) + ":  ")
    roles = [{"role": "king", "name": "x"}]
    assert as_text(roles) == json.dumps(roles)
    assert Item("a", {"x": [1, "é"], "y": 2}).text == 'x: [1, "é"]\ny: 2'


def test_how_structured_inputs_are_asked_is_part_of_the_version(tmp_path: Path) -> None:
    plain = open_task(data(tmp_path, input="x")).version
    assert open_task(data(tmp_path, input="y")).version == plain
    assert open_task(data(tmp_path, input=["x"])).version != plain


def test_a_conversation_inside_a_template_is_refused_with_what_works(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"without task\.template: task\.fields=\{input: messages\}"):
        open_task(data(tmp_path, messages=CHAT), template="Read {messages}")


@pytest.mark.parametrize(
    ("template", "working"),
    [
        ("Q: {{question}}", "Q: {question}"),
        ("{{ context }} {question}", "{context} {question}"),
        ('{{"a": 1}} {{question}}', '{{"a": 1}} {question}'),
    ],
)
def test_doubled_braces_around_a_column_are_refused_with_the_line_that_works(
    tmp_path: Path, template: str, working: str
) -> None:
    path = data(tmp_path, question="q", context="c")
    with pytest.raises(UsageError) as error:
        open_task(path, template=template)
    assert str(error.value).endswith(f"write task.template='{working}'")
    assert "{" not in asked(open_task(path, template=working)).messages[-1].content.replace('{"a": 1}', "")
    assert open_task(path, template='{{"a": {question}}}')


@pytest.mark.parametrize("text", ["Answer:\n{{question}}", "Answer {{ question }} now", "Answer {question}"])
def test_a_text_with_a_placeholder_for_a_column_is_refused(tmp_path: Path, text: str) -> None:
    task = open_task(data(tmp_path, question="q"), template="{question}")
    line = text.count("\n", 0, text.index("{")) + 1
    with pytest.raises(UsageError, match=rf"SKILL\.md, line {line}, has \{{.*the template '\{{question\}}' says how"):
        check_placeholders(task, Candidate(text))
    for fine in ("Answer as {{json}}", "Use ${question}", 'Reply {"question": 1}', "{question", "{{question}: 1}"):
        check_placeholders(task, Candidate(fine))


def test_a_training_that_would_send_braces_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"input": f"q{number}", "answer": "2"} for number in range(12)]
    Path("data.jsonl").write_text("\n".join(map(json.dumps, rows)))
    Path("prompt.md").write_text("Classify this: {{input}}\n")
    assert run(["train", "data.jsonl", "--skill", "prompt.md", "--model", "scripted/rules", "-q"]) == 2
    assert "SKILL.md, line 1, has {{input}}" in capfd.readouterr().err
    assert not Path("runs").exists()


@pytest.mark.parametrize("style", ["system", "turns", "completion"])
def test_a_text_is_asked_as_one_message_of_the_user(style: str) -> None:
    texts = [render(style, SKILL, asked, max_tokens=5) for asked in ("Hello", (Message("user", "Hello"),))]
    assert texts[0] == texts[1]
