"""Candidates: immutable, and the same exactly when their texts are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharpen.core.candidate import Candidate

parts = st.dictionaries(st.text(min_size=1, max_size=6), st.text(max_size=20), min_size=1, max_size=4)


def test_a_plain_text_is_the_main_part() -> None:
    candidate = Candidate("Be brief.")
    assert dict(candidate.parts) == {"SKILL.md": "Be brief."}
    assert (candidate.main, candidate.text, candidate.length) == ("SKILL.md", "Be brief.", 9)


def test_nothing_about_a_candidate_can_be_changed() -> None:
    given_parts = {"SKILL.md": "a"}
    candidate = Candidate(given_parts)
    before = candidate.digest
    given_parts["SKILL.md"] = "b"
    assert candidate["SKILL.md"] == "a" and candidate.digest == before
    with pytest.raises(TypeError):
        candidate.parts["SKILL.md"] = "b"  # type: ignore[index]
    with pytest.raises(AttributeError):
        candidate.digest = "x"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        candidate.note = "x"  # type: ignore[attr-defined]


def test_with_part_leaves_the_original_alone() -> None:
    first = Candidate({"SKILL.md": "a", "notes.md": "n"})
    second = first.with_part("notes.md", "m")
    assert (first["notes.md"], second["notes.md"], second["SKILL.md"]) == ("n", "m", "a")
    assert first != second and second.with_part("notes.md", "n") == first


@given(parts, parts)
def test_equal_means_equal_texts(one: dict[str, str], other: dict[str, str]) -> None:
    assert (Candidate(one) == Candidate(other)) == (one == other)
    assert (Candidate(one).digest == Candidate(other).digest) == (one == other)


@given(parts)
def test_equal_candidates_have_the_same_main_part(texts: dict[str, str]) -> None:
    """They share their rollouts in the ledger, so they must look the same to whoever renders them."""
    one, other = Candidate(texts), Candidate(dict(reversed(texts.items())))
    assert one == other and hash(one) == hash(other)
    assert (one.main, one.text, list(one)) == (other.main, other.text, list(other))


def test_a_candidate_without_parts_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one part"):
        Candidate({})


def test_it_is_not_equal_to_its_text() -> None:
    assert Candidate("a") != "a"
