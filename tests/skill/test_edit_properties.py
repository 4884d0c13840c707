"""What holds for any document and any edits."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sharpen.core.candidate import Candidate
from sharpen.skill import examples
from sharpen.skill.document import regions
from sharpen.skill.edits import NO_LIMITS, Edit, Limits, Op, Status, apply, without

PIECES = [
    "# Title",
    "## Rules",
    "- a rule",
    "- b",
    "Some text.",
    "b",
    "### Example\nInput: a\nOutput: b",
    "### Example\nInput: b\n  c\nOutput: d\n  ",
    "<!-- PROTECTED:x START -->\nb\n- a\n<!-- PROTECTED:x END -->",
    "<!-- SLOW_UPDATE_START --><!-- SLOW_UPDATE_END -->",
    "  indented",
    "<!-- PROTECTED:y ST",
    "ART -->",
]
separators = st.sampled_from(["\n", "\n\n", "\n\n\n\n", " "])
SAFE = [piece for piece in PIECES if piece not in ("<!-- PROTECTED:y ST", "ART -->")]


@st.composite
def documents(draw: st.DrawFn) -> str:
    pieces = draw(st.lists(st.sampled_from(SAFE), max_size=7))
    text = "".join(piece + draw(separators) for piece in pieces)
    return draw(st.sampled_from([text, text.rstrip(), "\n" + text]))


@st.composite
def revisions(draw: st.DrawFn) -> tuple[str, list[Edit]]:
    text = draw(documents())
    edits = []
    for _ in range(draw(st.integers(0, 5))):
        start = draw(st.integers(0, len(text)))
        cut = text[start : draw(st.integers(start, min(len(text), start + 60)))]
        target = draw(st.sampled_from([cut, draw(st.sampled_from(PIECES)), "", "\n"]))
        content = draw(st.sampled_from(["", "x", "\n- new\n\n", *PIECES]))
        part = draw(st.sampled_from([None, None, None, "SKILL.md", "other.md"]))
        edits.append(Edit(draw(st.sampled_from(Op)), content, target, part))
    return text, edits


def guarded(text: str) -> list[str]:
    return [text[region.start : region.end] for region in regions(text)]


@settings(max_examples=400, deadline=None)
@given(revisions())
def test_protected_text_survives_byte_for_byte(case: tuple[str, list[Edit]]):
    text, edits = case
    assert guarded(apply(Candidate(text), edits, NO_LIMITS).after.text) == guarded(text)


@settings(max_examples=200, deadline=None)
@given(revisions())
def test_one_row_per_edit_and_refused_edits_change_nothing(case: tuple[str, list[Edit]]):
    text, edits = case
    revision = apply(Candidate(text), edits)
    assert [row.index for row in revision.rows] == list(range(len(edits)))
    assert [row.op for row in revision.rows] == [edit.op for edit in edits]
    kept = [edits[index] for index in revision.applied]
    again = apply(Candidate(text), kept)
    assert again.complete and again.after == revision.after
    assert all((row.chars > 0) == (row.status is Status.APPLIED) for row in revision.rows)


@settings(max_examples=200, deadline=None)
@given(revisions(), st.integers(0, 80), st.integers(0, 60), st.integers(0, 3))
def test_no_cap_is_ever_passed(case: tuple[str, list[Edit]], length: int, change: int, number: int):
    text, edits = case
    revision = apply(Candidate(text), edits, Limits(length, change, max_edits=number))
    assert revision.after.length <= max(length, len(text))
    assert sum(row.chars for row in revision.rows) <= change
    assert len(revision.applied) <= number


@given(documents())
def test_applying_nothing_is_the_identity(text: str):
    revision = apply(Candidate(text), [])
    assert revision.after.text == text and not revision.changed and revision.complete


@settings(max_examples=200, deadline=None)
@given(documents(), st.sampled_from(["quz", "- new", "## New", "### Example\nInput: q\nOutput: r"]), st.data())
def test_an_insertion_adds_its_content_and_only_moves_newlines(text: str, content: str, data: st.DataObject):
    lines = [line for line in text.split("\n") if line.strip()]
    op = data.draw(st.sampled_from([Op.APPEND, Op.INSERT_AFTER, Op.INSERT_BEFORE]))
    target = data.draw(st.sampled_from(lines or ["none"]))
    revision = apply(Candidate(text), [Edit(op, content, target)], NO_LIMITS)
    if not revision.changed:
        return
    after = revision.after.text
    assert f"\n{content}\n" in f"\n{after}\n"
    assert after.replace(content, "", 1).replace("\n", "") == text.replace("\n", "")
    start = f"\n{after}\n".index(f"\n{content}\n")
    around = f"\n{after}"[: start + 1], f"{after}\n"[start + len(content) :]
    assert not around[0].endswith("\n\n\n") and not around[1].startswith("\n\n\n")


@settings(max_examples=200, deadline=None)
@given(revisions())
def test_examples_an_edit_leaves_out_stay_readable(case: tuple[str, list[Edit]]):
    text, edits = case
    inserts = [edit for edit in edits if edit.op not in (Op.DELETE, Op.REPLACE)]
    before = examples.parse(text).examples
    after = examples.parse(apply(Candidate(text), inserts, NO_LIMITS).after.text).examples
    remaining = iter(after)
    assert all(example in remaining for example in before)


@settings(max_examples=100, deadline=None)
@given(revisions(), st.integers(0, 4))
def test_leaving_out_a_refused_edit_makes_no_difference(case: tuple[str, list[Edit]], index: int):
    text, edits = case
    revision = apply(Candidate(text), edits)
    if index < len(edits) and index not in revision.applied:
        assert without(Candidate(text), edits, index).after == revision.after
