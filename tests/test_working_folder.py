"""Processes that sharpen starts for itself import nothing from the folder it was called in, which may be somebody else's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

STARTS = {
    "the launcher of sandboxes": "from sharpen.sandbox import missing; assert missing() is None, missing()",
    "the process that jobs are forked from": """
import asyncio
from sharpen.bench.processes import nursery
async def main():
    async with nursery():
        pass
asyncio.run(main())
""",
}


@pytest.mark.parametrize("name", STARTS)
def test_a_module_in_the_working_folder_is_not_imported(name: str, tmp_path: Path) -> None:
    for module in ("json", "socket", "select", "sharpen", "resource"):
        (tmp_path / f"{module}.py").write_text(
            "open('imported', 'w').close()\nraise ImportError('from the working folder')\n"
        )
    done = subprocess.run(
        [sys.executable, "-P", "-c", STARTS[name]],
        cwd=tmp_path,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "imported").exists()
