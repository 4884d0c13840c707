"""What every trainer must hold to, as a suite that a plugin's tests inherit.

    class TestMyTrainer(TrainerContract):
        def make(self) -> Trainer:
            return MyTrainer(MyTrainer.Params(rounds=3))

Each test carries out whole trainings of a small task with a scripted model, as `sharpen train` would. `left_behind` is what
two jobs are compared by: everything they wrote, clock readings aside.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import signal
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sharpen import files
from sharpen.bench import tensorboard
from sharpen.bench.config import RunConfig, TaskConfig
from sharpen.bench.layout import RunFolder
from sharpen.bench.runner import Parts, Session
from sharpen.core.task import Task
from sharpen.engine import durability, replay
from sharpen.engine.budget import Caps
from sharpen.engine.opening import How
from sharpen.engine.replay import read_events
from sharpen.ledger.store import Ledger
from sharpen.models.base import Model
from sharpen.models.registry import open_model
from sharpen.tasks.codebook import Codebook
from sharpen.tasks.splitting import Deal
from sharpen.testing.jobs import make_setup
from sharpen.testing.models import Watched
from sharpen.testing.processes import in_child
from sharpen.trainers.base import Trainer

KILLS = 10


def without_clock(value: Any) -> Any:
    """A JSON value without its `clock` fields, at any depth."""
    if isinstance(value, dict):
        return {key: without_clock(inner) for key, inner in value.items() if key != "clock"}
    return [without_clock(inner) for inner in value] if isinstance(value, list) else value


_LEFT_OUT = ("lock", durability.RECORD, tensorboard.FILE)


def left_behind(job_folder: Path) -> dict[str, bytes]:
    """Every file of a job by its relative path, clock fields removed; the lock is not part of it, nor are the curves for
    TensorBoard, which are made of times."""
    found: dict[str, bytes] = {}
    for path in sorted(path for path in job_folder.rglob("*") if path.is_file() and path.name not in _LEFT_OUT):
        content = path.read_bytes()
        if path.suffix == ".jsonl":
            content = b"".join(_dumped(json.loads(line)) for line in content.splitlines())
        elif path.suffix == ".json":
            content = _dumped(json.loads(content))
        found[path.relative_to(job_folder).as_posix()] = content
    return found


def _dumped(value: Any) -> bytes:
    return json.dumps(without_clock(value), ensure_ascii=False).encode() + b"\n"


@dataclass(frozen=True)
class Ran:
    """A training that was carried out: its status, its folder, and the model calls that were made for it."""

    status: str
    folder: Path
    calls: int

    @property
    def events(self) -> list[dict[str, Any]]:
        return read_events(self.folder / "events.jsonl")


class Reaper:
    """Counts every write to ledger, story and checkpoints, and kills the process before, within or after one of them."""

    def __init__(self, at: int | None = None) -> None:
        self.writes = 0
        self._at = at
        watched: tuple[tuple[object, str], ...] = (
            (replay, "append_line"), (Ledger, "_write"), (os, "replace"), (files, "_put"), (files, "_swap"),
        )  # fmt: skip
        for home, name in watched:
            setattr(home, name, self._watched(getattr(home, name)))

    def _watched(self, write: Callable[..., None]) -> Callable[..., None]:
        def watched(*given: Any) -> None:
            self._pass()
            write(*given)
            self._pass()

        return watched

    def _pass(self) -> None:
        if self.writes == self._at:
            os.kill(os.getpid(), signal.SIGKILL)
        self.writes += 1


class TrainerContract:
    """Inherit, and give `make`; `task` and `models` too, where the trainer needs others."""

    def make(self) -> Trainer:
        raise NotImplementedError

    def task(self) -> Task:
        return Codebook(Deal(limit=24))

    def models(self, noise: float) -> Mapping[str, Model]:
        settings = f"?noise={noise}" if noise else ""
        return {"target": open_model(f"scripted/rules{settings}"), "optimizer": open_model("scripted/rules")}

    def train(
        self, home: Path, *, noise: float = 0.0, salt: int = 0, workers: int = 64, caps: Caps | None = None
    ) -> Ran:
        """Carry out one training in `home`, or carry on with the one that is there."""
        task, trainer = self.task(), self.make()
        jitter = 0.002 if salt else 0.0
        models = {role: Watched(model, jitter=jitter, salt=salt) for role, model in self.models(noise).items()}
        setup = make_setup(task, models, params=trainer.params.model_dump(mode="json"))
        spec = dataclasses.replace(setup.spec, trainer=trainer.name, trainer_version=trainer.version)
        how = How(caps or Caps(), workers)
        config = RunConfig(task=TaskConfig(name=task.name))
        session = Session(Parts(config, trainer, dataclasses.replace(setup, spec=spec), how), RunFolder(home))
        status = asyncio.run(session.run())
        return Ran(status, session.job_folder, sum(model.calls for model in models.values()))

    @pytest.mark.parametrize("noise", [0.0, 0.1])
    def test_workers_and_speed_change_nothing(self, tmp_path: Path, noise: float) -> None:
        stories = [
            left_behind(self.train(tmp_path / str(salt), noise=noise, salt=salt, workers=workers).folder)
            for salt, workers in ((0, 1), (1, 64), (2, 5))
        ]
        assert stories[0] == stories[1] == stories[2]

    @pytest.mark.parametrize("noise", [0.0, 0.1])
    def test_a_finished_job_retold_costs_nothing_and_says_the_same(self, tmp_path: Path, noise: float) -> None:
        first = self.train(tmp_path, noise=noise)
        before = (first.folder / "events.jsonl").read_bytes()
        again = self.train(tmp_path, noise=noise, salt=1)
        assert again.calls == 0 and again.status == first.status
        assert (again.folder / "events.jsonl").read_bytes() == before

    def test_killed_at_any_write_and_resumed_it_ends_the_same(self, tmp_path: Path) -> None:
        self.check_kills(tmp_path, KILLS, Caps())

    def check_kills(self, home: Path, kills: int, caps: Caps) -> None:
        """Kill trainings at `kills` writes spread over their length, resume each, and compare with an undisturbed one."""
        whole = left_behind(self.train(home / "whole", caps=caps).folder)
        count = home / "count"

        def counted() -> None:
            reaper = Reaper()
            self.train(home / "counted", caps=caps)
            count.write_text(str(reaper.writes))

        def killed(at: int, folder: Path) -> None:
            Reaper(at)
            self.train(folder, caps=caps)

        assert in_child(counted) == 0
        writes = int(count.read_text())
        for number in range(kills):
            at, folder = writes * number // kills + number % 4, home / str(number)
            assert in_child(partial(killed, at, folder)) == -signal.SIGKILL
            assert left_behind(self.train(folder, caps=caps).folder) == whole, f"killed at write {at} of {writes}"

    def test_the_test_split_is_not_touched_before_the_end(self, tmp_path: Path) -> None:
        ran = self.train(tmp_path)
        test = self.task().splits().test
        seen = [number for number, line in enumerate(ran.events) if _touches(line, {item.id for item in test})]
        assert seen, "the closing measurement is on the test split"
        after = {line["type"] for line in ran.events[seen[0] + 1 :]}
        assert after <= {"measured", "tested", "gained", "stage_done", "checkpointed", "job_ended"}
        with closing(sqlite3.connect(tmp_path / "ledger.db")) as ledger:
            rows = ledger.execute("SELECT request FROM replies WHERE request IS NOT NULL").fetchall()
        questions = "\n".join(request for (request,) in rows)
        assert not [item.id for item in test if item.text in questions or item.id in questions]

    @pytest.mark.parametrize("spare", [1, 40, 150])
    def test_a_cap_on_calls_is_kept_and_still_leaves_a_test_score(self, tmp_path: Path, spare: int) -> None:
        task = self.task()
        cap = self.make().closing_calls(task, task.splits(), repeatable=True) + spare
        ran = self.train(tmp_path, caps=Caps(calls=cap))
        assert ran.calls <= cap
        tested = {line["which"] for line in ran.events if line["type"] == "tested"}
        assert tested == {"initial", "best", "final"}

    def test_a_cap_ends_a_killed_job_where_it_ends_an_undisturbed_one(self, tmp_path: Path) -> None:
        task = self.task()
        self.check_kills(tmp_path, 4, Caps(calls=self.make().closing_calls(task, task.splits(), repeatable=True) + 100))

    @pytest.mark.parametrize("tokens", [6_000, 14_000])
    def test_a_cap_on_tokens_is_kept_and_ends_at_the_same_place_at_any_speed(self, tmp_path: Path, tokens: int) -> None:
        found = []
        for salt, workers in ((0, 1), (1, 64), (2, 5)):
            ran = self.train(tmp_path / str(salt), salt=salt, workers=workers, caps=Caps(tokens=tokens))
            ended = ran.events[-1]
            assert sum(row[1] + row[2] for part in ended["usage"].values() for row in part.values()) <= tokens
            found.append(left_behind(ran.folder))
        assert found[0] == found[1] == found[2]


def _touches(line: Mapping[str, Any], ids: set[str]) -> bool:
    if line["type"] != "measured":
        return False
    return any(group["items"] == "test" or not ids.isdisjoint(group["items"]) for group in line["groups"])
