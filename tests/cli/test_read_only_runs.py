"""Commands that only look, on a run that can't be written to: as on any other, and nothing is left anywhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = [sys.executable, "-c", "from sharpen.cli import main; main()"]
WORDS = "train codebook --model scripted/rules --optimizer scripted/rules --steps 1 --limit 12 --workers 4 -q"
TRAIN = list(WORDS.split(" "))
LOOKING = """
mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" || exit 99
shift; failed=0
for words in "$@"; do
  "$PYTHON" -c 'from sharpen.cli import main; main()' $words > out.txt 2> err.txt
  code=$?
  if [ $code -ne 0 ]; then echo "$words: $code"; tail -n 3 err.txt; failed=1; fi
done
exit $failed
"""
COMMANDS = (
    "report latest",
    "report latest --json",
    "report latest --html page.html",
    "status",
    "status latest",
    "resume latest --verify",
    "export latest --as compat --to classic",
    "export latest --to skill",
    "explain latest",
    "replay latest --gate strict",
    "watch latest --no-follow",
)


def test_commands_that_only_look_work_on_a_read_only_run(tmp_path: Path) -> None:
    probe = ["unshare", "--map-root-user", "--mount", "true"]
    if subprocess.run(probe, capture_output=True).returncode != 0:
        pytest.skip("this system allows no mounts of one's own")
    done = subprocess.run([*PROGRAM, *TRAIN], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    leave_a_log(run / "ledger.db")
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    words = ["unshare", "--map-root-user", "--mount", "sh", "-c", LOOKING, "sh", str(tmp_path / "runs"), *COMMANDS]
    environment = {"PYTHON": sys.executable, "PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "TMPDIR": str(tmp_path / "tmp")}
    (tmp_path / "tmp").mkdir()
    looked = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert looked.returncode == 0, looked.stdout + looked.stderr
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
    assert not list((tmp_path / "tmp").iterdir())


def leave_a_log(ledger: Path) -> None:
    """What a killed process leaves: rows in the write-ahead log, and no index of it."""
    script = (
        "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "c.execute('PRAGMA journal_mode=WAL');"
        "c.execute(\"INSERT INTO about VALUES('left', 'behind')\"); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", script, str(ledger)], check=False)
    ledger.with_name(ledger.name + "-shm").unlink()
    assert ledger.with_name(ledger.name + "-wal").stat().st_size > 0
