"""Worked examples survive being written into a document and read back."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sharpen.skill.examples import Example, blocks, parse, spans, write

texts = st.text(alphabet=st.sampled_from("ab: #\n\t\ré—InputOup"), max_size=30)
pairs = st.builds(Example, texts, texts)
prose = st.sampled_from(["", "Do this.", "# Title\n\n- a\n- b", "  indented", "Input: x\nOutput: y", "### Examples"])


@given(st.lists(pairs, max_size=4), prose, prose)
def test_written_examples_are_read_back(examples: list[Example], before: str, after: str):
    text = "\n\n".join([before, *map(write, examples), after])
    assert parse(text).examples == tuple(examples)
    assert blocks(text) == [write(example) for example in examples]


@given(st.lists(pairs, max_size=4), prose, prose)
def test_instructions_are_what_is_left(examples: list[Example], before: str, after: str):
    text = "\n\n".join([before, *map(write, examples), after])
    wanted = "\n\n".join(piece.strip("\n") for piece in (before, after) if piece).strip()
    assert parse(text).instructions == wanted


@given(st.lists(pairs, min_size=1, max_size=4))
def test_spans_are_in_order_and_do_not_meet(examples: list[Example]):
    found = spans("\n\n".join(map(write, examples)))
    assert len(found) == len(examples)
    assert all(end < later for (_, end), (later, _) in pairwise(found))
