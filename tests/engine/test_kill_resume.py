"""Killed at any instant and resumed, a training ends with the same bytes as one that was never disturbed, and nothing that
was stored is ever paid for again. Same seed, any number of workers: the same bytes too."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import random
import shutil
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from sharpen.bench.config import RunConfig, load
from sharpen.bench.layout import RunFolder
from sharpen.bench.runner import Session, build, prepare
from sharpen.core.chat import Request
from sharpen.core.digest import Json
from sharpen.engine import gateway
from sharpen.ledger.keys import KEY_BYTES, reply_key
from sharpen.testing.models import Watched
from sharpen.testing.processes import end_of, in_child, start_child
from sharpen.testing.trainers import left_behind

WORKERS = 8
LINE = 2 * KEY_BYTES + 1


def configuration(*, noise: float = 0.0, latency: float = 0.0, workers: int = WORKERS) -> RunConfig:
    target = f"scripted/rules?latency={latency}" + (f"&noise={noise}" if noise else "")
    models = {"target": target, "optimizer": f"scripted/rules?latency={latency}"}
    params = {"epochs": 2, "batch_size": 20}
    return load(None, {"task": "codebook", "models": models, "trainer": {"params": params}, "workers": workers})


def carry_on(run: RunFolder, config: RunConfig, bill: Path | None = None, *, salt: int = 0) -> None:
    """One session of the training in `run`. Every answered call of a model adds a line with its ledger key to `bill`."""
    parts = build(config, run)
    keys: dict[int, tuple[Request, bytes]] = {}

    def noted(identity: Json, request: Request, draw: Json, *, repeat: int = 0) -> bytes:
        key = reply_key(identity, request, draw, repeat=repeat)
        keys[id(request)] = (request, key)
        return key

    def answered(request: Request) -> None:
        if bill is not None:
            os.write(descriptor, keys[id(request)][1].hex().encode() + b"\n")

    descriptor = -1
    if bill is not None:
        descriptor = os.open(bill, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        gateway.reply_key = noted  # type: ignore[attr-defined]
    jitter = 0.004 if salt else 0.0
    models = {
        role: Watched(model, jitter=jitter, salt=salt, on_reply=answered) for role, model in parts.setup.models.items()
    }
    setup = dataclasses.replace(parts.setup, models=models)
    asyncio.run(Session(dataclasses.replace(parts, setup=setup), run).run())


def job_folder(run: RunFolder) -> Path:
    (folder,) = run.jobs()
    return folder


def lines(bill: Path) -> list[str]:
    return bill.read_text().splitlines() if bill.exists() else []


def stored(run: RunFolder, scratch: Path) -> set[str]:
    """The keys of all replies in the ledger, read from a copy so that the next session finds the files as they were left."""
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    for suffix in ("", "-wal"):
        source = Path(f"{run.ledger}{suffix}")
        if source.exists():
            shutil.copy(source, scratch / source.name)
    if not (scratch / run.ledger.name).exists():
        return set()
    with closing(sqlite3.connect(scratch / run.ledger.name)) as copy:
        try:
            return {key.hex() for (key,) in copy.execute("SELECT key FROM replies")}
        except sqlite3.OperationalError:  # killed before the tables were made
            return set()


def wait_for(bill: Path, count: int, child: int) -> None:
    """Until `count` calls have been answered in all sessions together."""
    while not bill.exists() or bill.stat().st_size < count * LINE:
        ended, status = os.waitpid(child, os.WNOHANG)
        assert not ended, f"the session ended by itself: {status}"
        time.sleep(0.001)


@pytest.mark.parametrize("kills,noise", [(25, 0.0), (8, 0.1)])
def test_killed_again_and_again_it_ends_with_the_same_bytes_and_pays_for_nothing_twice(
    tmp_path: Path, kills: int, noise: float
) -> None:
    config = configuration(noise=noise, latency=0.01)
    whole, whole_bill = prepare(config, tmp_path / "whole")[0], tmp_path / "whole.bill"
    assert in_child(lambda: carry_on(whole, config, whole_bill)) == 0
    calls = lines(whole_bill)
    assert len(set(calls)) == len(calls) > 500

    run, bill = prepare(config, tmp_path / "killed")[0], tmp_path / "killed.bill"
    luck = random.Random(25)
    at_kill: list[tuple[int, set[str]]] = []
    for number in range(kills):
        child = start_child(lambda: carry_on(run, config, bill))
        if number % 4:  # while new work is done
            wait_for(bill, int(0.75 * len(calls) * (number + luck.random()) / kills), child)
            time.sleep(luck.uniform(0, 0.012))
        else:  # at any instant, also while the story is retold
            time.sleep(luck.uniform(0, 0.3))
        os.kill(child, signal.SIGKILL)
        assert end_of(child) == -signal.SIGKILL
        at_kill.append((len(lines(bill)), stored(run, tmp_path / "copy")))
    assert in_child(lambda: carry_on(run, config, bill)) == 0

    assert left_behind(job_folder(run)) == left_behind(job_folder(whole))
    made = lines(bill)
    assert set(made) == set(calls)
    for before, known in at_kill:
        assert known.isdisjoint(made[before:]), "something that was stored was paid for again"
    assert len(made) - len(calls) <= kills * WORKERS, "only what was under way at a kill may be made again"
    assert len(at_kill[-1][1]) > len(calls) // 2, "the kills were spread over the training"


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_workers_and_speed_do_not_change_a_byte(tmp_path: Path, noise: float) -> None:
    found = []
    for number, (workers, salt) in enumerate([(1, 0), (64, 0), (64, 7)]):
        config = configuration(noise=noise, workers=workers)
        run, _ = prepare(config, tmp_path / str(number))
        carry_on(run, config, salt=salt)
        found.append(left_behind(job_folder(run)))
    assert found[0] == found[1] == found[2]
    assert {"events.jsonl", "results.json", "job_meta.json", "checkpoints/best/parts/SKILL.md"} <= set(found[0])
