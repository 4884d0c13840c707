"""Caps by the server's own count, over kills: of a training, of the jobs of a study, of the study itself."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sharpen.models.scripted import script
from sharpen.testing.http import FakeEndpoint, Fault, FaultKind, answer_with

F = FaultKind
PROGRAM = [sys.executable, "-c", "from sharpen.cli import main; main()"]
MIX = (F.MALFORMED, F.TRUNCATED, F.EMPTY, F.UPSTREAM, F.DROPPED, F.RATE_LIMITED, F.BROKEN)

DYING = """
import asyncio, os, signal
from sharpen.core.candidate import Candidate
from sharpen.core.chat import Message, Request
from sharpen.core.item import Item
from sharpen.core.outcome import scored
from sharpen.core.task import Splits, Task

class Dies(Task):
    name = "dies"
    def splits(self):
        return Splits(*[tuple(Item(f"{s}-{n}", {"input": f"{s} {n}"}, "x") for n in range(4)) for s in ("a", "b", "c")])
    def seed(self):
        return Candidate("Say x.")
    async def rollout(self, item, candidate, attempt):
        asyncio.get_running_loop().call_later(0.3, os.kill, os.getpid(), signal.SIGKILL)
        await attempt.complete(Request(messages=(Message("user", item.id),)))
        return scored(item.id, 1.0)
"""


def environment() -> dict[str, str]:
    return {**os.environ, "SHARPEN_STATE": "state", "PYTHONDONTWRITEBYTECODE": "1"}


def start(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*PROGRAM, *words], cwd=folder, env=environment(), start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def kill_after(process: subprocess.Popen[bytes], server: FakeEndpoint, calls: int) -> None:
    """Kill a command and all it started once the server has been asked so often; nothing where it ends before."""
    wanted = server.requests + calls
    while server.requests < wanted and process.poll() is None:
        time.sleep(0.002)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def paid(run: Path) -> int:
    calls: int = json.loads((run / "summary.json").read_text())["paid"]["calls"]
    return calls


@pytest.mark.slow
@pytest.mark.parametrize("faults", [(), MIX], ids=["kills", "kills and faults"])
def test_a_training_killed_again_and_again_stays_within_its_cap(tmp_path: Path, faults: tuple[FaultKind, ...]) -> None:
    befall = [Fault(kind, every=11 + 2 * number) for number, kind in enumerate(faults)]
    draw = random.Random(len(faults))
    words = ("--limit", "24", "--budget", "calls=150", "--workers", "64", "max_failures=0.9", "-q", "--runs", "runs")
    with FakeEndpoint(answer_with(script("rules")), faults=befall, latency=0.02).in_thread() as server:
        kill_after(start(tmp_path, "train", "codebook", "--model", f"{server.url}#m", *words), server, 15)
        for _ in range(5):
            kill_after(start(tmp_path, "resume", "latest", "-q", "--runs", "runs"), server, draw.randint(5, 30))
        start(tmp_path, "resume", "latest", "-q", "--runs", "runs").wait()
        billed = server.billed
    [story] = (tmp_path / "runs").glob("*/jobs/*/events.jsonl")
    assert json.loads(story.read_text().splitlines()[-1])["type"] == "job_ended"
    assert 60 < billed <= 150


def story(folder: Path) -> list[dict[str, object]]:
    [path] = folder.glob("*/jobs/*/events.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [{name: value for name, value in line.items() if name != "clock"} for line in lines]


@pytest.mark.slow
def test_lost_calls_change_nothing_where_the_cap_has_room_for_them(tmp_path: Path) -> None:
    words = ("--limit", "24", "--budget", "calls=2000", "--steps", "2", "-q")
    with FakeEndpoint(answer_with(script("rules")), latency=0.02).in_thread() as server:
        train = ("train", "codebook", "--model", f"{server.url}#m", *words)
        start(tmp_path, *train, "--runs", "undisturbed").wait()
        asked = server.billed
        kill_after(start(tmp_path, *train, "--runs", "killed"), server, 20)
        for calls in (25, 15):
            kill_after(start(tmp_path, "resume", "latest", "-q", "--runs", "killed"), server, calls)
        start(tmp_path, "resume", "latest", "-q", "--runs", "killed").wait()
        assert server.billed - asked > asked, "some calls were lost"
    assert story(tmp_path / "undisturbed") == story(tmp_path / "killed")


@pytest.mark.slow
def test_a_total_counts_what_killed_jobs_paid_however_often_the_study_is_run(tmp_path: Path) -> None:
    """Every job is killed while all its calls are out, and leaves nothing in its story."""
    (tmp_path / "dying.py").write_text(DYING)
    with FakeEndpoint(latency=5.0).in_thread() as server:
        (tmp_path / "s.yaml").write_text(
            f'tasks: ["dying.py:Dies"]\ntrainers: [noop]\nseeds: 6\nparallel: 3\nmodels: {{target: "{server.url}#m"}}\n'
            "budget: {calls: 20}\ntotal: {calls: 50}\n"
        )
        for _ in range(5):
            start(tmp_path, "run", "s.yaml", "-q").wait()
        asked = server.requests
    assert 12 <= asked <= 50
    assert paid(tmp_path / "runs" / "s") >= asked


@pytest.mark.slow
def test_a_total_holds_over_processes_kills_and_faults(tmp_path: Path) -> None:
    """Three jobs at a time with 64 workers each, killed with all they started, and run again."""
    befall = [Fault(kind, every=13 + 2 * number) for number, kind in enumerate(MIX)]
    with FakeEndpoint(answer_with(script("rules")), faults=befall, latency=0.02).in_thread() as server:
        (tmp_path / "s.yaml").write_text(
            "tasks: [{name: codebook, limit: 12}]\ntrainers: [{name: reflact, params: {epochs: 1, batch_size: 6}}]\n"
            f'seeds: 5\nparallel: 3\nworkers: 64\nmax_failures: 0.9\nmodels: {{target: "{server.url}#m"}}\n'
            "budget: {calls: 60}\ntotal: {calls: 200}\n"
        )
        for calls in (20, 40, 60):
            kill_after(start(tmp_path, "run", "s.yaml", "-q"), server, calls)
        start(tmp_path, "run", "s.yaml", "-q").wait()
        start(tmp_path, "run", "s.yaml", "-q").wait()
        billed = server.billed
    assert 60 < billed <= 200
    assert billed <= paid(tmp_path / "runs" / "s") <= 200
