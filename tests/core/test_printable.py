"""Foreign text made safe to show."""

from __future__ import annotations

import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from sharpen.core.printable import csv_cells, printable, printable_json

_DIRECTIONS = [chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x061C, 0x200E, 0x200F)]


@given(st.text())
def test_nothing_that_a_terminal_obeys_is_left_and_every_character_keeps_its_place(text: str) -> None:
    clean = printable(text)
    assert len(clean) == len(text)
    assert not any(unicodedata.category(character) == "Cc" for character in clean.replace("\n", "").replace("\t", ""))
    assert not any(direction in clean for direction in _DIRECTIONS)
    assert printable(clean) == clean


@given(st.text(st.characters(codec="utf-8")))
def test_json_keeps_the_value_whole_and_shows_no_control_character(text: str) -> None:
    line = printable_json({text: [text]})
    assert json.loads(line) == {text: [text]}
    assert printable(line) == line
    assert "\n" not in line


def test_a_sign_tells_what_was_there() -> None:
    assert printable("a\x1b[31mb\rc\x07") == "a␛[31mb␍c␇"
    assert printable("\x9b31m \u202e \u200b \U000e0041") == "\ufffd31m \ufffd \ufffd \ufffd"


def test_what_other_scripts_are_written_with_stays() -> None:
    for text in ("नमस्ते क्\u200dष", "می\u200cخواهم", "👩\u200d🔬 ❤\ufe0f", "naïve – “quoted” 日本語", "one\n\ttwo"):
        assert printable(text) == text


def test_a_joiner_that_only_hides_is_shown() -> None:
    assert printable("pass\u200dword\u200d\u200d") == "pass\ufffdword\ufffd\ufffd"


def test_no_text_of_a_table_is_a_formula_and_no_number_changes() -> None:
    row = {"arm": "=cmd|'/c calc'!A0", "sum": "+1+1", "at": "@SUM(A1)", "tab": " \t-2+3", "wide": "＝1", "effect": -0.5}
    texts = {"number": "-0.5", "name": "a=b", "step": None}
    assert csv_cells({**row, **texts}) == {
        "arm": "'=cmd|'/c calc'!A0", "sum": "'+1+1", "at": "'@SUM(A1)", "tab": "' \t-2+3", "wide": "'＝1", "effect": -0.5,
        **texts,
    }  # fmt: skip
