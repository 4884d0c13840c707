"""Ctrl-C, SIGTERM and SIGHUP, as a program meets them: a real process, a real signal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_one_signal_stops_gently_and_says_how_to_carry_on(tmp_path: Path, number: signal.Signals) -> None:
    process = started(tmp_path)
    process.send_signal(number)
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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_does_not_wait(tmp_path: Path, number: signal.Signals) -> None:
    """Calls that take an hour would keep a gentle stop waiting."""
    hanging = ["train", "codebook", "--model", "scripted/rules?latency=3600", *REST]
    process = subprocess.Popen([*PROGRAM, *hanging], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    wait_for(lambda: any(path.stat().st_size for path in stories(tmp_path)))
    process.send_signal(number)
    heard = ""
    while "stopping" not in heard:
        heard += process.stderr.readline()
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "carry on with" in err


def test_a_terminal_that_goes_away_stops_the_training_in_order(tmp_path: Path) -> None:
    """The terminal hangs up: SIGHUP arrives, and every write to it fails from then on."""
    terminal, inside = pty.openpty()
    process = subprocess.Popen(
        [*PROGRAM, *SLOW], cwd=tmp_path, stdin=inside, stdout=inside, stderr=inside, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(inside)
    wait_for(lambda: any(path.stat().st_size for path in stories(tmp_path)))
    os.close(terminal)
    assert process.wait(60) == 130, process.returncode
    (log,) = stories(tmp_path)
    before = len(told(log))
    run = str(log.parent.parent.parent)
    done = subprocess.run([*PROGRAM, "resume", run, "-q"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(told(log)) > before


def test_under_nohup_a_hangup_is_ignored(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*PROGRAM, *SLOW, "-q"], cwd=tmp_path, stdout=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )  # fmt: skip
    wait_for(lambda: any(path.stat().st_size for path in stories(tmp_path)))
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=120)
    assert process.returncode == 0


def test_a_process_that_own_code_forks_and_terminates_does_not_stop_the_training(tmp_path: Path) -> None:
    """The pipe by which a signal reaches the event loop is the parent's too."""
    (tmp_path / "own.py").write_text(
        "import multiprocessing, time\n"
        "def metric(answer, item):\n"
        "    child = multiprocessing.get_context('fork').Process(target=time.sleep, args=(60,))\n"
        "    child.start(); child.terminate(); child.join()\n"
        "    return float(child.exitcode == -15)\n"
    )
    rows = "".join(json.dumps({"input": f"q{n}", "answer": f"a{n}"}) + "\n" for n in range(9))
    (tmp_path / "rows.jsonl").write_text(rows)
    words = ["train", "rows.jsonl", "--ratio", "1:1:1", "--metric", "own.py:metric", "--model", "scripted/rules"]
    done = subprocess.run(
        [*PROGRAM, *words, "--trainer", "noop", "--json"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["test"]["initial"]["mean"] == 1.0, done.stdout


def test_a_reader_that_goes_away_is_no_accident(tmp_path: Path) -> None:
    shell = f'"{sys.executable}" -c "from sharpen.cli import main; main()" list | head -n 1'
    done = subprocess.run(["bash", "-c", shell], cwd=tmp_path, capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
