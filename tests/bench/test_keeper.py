"""Keepers: one job after another, and nothing of a job is left when its end is told."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sharpen.bench import keeper
from sharpen.testing.processes import end_of, start_child

Job = Callable[[dict[str, Any], int], int]


@pytest.fixture(params=[True, False], ids=["namespace", "adopting"])
def kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Job], socket.socket]]:
    """Starts a keeper whose jobs do what is given, and hands out the line to it."""
    if not request.param:
        monkeypatch.setattr(keeper, "_new_pid_namespace", lambda: False)
    started: list[tuple[socket.socket, int]] = []

    def start(job: Job) -> socket.socket:
        monkeypatch.setattr(keeper, "_carry_out", job)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

        def serve() -> None:
            ours.close()
            keeper.serve(theirs)

        started.append((ours, start_child(serve)))
        theirs.close()
        ours.settimeout(10)
        return ours

    yield start
    for line, process in started:
        line.close()
        assert end_of(process) == 0


def begin(line: socket.socket, key: str) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    socket.send_fds(line, [json.dumps({"start": key}).encode()], [null])
    os.close(null)


def told(line: socket.socket) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(line.recv(keeper.PACKET))
    return found


def is_still(path: Path) -> bool:
    before = path.stat().st_mtime_ns
    time.sleep(0.15)
    return path.stat().st_mtime_ns == before


def leave_something(path: Path) -> None:
    """Start a process that detaches itself and writes for ever."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True:
                path.touch()
                time.sleep(0.02)
        os._exit(0)
    os.wait()
    while not path.exists():
        time.sleep(0.01)


def test_one_keeper_has_one_job_after_another_and_clears_away_after_each(
    tmp_path: Path, kept: Callable[[Job], socket.socket]
) -> None:
    def job(message: dict[str, Any], log: int) -> int:
        leave_something(tmp_path / message["start"])
        return 3

    line = kept(job)
    for key in ("a", "b"):
        begin(line, key)
        ended = told(line)
        assert (ended["ended"], ended["code"], ended["signal"]) == (key, 3, None) and ended["memory"] > 1000
        assert is_still(tmp_path / key)


def test_a_job_can_be_stopped_or_killed_and_the_next_one_runs(
    tmp_path: Path, kept: Callable[[Job], socket.socket]
) -> None:
    def job(message: dict[str, Any], log: int) -> int:
        if message["start"] == "quick":
            return 0
        (tmp_path / message["start"]).touch()
        time.sleep(60)
        return 1

    line = kept(job)
    for word, number in (("stop", signal.SIGTERM), ("kill", signal.SIGKILL)):
        begin(line, word)
        while not (tmp_path / word).exists():
            time.sleep(0.01)
        line.send(json.dumps({word: "somebody else"}).encode())
        line.send(json.dumps({word: word}).encode())
        ended = told(line)
        assert (ended["ended"], ended["code"], ended["signal"]) == (word, None, number)
    begin(line, "quick")
    assert told(line)["code"] == 0


def test_when_the_line_is_cut_everything_goes(tmp_path: Path, kept: Callable[[Job], socket.socket]) -> None:
    def job(message: dict[str, Any], log: int) -> int:
        leave_something(tmp_path / "mark")
        (tmp_path / "ready").touch()
        time.sleep(60)
        return 0

    line = kept(job)
    begin(line, "job")
    while not (tmp_path / "ready").exists():
        time.sleep(0.01)
    line.close()
    deadline = time.monotonic() + 5
    while not is_still(tmp_path / "mark"):
        assert time.monotonic() < deadline
