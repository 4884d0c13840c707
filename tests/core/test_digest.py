"""Content identity: one text form per JSON value, and what has the same content has the same digest."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharpen.core.digest import canonical, digest

KNOWN = "91ff63a7ddb19a1b9c7a2e722d40ba9baba03223f291c89743abfd71bb743cb5"

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_the_canonical_form_reads_back_as_the_same_value(value: object) -> None:
    assert json.loads(canonical(value)) == value
    assert canonical(json.loads(canonical(value))) == canonical(value)


@given(st.dictionaries(st.text(), values, max_size=6))
def test_the_order_of_keys_does_not_matter(value: dict[str, object]) -> None:
    assert digest(dict(reversed(value.items()))) == digest(value)


@given(values, values)
def test_different_values_have_different_digests(one: object, other: object) -> None:
    assert (digest(one) == digest(other)) == (canonical(one) == canonical(other))


@pytest.mark.parametrize(
    "one,other", [(1, True), (0, False), (1, 1.0), ("1", 1), (None, "null"), ([], {}), ("\u00e9", "e\u0301")]
)
def test_lookalikes_are_told_apart(one: object, other: object) -> None:
    assert digest(one) != digest(other)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_json_cannot_say_is_refused(number: float) -> None:
    with pytest.raises(ValueError):
        digest([number])


def test_text_outside_ascii_stays_as_it_is() -> None:
    assert canonical({"ß": "日本 🎈"}) == '{"ß":"日本 🎈"}'


def test_half_a_surrogate_pair_has_a_digest_of_its_own() -> None:
    assert len({digest("\ud83d"), digest("\ude00"), digest("\ufffd"), digest("?")}) == 4


def test_a_known_digest_stays_what_it_is() -> None:
    """Ledgers on disk are found by these."""
    assert digest({"b": [1, 2.5, None], "a": "ü"}) == KNOWN
