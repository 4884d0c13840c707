"""How a candidate reaches a model: each style word for word, what is shared, and what any skill survives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharpen.core.candidate import Candidate
from sharpen.core.chat import Message, Request
from sharpen.core.errors import UsageError
from sharpen.skill.examples import Example, parse, write
from sharpen.tasks.render import STYLES, render

SKILL = f"""# Numbers

Write digits.

## Examples

{write(Example("two", "2"))}

{write(Example("three", "3"))}
"""


def rendered(style: str, text: str | dict[str, str], user: str = "four") -> Request:
    return render(style, Candidate(text), user, max_tokens=8)


def test_system_sends_the_skill_as_it_stands() -> None:
    request = rendered("system", SKILL)
    assert request.messages == (Message("system", SKILL.strip()), Message("user", "four"))
    assert request.shared == 1 and request.stop == () and request.prompt is None


def test_system_puts_further_parts_under_their_names() -> None:
    request = rendered("system", {"SKILL.md": "Main.", "units.md": "km\n"})
    assert request.messages[0].content == "Main.\n\n## units.md\n\nkm"


def test_turns_sends_examples_as_turns_without_their_heading() -> None:
    request = rendered("turns", SKILL)
    assert [message.role for message in request.messages] == [
        "system",
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
    ]
    assert request.messages[0].content == "# Numbers\n\nWrite digits."
    assert request.messages[1:3] == (Message("user", "two"), Message("assistant", "2"))
    assert request.shared == 5


def test_completion_writes_blocks_and_stops_at_the_newline() -> None:
    request = rendered("completion", SKILL)
    assert request.prompt == (
        "# Numbers\n\nWrite digits.\n\nUser: two\nAssistant: 2\n\nUser: three\nAssistant: 3\n\nUser: four\nAssistant:"
    )
    assert request.stop == ("\n",)
    assert request.prompt[request.shared :] == " four\nAssistant:"


def test_completion_with_answers_of_several_lines_stops_at_the_next_block() -> None:
    request = rendered("completion", "Go.\n\n" + write(Example("a\nb", "1\n2")))
    assert request.prompt == "Go.\n\nUser: a\nb\nAssistant: 1\n2\n\nUser: four\nAssistant:"
    assert request.stop == ("\nUser:",)


def test_a_stop_of_the_task_replaces_that_of_the_style() -> None:
    assert render("completion", Candidate("x"), "y", max_tokens=1, stop=("END",)).stop == ("END",)
    assert render("completion", Candidate("x"), "y", max_tokens=1, stop=()).stop == ()


@pytest.mark.parametrize("style", STYLES)
def test_an_empty_skill_works(style: str) -> None:
    request = rendered(style, "  \n")
    assert request.messages == (Message("user", "four"),) or request.prompt == "User: four\nAssistant:"


def test_only_headings_that_examples_stood_under_go() -> None:
    text = "# Title\n\n## Rules\n\n- one\n\n## Examples\n\n" + write(Example("a", "b")) + "\n\n## Notes\n\nlast\n"
    assert rendered("turns", text).messages[0].content == "# Title\n\n## Rules\n\n- one\n\n## Notes\n\nlast"
    assert rendered("turns", "# Only a title").messages[0].content == "# Only a title"
    assert rendered("turns", "# T\n\n## A\n\n### B\n\nx").messages[0].content == "# T\n\n## A\n\n### B\n\nx"


def test_an_unknown_style_is_named_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'completion'"):
        rendered("completions", "x")


lines = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)
skills = st.builds(
    lambda head, pairs: "\n\n".join([head, *(write(Example(a, b)) for a, b in pairs)]),
    st.sampled_from(["", "Do it.", "# T\n\nDo it.\n\n## Examples"]),
    st.lists(st.tuples(lines, lines), max_size=4),
)


@given(st.sampled_from(sorted(STYLES)), skills, lines, lines)
def test_what_is_shared_does_not_depend_on_the_item(style: str, skill: str, one: str, other: str) -> None:
    first, second = rendered(style, skill, one), rendered(style, skill, other)
    assert first.shared == second.shared
    if first.prompt is None or second.prompt is None:
        assert first.messages[: first.shared] == second.messages[: second.shared]
        assert first.shared == len(first.messages) - 1
    else:
        assert first.prompt[: first.shared] == second.prompt[: second.shared]
        assert first.prompt[: first.shared].endswith("User:")
        assert first.prompt[first.shared :] == f" {one}\nAssistant:"


@given(st.sampled_from(sorted(STYLES)), skills, lines)
def test_rendering_loses_no_example(style: str, skill: str, user: str) -> None:
    request = rendered(style, skill, user)
    everything = request.prompt or "\n".join(message.content for message in request.messages)
    for example in parse(skill).examples:
        assert example.input in everything and example.output in everything


@given(st.sampled_from(sorted(STYLES)), skills, lines)
def test_rendering_is_a_function_of_its_arguments(style: str, skill: str, user: str) -> None:
    assert rendered(style, skill, user) == rendered(style, skill, user)
