"""A disk that fills up while large answers are under way: what is stored, and what the message says of the rest."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

JOB = """
import asyncio, json, sqlite3, sys
from pathlib import Path
from measuring import A, Length, HASTY
from sharpen.core.chat import Reply
from sharpen.core.errors import StorageError
from sharpen.core.item import Item
from sharpen.core.task import Splits
from sharpen.core.usage import Usage
from sharpen.models.scripted import ScriptedModel
from sharpen.testing.jobs import make_setup, running_job

class Large(Length):
    def splits(self):
        return Splits(*(tuple(Item(f"{s}-{n}", {"input": f"{s} {n}"}, 0) for n in range(300)) for s in "abc"))

class Long(ScriptedModel):
    calls = 0
    async def complete(self, request):
        self.calls += 1
        await asyncio.sleep(0.02)
        return Reply("x" * 300_000, Usage(1, 3, 0, 5, 0.0))

async def main():
    model = Long("scripted/long", lambda request: "")
    error = ""
    try:
        async with running_job(make_setup(Large(), {"target": model}), Path(sys.argv[1]), retry=HASTY, workers=64) as job:
            await job.evaluate(A, job.splits.val, purpose="gate")
    except StorageError as raised:
        error = str(raised)
    rows = sqlite3.connect(Path(sys.argv[1]) / "ledger.db").execute("SELECT count(*) FROM replies").fetchone()[0]
    print(json.dumps({"paid": model.calls, "stored": rows, "error": error}))

asyncio.run(main())
"""


def run_on_a_small_disk(folder: Path, megabytes: int) -> dict[str, object]:
    mounted = folder / "disk"
    mounted.mkdir()
    (folder / "job.py").write_text(JOB)
    script = 'mount -t tmpfs -o size=$1 none "$2" && exec "$3" "$4" "$2"'
    words = ["unshare", "--map-root-user", "--mount", "sh", "-c", script, "sh", f"{megabytes}m", str(mounted)]
    path = {"PYTHONPATH": str(Path(__file__).parent), "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}
    done = subprocess.run(
        [*words, sys.executable, str(folder / "job.py")], env=path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    ended: dict[str, object] = json.loads(done.stdout)
    return ended


def mounts_are_allowed() -> bool:
    probe = ["unshare", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"]
    return shutil.which("unshare") is not None and subprocess.run(probe, capture_output=True).returncode == 0


@pytest.mark.skipif(not mounts_are_allowed(), reason="this system allows no mounts of one's own")
@pytest.mark.parametrize("megabytes", [4, 16, 64])
def test_what_is_paid_is_stored_or_said_to_be_lost(tmp_path: Path, megabytes: int) -> None:
    """The first answers of 64 calls at once take some 60 MB with the rollouts that quote them, on disks of 4 to 64 MB."""
    ended = run_on_a_small_disk(tmp_path, megabytes)
    lost = re.search(r"no room for (\d+) replies", str(ended["error"]))
    said = int(lost[1]) if lost else 0
    assert "Make room on the disk, then resume" in str(ended["error"])
    assert ended["paid"] == int(str(ended["stored"])) + said, ended


@pytest.mark.skipif(not mounts_are_allowed(), reason="this system allows no mounts of one's own")
def test_once_the_size_of_answers_is_known_nothing_is_paid_for_that_has_no_room(tmp_path: Path) -> None:
    ended = run_on_a_small_disk(tmp_path, 160)
    assert "lost" not in str(ended["error"])
    assert ended["paid"] == ended["stored"] and int(str(ended["paid"])) >= 64, ended
