"""JSON as it stands in files: the same value read back, secrets gone, long things indented."""

from __future__ import annotations

import json
from types import MappingProxyType

from hypothesis import given
from hypothesis import strategies as st

from sharpen.files import json_text

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


@given(VALUES)
def test_what_is_written_reads_back_the_same(value: object) -> None:
    assert json.loads(json_text({"it": value}))["it"] == value


def test_long_values_are_indented_and_short_ones_stay_on_a_line() -> None:
    rows = [{"step": number, "score": 0.5, "texts": ["a" * 30]} for number in range(3)]
    assert json_text({"rows": rows, "few": [1, 2]}) == (
        '{\n  "rows": [\n'
        + ",\n".join(f"    {json.dumps(row)}" for row in rows)
        + '\n  ],\n  "few": [1, 2]\n}\n'
    )  # fmt: skip


def test_secrets_are_blanked_and_mappings_of_all_kinds_are_written() -> None:
    told = json.loads(json_text(MappingProxyType({"api_key": "sk-abcdefghijklmnop", 3: ("x",), "tokens": 7})))
    assert told == {"api_key": "[redacted]", "3": ["x"], "tokens": 7}
