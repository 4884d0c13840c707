"""Every promise of SECURITY.md names tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_promise_names_tests_that_are_there() -> None:
    page = (ROOT / "SECURITY.md").read_text()
    named = set(re.findall(r"tests/[\w/]+\.py", page))
    assert len(named) > 15
    assert [path for path in sorted(named) if not (ROOT / path).is_file()] == []
    for promise in re.findall(r"^- \*\*.*?(?=\n- |\n\n)", page, re.MULTILINE | re.DOTALL):
        assert "tests/" in promise, promise


def test_it_can_be_found() -> None:
    assert "(SECURITY.md)" in (ROOT / "README.md").read_text()
    assert "(../SECURITY.md)" in (ROOT / "docs" / "index.md").read_text()
