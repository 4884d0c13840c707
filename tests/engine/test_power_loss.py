"""The power fails at any moment: whatever the disk has then, the training goes on, and pays again what was not synced."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import random
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from power_loss import Disk, build_recorder, read_steps
from test_kill_resume import carry_on, lines, stored

from sharpen.bench.config import RunConfig, load
from sharpen.bench.layout import RunFolder
from sharpen.bench.runner import Session, build
from sharpen.core.chat import Reply, Request
from sharpen.models.base import Model
from sharpen.testing.processes import in_child
from sharpen.testing.trainers import left_behind

WORKERS = 8
MOMENTS = int(os.environ.get("POWER_FAILURES", "16"))
BILL = "bill"
RECORDED = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_power_loss import configuration, carry_on
from sharpen.bench.runner import prepare
root = Path(sys.argv[1])
config = configuration()
carry_on(prepare(config, root)[0], config, root / "bill")
"""


def configuration() -> RunConfig:
    models = {"target": "scripted/rules?latency=0.01&noise=0.1", "optimizer": "scripted/rules?latency=0.01"}
    settings = {"task": {"name": "codebook", "limit": 8}, "models": models, "workers": WORKERS, "sync_seconds": 0.02}
    return load(None, {**settings, "trainer": {"params": {"epochs": 1, "batch_size": 4}}})


class Fickle:
    """A model that answers anew each time it is asked, whatever it is asked."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.calls = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._model, name)

    async def complete(self, request: Request) -> Reply:
        self.calls += 1
        reply = await self._model.complete(request)
        return reply if os.urandom(1)[0] < 128 else dataclasses.replace(reply, text=reply.text[: os.urandom(1)[0] % 9])


def carry_on_with_fickle_models(run: RunFolder, config: RunConfig) -> None:
    """Go on with models that never say the same twice, then tell the story again without paying for anything."""
    for may_pay in (True, False):
        parts = build(config, run)
        models = {role: Fickle(model) for role, model in parts.setup.models.items()}
        setup = dataclasses.replace(parts.setup, models=models)  # type: ignore[arg-type]
        asyncio.run(Session(dataclasses.replace(parts, setup=setup), run).run())
        assert may_pay or not sum(model.calls for model in models.values())


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A training that nothing disturbed, and the recording of all it did to its files."""
    folder = tmp_path_factory.mktemp("recorded").resolve()
    root, log = folder / "root", folder / "log"
    root.mkdir()
    preload = {"LD_PRELOAD": str(build_recorder(folder)), "RECORD_ROOT": str(root), "RECORD_LOG": str(log)}
    words = [sys.executable, "-c", RECORDED, str(root), str(Path(__file__).parent)]
    done = subprocess.run(words, env={**os.environ, **preload}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return root, log


def only_run(root: Path) -> RunFolder | None:
    runs = [path for path in root.iterdir() if path.is_dir() and (path / "meta" / "config.snapshot.yaml").exists()]
    return RunFolder(runs[0]) if runs else None


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcc") is None or sys.platform != "linux", reason="the recorder needs gcc and Linux")
def test_after_a_power_failure_at_any_moment_the_training_ends_as_if_nothing_had_happened(
    tmp_path: Path, recording: tuple[Path, Path]
) -> None:
    root, log = recording
    whole = only_run(root)
    assert whole is not None
    steps, config, luck = read_steps(log), configuration(), random.Random(13)
    syncs = [n for n, step in enumerate(steps) if step.kind == "S" and step.path.endswith("-wal")]
    events = [n + 1 for n, step in enumerate(steps) if step.kind == "W" and step.path.endswith("events.jsonl")]
    told = set(luck.sample(events, MOMENTS // 2))
    assert len(syncs) > 10, "it was synced all along"
    moments = sorted({*luck.sample(range(len(steps)), MOMENTS), *luck.sample(syncs, 3), *told, len(steps)})
    disk, followed, again, resumed = Disk(root), 0, 0, 0
    for moment in moments:
        while followed < moment:
            disk.follow(steps[followed])
            followed += 1
        target = tmp_path / str(moment)
        worst = moment in told  # the event is there, and what it stands on is not
        ends = (("events.jsonl",), ("-wal",)) if worst else ((), ())
        disk.rebuild(target, luck, f"/{BILL}", *ends)
        before = lines(target / BILL)
        run = only_run(target)
        if run is None:
            assert not before, "nothing is paid for before the run can be resumed"
            continue
        kept = stored(run, tmp_path / "copy")
        last = max((n for n in syncs if n < moment), default=-1)
        since = sum(1 for step in steps[last + 1 : moment] if step.path.endswith(f"/{BILL}") and step.kind == "W")
        lost = set(before) - kept
        assert len(lost) <= since + WORKERS, (
            f"at step {moment} {len(lost)} replies are lost, {since} came since the last sync"
        )
        fickle = tmp_path / f"{moment}-fickle"
        shutil.copytree(target, fickle)
        assert in_child(partial(carry_on, run, config, target / BILL)) == 0, f"at step {moment}"
        after = lines(target / BILL)[len(before) :]
        assert not set(after) & kept, "what is stored is not paid for again"
        assert left_behind(run.jobs()[0]) == left_behind(whole.jobs()[0]), f"at step {moment}"
        other = only_run(fickle)
        assert other is not None
        assert in_child(partial(carry_on_with_fickle_models, other, config)) == 0, f"at step {moment}"
        again += len(set(after) & lost)
        resumed += 1
        for folder in (target, fickle):
            shutil.rmtree(folder)
    assert resumed > MOMENTS // 2
    print(f"{resumed} disks, {len(steps)} steps, {len(syncs)} syncs of the ledger, {again} calls paid twice in all")
