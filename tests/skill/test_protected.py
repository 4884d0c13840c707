"""Protected regions survive byte for byte, whatever is written into them or around them."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sharpen.skill.document import has_marker, regions
from sharpen.skill.protected import APPENDIX, SLOW_UPDATE, content_of, masked, restored, with_content, without_markers

SLOW = "<!-- SLOW_UPDATE_START -->\nLook twice.\n<!-- SLOW_UPDATE_END -->"
NOTES = "<!-- APPENDIX_START -->\n- a note, [[PROTECTED 1]] in it\n<!-- APPENDIX_END -->"
OWN = "<!-- PROTECTED:law START --> the law <!-- PROTECTED:law END -->"
DOCUMENT_PIECES = ["# Title", "- a rule", "", "Some text.", "```\ncode\n```", "[[PROTECTED 7]]", "  spaces  "]
MODEL_PIECES = [
    *DOCUMENT_PIECES,
    *("[[PROTECTED 1]]", "[[PROTECTED 2]]", "[[PROTECTED 3]]", "[[PROTECTED 0]]", "[[PROTECTED"),
    *("<!-- SLOW_UPDATE_START -->", "<!-- SLOW_UPDATE_END -->", "<!-- APPENDIX_END -->", "<!-- X_START -->"),
    *("<!-- PROTECTED:law START -->", "<!-- A_<!-- B_END -->START -->", "<!-- SLOW_UPDATE_", "START -->", "END -->"),
]


@st.composite
def documents(draw: st.DrawFn) -> str:
    """A document with some of three regions, each at most once, anywhere."""
    blocks = draw(st.lists(st.sampled_from([SLOW, NOTES, OWN]), unique=True))
    pieces = [*draw(st.lists(st.sampled_from(DOCUMENT_PIECES), max_size=5)), *blocks]
    return draw(st.sampled_from(["\n", "\n\n", " "])).join(draw(st.permutations(pieces)))


written = st.one_of(
    st.lists(st.one_of(st.sampled_from(MODEL_PIECES), st.text(max_size=8)), max_size=10).flatmap(
        lambda pieces: st.sampled_from([" ", "\n", "\n\n"]).map(lambda between: between.join(pieces))
    ),
    st.text(max_size=40),
)


def guarded(text: str) -> dict[str, str]:
    return {region.name: text[region.start : region.end] for region in regions(text)}


@settings(max_examples=200, deadline=None)
@given(documents(), written, st.sampled_from([SLOW_UPDATE, APPENDIX, "OTHER"]))
def test_a_region_holds_what_was_written_and_all_others_stay(text: str, content: str, name: str) -> None:
    after = with_content(text, name, content)
    clean = without_markers(content).strip()
    assert content_of(after, name) == clean
    assert (name in guarded(after)) == bool(clean)
    assert {k: v for k, v in guarded(after).items() if k != name} == {
        k: v for k, v in guarded(text).items() if k != name
    }
    assert with_content(after, name, content) == after


@settings(max_examples=200, deadline=None)
@given(documents(), st.sampled_from([SLOW_UPDATE, APPENDIX]), st.sampled_from(["- x", "two\n\nlines"]))
def test_writing_a_region_leaves_the_lines_around_it_alone(text: str, name: str, content: str) -> None:
    def outside(document: str) -> list[str]:
        for block in guarded(document).values():
            document = document.replace(block, "\n")
        return [line.rstrip() for line in document.splitlines() if line.strip()]

    assert outside(with_content(text, name, content)) == outside(text)


@given(written)
def test_text_without_markers_has_none(text: str) -> None:
    assert not has_marker(without_markers(text))


@settings(max_examples=250, deadline=None)
@given(documents(), written)
@example(f"a\n{SLOW}\nb\n{NOTES}\n", "[[PROTECTED 2]] [[PROTECTED 2]] [[PROTECTED 9]] text")
def test_whatever_a_model_writes_every_region_survives_once_and_no_other_arises(text: str, rewritten: str) -> None:
    after = restored(rewritten, text)
    assert sorted(text[r.start : r.end] for r in regions(text)) == sorted(
        after[r.start : r.end] for r in regions(after)
    )


@pytest.mark.parametrize(
    "rewritten",
    [
        "<!-- X_[[PROTECTED 9]]START -->",
        "<!-- X_[[PROTECTED 9]]START --> mine <!-- X_[[PROTECTED 9]]END -->",
        f"[[PROTECTED {'9' * 5000}]]",
    ],
    ids=["half a region", "a region", "a number without end"],
)
def test_no_marker_arises_where_a_surplus_sign_is_taken_out(rewritten: str) -> None:
    after = restored(rewritten, SLOW)
    assert [after[r.start : r.end] for r in regions(after)] == [SLOW]


@settings(max_examples=200, deadline=None)
@given(documents())
def test_a_document_that_is_handed_back_as_shown_stays_as_it_was(text: str) -> None:
    if not re.search(r"\[\[PROTECTED \d\]\]", re.sub(re.escape(NOTES), "", text)):
        assert restored(masked(text), text).strip("\n") == text.strip("\n")


@given(documents())
def test_the_model_is_shown_nothing_of_a_region(text: str) -> None:
    shown = masked(text)
    assert not has_marker(shown) and "Look twice" not in shown and "the law" not in shown
    assert shown.count("[[PROTECTED 1]]") == bool(regions(text))


@pytest.mark.parametrize("rewritten", ["New text.", "", "[[PROTECTED 1]]"])
def test_a_region_without_its_sign_goes_to_the_end(rewritten: str) -> None:
    after = restored(rewritten, f"Old text.\n\n{SLOW}\n\nMore.\n\n{NOTES}\n")
    assert after.endswith(f"{NOTES}\n") and after.index(SLOW) < after.index(NOTES)
