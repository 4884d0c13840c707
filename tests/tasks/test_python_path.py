"""Own code by its path: it runs as it stands in its file."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from sharpen.core.errors import UsageError
from sharpen.tasks.python_path import find


def test_a_change_in_the_same_second_and_of_the_same_size_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    file, second = tmp_path / "own.py", 1_700_000_000
    found = []
    for value in (1, 2):
        file.write_text(f"value = {value}\n")
        os.utime(file, (second, second))
        found.append(find(f"{file}:value", "metric"))
    assert [one.value for one in found] == [1, 2]
    assert found[0].source != found[1].source
    assert [path.name for path in tmp_path.iterdir()] == ["own.py"]


def test_a_file_that_is_no_python_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text("value = 1\nvalue = = 2\n")
    with pytest.raises(UsageError, match=r"own\.py, line 2"):
        find(f"{file}:value", "metric")
