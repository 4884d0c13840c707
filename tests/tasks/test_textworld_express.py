"""The family textworld-express: games that are generated, played over many turns, and the same every time. Left out where
the package or Java is missing; that the task then says so is tested everywhere."""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sharpen.bench.config import load
from sharpen.bench.runner import build
from sharpen.core.candidate import Candidate
from sharpen.core.errors import SandboxFailed, UsageError
from sharpen.core.outcome import Outcome
from sharpen.core.task import SPLITS, Task
from sharpen.tasks import registry
from sharpen.tasks.textworld_express import GAMES, server
from sharpen.tasks.textworld_express.player import player
from sharpen.tasks.textworld_express.task import understood
from sharpen.testing.tasks import FakeAttempt, TaskContract, attempt

PACKAGE = importlib.util.find_spec("textworld_express") is not None
needs_it = pytest.mark.skipif(
    not PACKAGE or shutil.which("java") is None, reason="textworld-express or Java is not installed"
)
SMALL = {"turns": 12, "numLocations": 4, "includeDoors": 0}
TAKE = "Take the thing that you are looking for as soon as you see it."
GO = "Go to a room where you have not been yet."


@needs_it
class TestCoin(TaskContract):
    def make(self) -> Task:
        return registry.get("textworld-express/coin", size=24, **SMALL)


def played(task: Task, *lines: str) -> list[Outcome]:
    async def all_of_val() -> list[Outcome]:
        skill = Candidate(task.seed().text + "".join(f"- {line}\n" for line in lines))
        return await asyncio.gather(*(task.rollout(i, skill, FakeAttempt(player)) for i in task.splits().val))

    return asyncio.run(all_of_val())


@needs_it
def test_what_the_skill_says_decides_how_often_the_scripted_player_wins() -> None:
    task = registry.get("textworld-express/coin", size=80, **SMALL)
    seed, taking, both = (sum(o.hard or 0 for o in played(task, *lines)) / 20 for lines in ((), (TAKE,), (TAKE, GO)))
    assert seed + 0.1 <= taking <= both - 0.1
    assert both == 1.0


@needs_it
def test_a_game_is_the_same_in_another_java() -> None:
    task = registry.get("textworld-express/cookingworld", size=8, turns=4)
    first = played(task)
    server.server().close()
    assert played(task) == first
    assert len({outcome.trajectory[0].content for outcome in first}) == len(first)


@needs_it
def test_every_game_opens_with_commands_and_folds_do_not_meet() -> None:
    for game in GAMES:
        task = registry.get(f"textworld-express/{game}", size=4, turns=1)
        splits = task.splits()
        assert [{item.inputs["fold"] for item in splits[name]} for name in SPLITS] == [{"train"}, {"dev"}, {"test"}]
        outcome = attempt(task, splits.train[0], "dance")
        assert "Commands: " in outcome.trajectory[0].content
        assert outcome.feedback.endswith("1 answers were none of the listed commands")


@needs_it
def test_part_of_the_score_is_soft() -> None:
    task = registry.get("textworld-express/simonsays", size=4, turns=2, gameLength=5, numDistractors=3)
    outcome = attempt(task, task.splits().train[0], lambda request: request.messages[-1].content.split("'")[1])
    assert outcome.hard == 0.0 and outcome.soft is not None and 0.3 < outcome.soft < 0.5


@needs_it
@pytest.mark.parametrize(
    ("name", "settings", "says"),
    [
        ("coinn", {}, "no game 'coinn' \\(did you mean 'coin'\\?\\)"),
        ("coin", {"numLocations": 90}, "must be less than or equal to 11"),
        ("coin", {"rooms": 3}, "Unrecognized property name \\(rooms\\)"),
        ("coin", {"numLocations": "3"}, "numLocations must be a whole number"),
        ("coin", {"turns": 0}, "turns must be a whole number of 1 or more"),
        ("coin", {"size": 9000}, "a split can have 1000 games"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(name: str, settings: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        registry.get(f"textworld-express/{name}", **settings).splits()


@needs_it
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_java_that_dies_is_a_failure_and_no_score() -> None:
    task = registry.get("textworld-express/coin", size=8, **SMALL)
    item = task.splits().train[0]
    java = server.server()._gateway.java_process

    def kill(request: object) -> str:
        java.kill()
        java.wait()
        return "look around"

    with pytest.raises(SandboxFailed):
        attempt(task, item, kill)
    assert attempt(task, item, "look around").scored, "another Java takes its place"
    gc.collect()  # what the package left open when its Java died is not for other tests to stumble over


@needs_it
def test_java_ends_with_the_process_that_started_it() -> None:
    code = (
        "from sharpen.tasks.textworld_express.server import server\n"
        "server().check('coin', '')\nprint(server()._gateway.java_process.pid, flush=True)\nimport time; time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        java = int(process.stdout.readline())
        assert alive(java)
        process.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 10
    while alive(java) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(java)


def alive(pid: int) -> bool:
    state = Path(f"/proc/{pid}/stat")
    return state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(not PACKAGE, reason="textworld-express is not installed")
def test_without_java_the_task_says_so_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(UsageError, match="'textworld-express/coin' can't run here: it needs program java"):
        build(load(None, {"task": "textworld-express/coin", "models": {"target": "scripted/explorer"}}))
    assert "needs Java on the path" in registry.known("textworld-express/*")[0].missing[0]


@pytest.mark.parametrize("answer", ["Move North", " move  north.", "`move north`", "> move north"])
def test_a_command_is_understood_with_what_stands_around_it(answer: str) -> None:
    assert understood(answer, ("look around", "move north")) == "move north"
    assert understood(f"I {answer}", ("look around", "move north")) is None
