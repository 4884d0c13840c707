"""The proposer for programs: whatever it proposes parses, applies, changes something, and follows from the stream alone."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sharpen.core.candidate import Candidate
from sharpen.core.item import Item
from sharpen.core.rng import Stream
from sharpen.skill.edits import Edit, Limits, Op, apply
from sharpen.tasks import registry
from sharpen.tasks.algorithms import rules
from sharpen.tasks.algorithms.base import references
from sharpen.trainers.reflact.proposers.base import Attempted, Proposal, Tried, View
from sharpen.trainers.reflact.proposers.mutations import CONSTANTS, KINDS, LOOPS, NUMBERS, Program
from sharpen.trainers.reflact.proposers.syntax import SyntaxProposer, edit_between, further, habit_of, only_numbers

ODD = '''"""Größe: ä comment with ünicode, and lines that occur twice."""
import math
from collections import (
    deque,
)

A, B = -1.5, (2, 3)


class Thing:
    size: float = 1e-3


def f(x, *, y=2.0):
    """A docstring that stays."""
    name = f"{x:.3f} ä"
    if x > 1 and y < 2 or not name:
        x += 1
        x += 1
        return max(x, y) if x else -y
    elif x == 3:
        return [i * 2 for i in range(int(x)) if i % 2]
    with open("ä") as file:
        x = file
    while x < 10 - \\
            2:
        x = x * 1.5 + y[0] - math.sqrt(x)
        x = x * 1.5 + y[0] - math.sqrt(x)
    return x


def g(): return 1
'''
SOURCES = [ODD, "x = 1\n", "x = 1", *(registry.get(name).seed()["program.py"] for name in references())]


def view(source: str, seed: int, *, budget: int = 4, history: tuple[Tried, ...] = (), part: str = "program.py") -> View:
    failed = Attempted(Item("a", {"seed": 1}), None, "", 0.5, 0.5)
    return View(Candidate({part: source}), Stream(seed, "test"), failures=(failed,), budget=budget, history=history)


def proposed(shown: View) -> list[Proposal]:
    return SyntaxProposer().propose(shown)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(SOURCES), st.integers(0, 10**6), st.integers(1, 4))
def test_every_proposal_parses_applies_changes_something_and_is_the_same_again(
    source: str, seed: int, budget: int
) -> None:
    first = proposed(view(source, seed, budget=budget))
    assert first == proposed(view(source, seed, budget=budget))
    digests = set()
    for proposal in first:
        revision = apply(Candidate({"program.py": source}), proposal.edits)
        assert revision.complete and revision.changed and 1 <= len(proposal.edits) <= budget
        ast.parse(revision.after["program.py"])
        assert proposal.reason and proposal.source == "syntax"
        digests.add(revision.after.digest)
    assert len(digests) == len(first)
    if len(source) > 100:
        assert len(first) == SyntaxProposer().alternatives


@settings(max_examples=200, deadline=None)
@given(st.text("ab\n ", max_size=30), st.text("ab\n ", max_size=30))
def test_an_edit_between_two_texts_makes_one_of_the_other(old: str, new: str) -> None:
    edit = edit_between(old, new, "notes.md", "test") if old != new else None
    if edit is not None:
        assert old.count(edit.target) == 1
        assert old.replace(edit.target, edit.content) == new


def test_an_edit_touches_the_changed_lines_alone_unless_they_stand_there_twice() -> None:
    assert edit_between("a\nb\nc\nd", "a\nb\nC\nd", "p.py", "") == Edit(Op.REPLACE, "C", "c", "p.py")
    assert edit_between("a\nb\nc\nb\n", "a\nB\nc\nb\n", "p.py", "") == Edit(Op.REPLACE, "a\nB\nc", "a\nb\nc", "p.py")


def test_changes_of_all_kinds_are_found_in_an_ordinary_function() -> None:
    found = {site.kind for site in Program(ODD).sites()}
    assert found == set(KINDS) - {LOOPS}


def test_docstrings_and_imports_stay() -> None:
    for seed in range(10):
        for proposal in proposed(view(ODD, seed)):
            after = apply(Candidate({"program.py": ODD}), proposal.edits).after["program.py"]
            assert after.startswith(ODD[: ODD.index("A, B")])
            assert '):\n    """A docstring that stays."""\n' in after


def test_nothing_is_proposed_where_there_is_no_program_or_nothing_failed() -> None:
    assert proposed(view("Some text.", 0, part="SKILL.md")) == []
    for broken in ("def (", "x = 1\r\n", "x = '\0'", "", "'ä'"):
        assert proposed(view(broken, 0)) == []
    assert SyntaxProposer().propose(View(Candidate({"p.py": ODD}), Stream(0, "x"))) == []


def test_what_was_tried_is_not_proposed_again() -> None:
    first = proposed(view("x = 1\n", 3))
    tried = tuple(
        Tried(p.edits, apply(Candidate({"program.py": "x = 1\n"}), p.edits).after.digest, False) for p in first
    )
    again = proposed(view("x = 1\n", 3, history=tried))
    assert first and not {p.edits for p in first} & {p.edits for p in again}


def test_limits_are_kept() -> None:
    shown = view(ODD, 1)
    tight = View(shown.candidate, Stream(1, "test"), failures=shown.failures, limits=Limits(max_change=12))
    for proposal in SyntaxProposer().propose(tight):
        rows = apply(shown.candidate, proposal.edits, tight.limits).rows
        assert sum(row.chars for row in rows) <= 12


@pytest.mark.parametrize("accepted", ["(0.5, 1.0),", "(0.5, 2.0),"])
def test_numbers_that_paid_off_are_moved_further(accepted: str) -> None:
    edit = Edit(Op.REPLACE, accepted, "(0.25, 1.0),", "p.py")
    assert only_numbers(edit)
    on = further(edit, Stream(0, "x"))
    assert on is not None and on.target == accepted and on.content != accepted
    assert float(on.content.split(",")[0][1:]) > 0.5
    assert further(Edit(Op.REPLACE, "a + b", "a - b", "p.py"), Stream(0, "x")) is None


def test_what_paid_off_is_tried_more_often() -> None:
    number, word = Edit(Op.REPLACE, "x = 2", "x = 1"), Edit(Op.REPLACE, "x = y", "x = 1")
    liked = [Tried((number,), str(n), True) for n in range(10)] + [Tried((word,), f"w{n}", False) for n in range(20)]
    disliked = [Tried((number,), str(n), False) for n in range(20)] + [Tried((word,), f"w{n}", True) for n in range(10)]
    assert habit_of(liked).numbers > habit_of(()).numbers > habit_of(disliked).numbers
    assert habit_of([Tried((number,), str(n), False) for n in range(60)]).boldness < 0


TABLE = """NUMBERS = [(0.1, 0.9), (0.2, 0.8), (0.4, 0.6)]


