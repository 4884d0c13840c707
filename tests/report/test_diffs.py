"""Differences of skill texts: what came and went is in view, and nothing a model wrote reaches the terminal as a command."""

from __future__ import annotations

from rich.text import Text

from sharpen.core.candidate import Candidate
from sharpen.report import diffs


def styled(shown: Text, style: str) -> str:
    """The characters of a text that carry exactly this style, in order."""
    return "".join(shown.plain[span.start : span.end] for span in shown.spans if span.style == style)


def test_lines_that_came_and_went_have_their_signs_and_colours() -> None:
    shown = diffs.of_texts("one\ntwo\nthree\nfour\nfive\n", "one\nthree\nfour\nfive\nsix\n")
    assert shown.plain == "  one\n- two\n  three\n… \n  five\n+ six\n"
    assert styled(shown, diffs.WENT) == "- two"
    assert styled(shown, diffs.CAME) == "+ six"


def test_of_a_changed_line_the_words_that_differ_stand_out() -> None:
    shown = diffs.of_texts("Answer with one short word.\n", "Answer with one long word.\n")
    assert styled(shown, f"{diffs.WENT} bold") == "short"
    assert styled(shown, f"{diffs.CAME} bold") == "long"
    assert "bold" not in str(diffs.of_texts("Say nothing.\n", "Count to ten, then stop\n").spans)


def test_several_parts_are_told_apart() -> None:
    before = Candidate({"SKILL.md": "a\n", "notes.md": "b\n", "same.md": "c\n"})
    shown = diffs.between(before, before.with_part("notes.md", "d\n").with_part("new.md", "e\n")).plain
    assert shown == "notes.md\n- b\n+ d\nnew.md\n+ e\n"
    assert diffs.between(Candidate("a\n"), Candidate("b\n")).plain == "- a\n+ b\n"


def test_edits_are_listed_where_the_text_is_not_known() -> None:
    listed = [
        {"op": "insert_after", "content": "new", "target": "here", "part": None},
        {"op": "replace", "content": "fresh", "target": "stale", "part": "notes.md"},
        {"op": "delete", "content": "", "target": "old", "part": None},
    ]
    expected = "insert after\n  here\n+ new\nreplace in notes.md\n- stale\n+ fresh\ndelete\n- old\n"
    assert diffs.of_edits(listed).plain == expected


def test_long_changes_are_cut_and_say_so() -> None:
    many = "".join(f"line {n}\n" for n in range(100))
    for shown in (diffs.of_texts("", many, most=10), diffs.of_edits([{"op": "append", "content": many}], most=10)):
        assert len(shown.plain.splitlines()) == 11
        assert "more lines" in shown.plain.splitlines()[-1]


def test_nothing_in_a_text_commands_the_terminal() -> None:
    nasty = "\x1b[2Jcleared\x07\rover\u202e"
    for shown in (diffs.of_texts("", nasty), diffs.of_edits([{"op": "append", "content": nasty}])):
        assert all(c.isprintable() or c == "\n" for c in shown.plain)
        assert "cleared" in shown.plain
