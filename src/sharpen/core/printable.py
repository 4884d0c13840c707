"""Foreign text made safe to show: a model's answer, a row of data, a label, a file's name, the body of an error.

A terminal obeys control characters: they set its title, move its cursor over what was printed, write to the clipboard, turn
text around. `printable` puts a visible sign in the place of each, one character for one, so that widths and positions stay.
New lines and tabs stay as they are. `printable_json` keeps the value whole: JSON has an escape for every character.

A spreadsheet obeys texts that begin like a formula: `csv_cells` puts an apostrophe before them, as they do themselves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_UNKNOWN = "\N{REPLACEMENT CHARACTER}"
_CONTROLS = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"} | {
    0x7F: "\N{SYMBOL FOR DELETE}"
}
_HIDDEN = (
    "\x80-\x9f"  # C1: the same commands as after an escape character, in one character
    "\u00ad\u180e\u200b\u2060-\u2064\ufeff"  # soft hyphen, and spaces of no width
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f"  # they change the direction of what follows
    "\u2028\u2029\ufff9-\ufffb"  # other line ends, annotations
    "\U000e0000-\U000e007f"  # tags: a second text that nobody sees
)
_JOINERS = f"(?<![^\x00-\x7f\ufffd\u200c\u200d{_HIDDEN}])[\u200c\u200d]"
"""They join letters of many scripts, and the parts of an emoji. After anything else they only hide."""
_SUSPECT = re.compile(f"[\x00-\x08\x0b-\x1f\x7f{_HIDDEN}]|{_JOINERS}")
_IN_JSON = re.compile(f"[\x7f{_HIDDEN}]|[\u200c\u200d]")


def printable(text: str) -> str:
    """`text` with a visible sign for each character that a terminal would obey or hide. Doing it twice changes nothing."""
    return _SUSPECT.sub(_sign, text)


def printable_json(value: Any, *, allow_nan: bool = True) -> str:
    """`value` as one line of JSON that a terminal can show; reading it back gives the same value."""
    line = json.dumps(value, ensure_ascii=False, allow_nan=allow_nan)
    return _IN_JSON.sub(_escape, line)


def csv_cells(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a CSV file whose texts are printable and no formulas. Numbers, also as texts, stay as they are."""
    return {name: _cell(value) if isinstance(value, str) else value for name, value in row.items()}


def _cell(text: str) -> str:
    text = printable(text)
    return f"'{text}" if text.lstrip()[:1] in tuple("=+-@＝＋－＠") and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _sign(match: re.Match[str]) -> str:
    return _CONTROLS.get(ord(match[0]), _UNKNOWN)


def _escape(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1] if match[0] != "\x7f" else "\\u007f"
