"""Programs are run against their tests in the sandbox; a program that only pretends passes nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sharpen.core.errors import UsageError
from sharpen.core.item import Item
from sharpen.core.task import SPLITS
from sharpen.sandbox import missing
from sharpen.tasks import qa
from sharpen.tasks.metrics import Score
from sharpen.tasks.qa.code import CodeTask, program_in
from sharpen.testing.tasks import attempt

DATA = Path(__file__).parent / "data"
PROMPT = 'import math\n\ndef double(number):\n    """Give twice the number."""\n'


@pytest.fixture(scope="module", autouse=True)
def _sandbox() -> None:
    assert missing() is None, f"these tests need {missing()}"


def made(family: str, where: str) -> CodeTask:
    task = qa.make(family, data=str(DATA / where))
    assert isinstance(task, CodeTask)
    return task


def items(task: CodeTask) -> dict[str, Item]:
    return {item.id: item for name in SPLITS for item in task.splits()[name]}


@pytest.fixture(scope="module")
def humaneval() -> CodeTask:
    return made("humaneval", "humaneval")


def result_of(task: CodeTask, answer: str, item: str = "Sample/0") -> Score:
    return asyncio.run(task.tested(answer, items(task)[item]))


@pytest.mark.parametrize(
    ("family", "where"), [("humaneval", "humaneval"), ("mbpp", "mbpp"), ("mbpp", "mbpp_sanitized")]
)
def test_published_solutions_pass(family: str, where: str) -> None:
    task = made(family, where)
    for item in items(task).values():
        gold = task.gold(item)
        assert gold is not None and attempt(task, item, gold).hard == 1.0


def test_mbpp_is_split_by_its_numbers_as_published() -> None:
    splits = made("mbpp", "mbpp").splits()
    assert [[item.id for item in splits[name]] for name in SPLITS] == [
        ["mbpp-610", "mbpp-700", "mbpp-970"],
        ["mbpp-520", "mbpp-590"],
        ["mbpp-12", "mbpp-300"],
    ]


@pytest.mark.parametrize(
    "answer",
    [
        "    return number * 2",
        "return number + number",
        "def double(number):\n    return 2 * number\n```\n\nThat is all.",
        "Here it is:\n```python\ndef double(number):\n    return 2 * number",
        "```python\ndef double(number):\n    return number * 2\n```\nThat is all.",
        "```python\ndef double(n):\n    return 0\n```\nBetter:\n```python\ndef double(number):\n    return 2 * number\n```",
        "```\ndef double(number):\n    return int(math.ldexp(number, 1))\n```",
    ],
)
def test_a_program_is_found_in_an_answer(humaneval: CodeTask, answer: str) -> None:
    assert result_of(humaneval, answer) == Score(1.0, 1.0)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return number", "AssertionError"),
        ("return nmber", "NameError"),
        ("return (", "SyntaxError"),
        ("raise SystemExit(0)", "SystemExit"),
        ("import os; os._exit(0)", "ended too early"),
        ("print('0 passed'); return number", "AssertionError"),
    ],
)
def test_wrong_programs_score_nothing_and_say_why(humaneval: CodeTask, body: str, said: str) -> None:
    found = result_of(humaneval, f"```python\ndef double(number):\n    {body}\n```")
    assert found.hard == 0.0 and said in found.feedback


def test_an_endless_program_is_ended(humaneval: CodeTask, monkeypatch: pytest.MonkeyPatch) -> None:
    from sharpen.sandbox import Limits

    monkeypatch.setattr("sharpen.tasks.qa.code.LIMITS", Limits(seconds=1.0))
    found = result_of(humaneval, "```python\ndef double(number):\n    while True: pass\n```")
    assert (found.hard, found.soft) == (0.0, 0.0) and "too long" in found.feedback


def test_the_share_of_passed_tests_is_the_soft_score() -> None:
    found = result_of(made("mbpp", "mbpp"), "```python\ndef last(items):\n    return 2\n```", "mbpp-12")
    assert (found.hard, found.soft) == (0.0, 0.5) and "1 of 2 tests pass" in found.feedback


def test_what_stands_before_the_function_is_kept() -> None:
    assert program_in("```python\ndef double(n):\n    return 1\n```", PROMPT, "double").startswith("import math\n")


def test_the_way_to_run_is_checked() -> None:
    with pytest.raises(UsageError, match=r"must be bubblewrap or unsafe, got 'unsfe' \(did you mean 'unsafe'"):
        qa.make("mbpp", data=str(DATA / "mbpp"), sandbox="unsfe")
    unsafe = qa.make("mbpp", data=str(DATA / "mbpp"), sandbox="unsafe")
    assert unsafe.requirements.missing() == []
    item = unsafe.splits().test[0]
    assert attempt(unsafe, item, unsafe.gold(item)).hard == 1.0  # type: ignore[attr-defined]
