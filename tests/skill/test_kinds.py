"""Parts that are code, data or numbers stay what they are."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharpen.core.candidate import Candidate
from sharpen.core.rng import Stream
from sharpen.skill.edits import Edit, Op, Status, apply
from sharpen.skill.kinds import Number, number, problem
from sharpen.tasks.codebook import Codebook
from sharpen.trainers.reflact.proposers import get
from sharpen.trainers.reflact.proposers.base import Attempted, View


@pytest.mark.parametrize(
    ("part", "good", "bad"),
    [
        ("rule.py", "x = 1\n", "x = = 1\n"),
        ("table.json", '{"a": 1}', "{'a': 1}"),
        ("k.number", "3  # 1 to 9", "three"),
        ("k.number", "3", "12  # 1 to 9"),
    ],
)
def test_what_a_part_must_be_follows_from_its_name(part: str, good: str, bad: str) -> None:
    assert problem(part, good) is None
    assert part in (problem(part, bad) or "")
    assert problem("notes.md", bad) is None


def test_an_edit_that_breaks_a_program_is_refused_and_one_that_mends_it_is_not() -> None:
    whole = Candidate({"SKILL.md": "x", "rule.py": "def f():\n    return 1\n"})
    broken = apply(whole, [Edit(Op.REPLACE, "retrun", "return", "rule.py")])
    assert broken.rows[0].status is Status.BREAKS_PART and not broken.changed
    assert "line 2" in broken.rows[0].message
    lame = Candidate({"SKILL.md": "x", "rule.py": "def f(:\n    return 1\n"})
    assert apply(lame, [Edit(Op.REPLACE, "f():", "f(:", "rule.py")]).complete


@given(st.floats(0, 100), st.floats(-1e6, 1e6), st.booleans())
def test_a_number_stays_in_its_range_and_reads_back(value: float, wished: float, whole: bool) -> None:
    start = Number(float(round(value)) if whole else value, 0.0, 100.0, whole)
    moved = start.with_value(wished)
    assert 0.0 <= moved.value <= 100.0
    back = number(moved.text())
    assert (back.value, back.low, back.high) == (moved.value, 0.0, 100.0)


def test_a_number_without_a_range_is_unbounded() -> None:
    found = number("-2.5e3\n")
    assert (found.value, found.low, found.high, found.whole) == (-2500.0, -math.inf, math.inf, False)


def test_the_proposer_moves_numbers_both_ways_and_repeats_nothing() -> None:
    item = Codebook().splits().train[0]
    candidate = Candidate({"SKILL.md": "x", "k.number": "50  # 0 to 100\n"})
    view = View(candidate, Stream(0, "test"), failures=(Attempted(item, None, "", 0.0, 0.0),))
    made = [apply(candidate, p.edits).after for p in get("numbers").propose(view)]
    values = [number(one["k.number"]).value for one in made]
    assert len(set(values)) == len(values) == 4 and all(0 <= value <= 100 for value in values)
    assert get("numbers").propose(View(Candidate("no numbers"), Stream(0), failures=view.failures)) == []