def place(n, seed):
    return [(x, (x - 0.5) ** 2 + (y - 0.5) ** 2) for x, y in NUMBERS[:n]]
"""


def changed(source: str, kind: str, draws: int = 40) -> list[str]:
    """Programs with one change of a kind, by so many draws."""
    sites = [site for site in Program(source).sites() if site.kind == kind]
    made = [site.make(Stream(number, "draw"), 0.0) for site in sites for number in range(draws)]
    return [change.on(source.encode()).decode() for change in made if change is not None]


def worth(source: str) -> float:
    space: dict[str, Any] = {}
    exec(source, space)
    return float(sum(row[1] for row in space["place"](3, 1)))


def test_a_function_that_reads_a_table_may_search_it_and_some_guess_at_the_aim_is_right() -> None:
    made = changed(TABLE, LOOPS)
    values = [worth(text) for text in made]
    assert min(values) < worth(TABLE) / 100, "less of the second column, which is what it has to be guessed"
    assert max(values) > worth(TABLE) * 2
    for text in made:
        assert rules.complaint(text, "place", "place(n, seed)") is None and worth(text) == worth(text)
        assert "def plain_place(n, seed, NUMBERS):" in text and ast.parse(text)


def test_a_loop_that_is_there_is_drawn_anew_and_not_put_around_itself() -> None:
    looped = changed(TABLE, LOOPS, 1)[0]
    again = changed(looped, LOOPS)
    assert again and all(text.count("def ") == 2 and text.count("def plain_place(") == 1 for text in again)
    guesses = {re.findall("if (.*):", text)[0] for text in again}
    assert len(guesses) >= 4, "both columns, more and less"
    tries = {int(found) for text in again for found in re.findall(r"Random\(\d+\), (\d+)", text)}
    assert len(tries) >= 3 and {site.kind for site in Program(looped).sites()} >= {NUMBERS, CONSTANTS, LOOPS}


@pytest.mark.parametrize(
    "source",
    [
        "T = [0.1, 0.2, 0.3]\n\ndef f(x):\n    return T\n",
        "T = [1, 2, 3, 4, 5]\n\ndef f(x):\n    return T\n",
        "T = [0.1, 0.2, 0.3, 0.4]\n\ndef f(x):\n    return x\n",
        "T = [0.1, 0.2, 0.3, 0.4]\n\ndef f(x=1):\n    return T\n",
        "T = [0.1, 0.2, 0.3, 0.4]\n\ndef f(x, T):\n    return T\n",
        "T = [0.1, 0.2, 0.3, 0.4]\n\ndef f(x):\n    x[0] = T\n",
        "T = [0.1, 0.2, 0.3, 'x']\n\ndef f(x):\n    return T\n",
    ],
)
def test_where_there_is_no_table_of_numbers_to_read_there_is_no_loop(source: str) -> None:
    assert not changed(source, LOOPS)


def test_a_table_may_be_a_plain_list_and_a_result_a_number() -> None:
    source = "T = [0.5, -0.5, 1.5, 2.5]\n\n\ndef f(x):\n    return sum(v * v for v in T)\n"
    space: dict[str, Any] = {}
    found = []
    for text in changed(source, LOOPS):
        exec(text, space)
        found.append(space["f"](0))
    assert min(found) < 1.0 < 9.0 < max(found)


def test_large_whole_numbers_are_changed_in_parts_of_themselves() -> None:
    values = {int(text.split("=")[1]) for text in changed("x = 1000\n", CONSTANTS, 200)}
    assert {999, 1001} <= values and any(1050 < value < 1999 for value in values)
