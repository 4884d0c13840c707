"""A text stands in another one as a word, where the script has words to see."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharpen.tasks.borders import parts_words_by_spaces, stands_in


@pytest.mark.parametrize(
    ("part", "whole"),
    [
        ("東京", "答えは東京です。"),
        ("東京", "JR東京2020"),
        ("NET", "これはNETです"),
        ("5", "5月"),
        ("々", "人々"),
        ("カー", "スーパーカーだ"),
        ("กรุงเทพ", "เมืองกรุงเทพคือ"),
        ("ລາວ", "ປະເທດລາວ"),
        ("ខ្មែរ", "ភាសាខ្មែរ"),
        ("မြန်မာ", "မြန်မာစာ"),
        ("한국", "한국은 크다"),
        ("ένα", "είναι ένα."),
        ("cat", "concatenate a cat"),
    ],
)
def test_found(part: str, whole: str) -> None:
    assert stands_in(part, whole)


@pytest.mark.parametrize(
    ("part", "whole"),
    [
        ("paris", "parisian"),
        ("5", "15月"),
        ("๕", "๑๕ บาท"),
        ("мир", "мирный"),
        ("cat", "concatenate"),
        ("a_b", "a_b_c"),
        ("北京", "東京です"),
        ("", "東京"),
    ],
)
def test_not_found(part: str, whole: str) -> None:
    assert not stands_in(part, whole)


latin = st.text(alphabet="abé1_ .*-", max_size=12)


@given(latin.filter(lambda text: any(map(str.isalnum, text))), latin)
def test_with_spaces_between_words_a_border_is_where_a_letter_meets_something_else(part: str, whole: str) -> None:
    assert stands_in(part, whole) == (re.search(rf"(?<!\w){re.escape(part)}(?!\w)", whole) is not None)


@given(st.text(max_size=8), st.text(min_size=1, max_size=4), st.text(max_size=8))
def test_it_never_finds_what_is_not_there(before: str, part: str, after: str) -> None:
    assert stands_in(part, f"{before} {part} {after}")
    assert not stands_in(part, before) or part in before


def test_digits_of_every_script_have_borders() -> None:
    assert all(map(parts_words_by_spaces, "5٣๕Aжα"))
    assert not any(map(parts_words_by_spaces, "京のノㄅ한กລខမ"))
