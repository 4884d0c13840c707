"""The page on skill documents tells the truth: its example runs, and it names every operation and status."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sharpen.skill.edits import Op, Status
from sharpen.trainers.reflact.proposers import NAMES

PAGE = (Path(__file__).parents[2] / "docs" / "skills.md").read_text()


def test_the_example_prints_what_the_page_says(capsys: pytest.CaptureFixture[str]):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(code, {})
    printed = capsys.readouterr().out
    assert "Write the number in digits.\n\n- Answer with digits only.\n" in printed
    assert "['applied', 'not_found']" in printed


def test_every_operation_status_and_proposer_is_on_the_page():
    missing = [name for name in (*Op, *Status, *NAMES) if f"`{name}`" not in PAGE]
    assert missing == []
