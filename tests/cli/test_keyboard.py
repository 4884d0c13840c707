"""Ctrl-C, as a person at a terminal meets it: a real process, a real signal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PROGRAM = [sys.executable, "-c", "from sharpen.cli import main; main()"]
REST = ["--optimizer", "scripted/rules", "--steps", "1", "--limit", "20", "--workers", "4"]
FAST = ["train", "codebook", "--model", "scripted/rules", *REST]
SLOW = ["train", "codebook", "--model", "scripted/rules?latency=0.05", *REST]


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)


def stories(folder: Path) -> list[Path]:
    return list(folder.glob("runs/*/jobs/*/events.jsonl"))


def started(folder: Path) -> subprocess.Popen[str]:
    """A slow training that has told the first event of its story."""
    process = subprocess.Popen([*PROGRAM, *SLOW], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: any(path.stat().st_size for path in stories(folder)))
    return process


def told(path: Path) -> list[Any]:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "clock"} for line in lines]


def test_one_ctrl_c_stops_gently_and_says_how_to_carry_on(tmp_path: Path) -> None:
    process = started(tmp_path)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert "Traceback" not in err
    assert "carry on with: sharpen resume runs/" in err
    command = err.splitlines()[-1].partition("sharpen ")[2].split()
    done = subprocess.run([*PROGRAM, *command, "-q"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    undisturbed = subprocess.run(
        [*PROGRAM, *FAST, "-q", "--runs", "other"], cwd=tmp_path, capture_output=True, text=True
    )
    assert undisturbed.returncode == 0, undisturbed.stderr
    (resumed,), (whole,) = stories(tmp_path), list(tmp_path.glob("other/*/jobs/*/events.jsonl"))
    assert told(resumed) == told(whole)


def test_a_second_ctrl_c_does_not_wait(tmp_path: Path) -> None:
    process = started(tmp_path)
    os.kill(process.pid, signal.SIGINT)
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "carry on with" in err


def test_a_reader_that_goes_away_is_no_accident(tmp_path: Path) -> None:
    shell = f'"{sys.executable}" -c "from sharpen.cli import main; main()" list | head -n 1'
    done = subprocess.run(["bash", "-c", shell], cwd=tmp_path, capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
