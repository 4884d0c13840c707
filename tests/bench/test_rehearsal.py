"""What a nursery goes through before its first job: it works, leaves nothing behind, and leaves nothing to be done once."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from sharpen.bench.job_process import DONE
from sharpen.bench.rehearsal import rehearse

_A_JOB_AFTERWARDS = """
import sys
from pathlib import Path
from sharpen.bench import nursery, rehearsal
from sharpen.bench.config import RunConfig
from sharpen.bench.job_process import carry_out

nursery._warm_up([])
rehearsal.rehearse()
before = set(sys.modules)
home = Path(sys.argv[1])
settings = {"task": {"name": "codebook", "limit": 5}, "trainer": {"name": "noop"}, "models": {"target": "scripted/rules"}}
code = carry_out(home, rehearsal._laid_out(RunConfig.model_validate(settings), home))
print(code, sorted(set(sys.modules) - before))
"""


def test_it_carries_its_jobs_out_and_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)]
    threads = threading.active_count()
    assert rehearse() == [DONE] * 4
    assert list(tmp_path.iterdir()) == []
    assert threading.active_count() == threads  # a process with threads can't be forked safely
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)] == handlers


def test_a_machine_without_room_for_it_does_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "not there"))
    assert rehearse() == []


def test_a_job_that_comes_after_it_has_nothing_left_to_import(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _A_JOB_AFTERWARDS, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "0 []"
