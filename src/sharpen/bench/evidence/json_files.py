"""Reading a JSON file that somebody else wrote: whole, or with a complaint that says what is wrong with it and where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sharpen.core.errors import UsageError

LARGEST = 256 << 20
"""Bytes of one file, or of one part of a compressed one."""


def load(path: Path) -> Any:
    """What a file holds. NaN and infinite numbers, which JSON has no word for, are read as Python writes them."""
    if path.stat().st_size > LARGEST:
        raise UsageError(f"{path} has more than {LARGEST >> 20:,} MiB; a comparison reads no larger file at once")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}") from error
    if not text.strip():
        raise UsageError(f"{path} is empty")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        cut = "is cut short" if error.pos >= len(text.rstrip()) or "Unterminated" in error.msg else "is no JSON"
        raise UsageError(f"{path} {cut}: {error.msg} in line {error.lineno}, column {error.colno}") from error
    except RecursionError:
        raise UsageError(f"{path} is nested too deeply") from None
