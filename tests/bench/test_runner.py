"""Whole runs that meet trouble: a full disk, a wrong key, a person who stops them, a story that was tampered with."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sharpen.bench.config import load
from sharpen.bench.layout import RunFolder, locked
from sharpen.bench.runner import Session, build, prepare
from sharpen.core.chat import Request
from sharpen.core.errors import ModelError, ModelErrorKind, NotDeterministic, StorageError, TooManyFailures, UsageError
from sharpen.engine.gateway import Stopped
from sharpen.engine.job import Job
from sharpen.engine.opening import How
from sharpen.engine.replay import read_events
from sharpen.engine.retry import RetryPolicy
from sharpen.testing.ledgers import small_disk
from sharpen.testing.models import Watched
from sharpen.testing.trainers import left_behind

SETTINGS: dict[str, Any] = {
    "task": {"name": "codebook", "limit": 40},
    "models": {"target": "scripted/rules", "optimizer": "scripted/rules"},
    "trainer": {"params": {"epochs": 2, "batch_size": 10}},
}
HASTY = RetryPolicy(attempts=2, first_pause=0.0)


class Watch:
    """Sessions of one run whose models are watched. `trouble` is called at every answered call."""

    def __init__(self, run: RunFolder, settings: dict[str, Any] | None = None) -> None:
        self.run, self.settings = run, settings or SETTINGS
        self.trouble: Callable[[Request], None] = lambda request: None
        self.calls = 0
        self.job: Job | None = None

    def session(self) -> Session:
        parts = build(load(None, self.settings), self.run)
        models = {role: Watched(model, on_reply=self._answered) for role, model in parts.setup.models.items()}
        how = dataclasses.replace(parts.how, retry=HASTY)
        return Session(
            dataclasses.replace(parts, setup=dataclasses.replace(parts.setup, models=models), how=how),
            self.run,
            self._on,
        )

    def go(self) -> str:
        return asyncio.run(self.session().run())

    @property
    def folder(self) -> Path:
        return self.session().job_folder

    def results(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "results.json").read_text())
        return found

    def _on(self, job: Job) -> None:
        self.job = job

    def _answered(self, request: Request) -> None:
        self.calls += 1
        self.trouble(request)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Watch:
    watch = Watch(prepare(load(None, SETTINGS), tmp_path_factory.mktemp("whole"))[0])
    assert watch.go() == "done"
    return watch


@pytest.fixture
def watch(tmp_path: Path) -> Watch:
    return Watch(prepare(load(None, SETTINGS), tmp_path)[0])


def test_a_full_disk_stops_with_one_clear_message_and_nothing_is_paid_for_twice(tmp_path: Path, whole: Watch) -> None:
    with small_disk(tmp_path / "disk", 1_700_000) as disk:
        watch = Watch(prepare(load(None, SETTINGS), disk / "runs")[0])
        with pytest.raises(StorageError, match=r"(cannot write|no room) .*(ledger\.db|events\.jsonl|checkpoints)"):
            watch.go()
        assert 0 < watch.calls < whole.calls
        subprocess.run(["mount", "-o", "remount,size=32m", str(disk)], check=True)
        assert watch.go() == "done"
        assert watch.calls == whole.calls
        assert left_behind(watch.folder) == left_behind(whole.folder)


def test_a_wrong_key_ends_the_job_at_once_and_it_can_be_resumed(watch: Watch, whole: Watch) -> None:
    def refuse(request: Request) -> None:
        if watch.calls > 200:
            raise ModelError(ModelErrorKind.AUTH, "the key is not valid")

    watch.trouble = refuse
    with pytest.raises(ModelError, match="the key is not valid"):
        watch.go()
    assert watch.calls < 200 + 70
    assert (watch.results()["status"], watch.results()["message"]) == ("failed", "the key is not valid")
    paid = watch.calls
    watch.trouble = lambda request: None
    assert watch.go() == "done"
    assert left_behind(watch.folder) == left_behind(whole.folder)
    assert watch.calls - paid == whole.calls - 200, "the 200 that were answered well are not paid for again"


def test_too_many_failures_stop_the_job_with_all_that_was_paid_kept(watch: Watch, whole: Watch) -> None:
    good = 0

    def fail(request: Request) -> None:
        nonlocal good
        if watch.calls > 20:  # within the first batch, of which too many are lost then
            raise ModelError(ModelErrorKind.BAD_REQUEST, "no")
        good += 1

    watch.trouble = fail
    with pytest.raises(TooManyFailures, match="at most 10% may"):
        watch.go()
    paid = watch.calls
    watch.trouble = lambda request: None
    assert watch.go() == "done"
    assert watch.calls - paid == whole.calls - good
    assert left_behind(watch.folder) == left_behind(whole.folder)


def test_stopped_by_hand_it_goes_on_later_as_if_nothing_had_been(watch: Watch, whole: Watch) -> None:
    def stop(request: Request) -> None:
        if watch.calls == 300:
            assert watch.job is not None
            watch.job.runtime.gateway.stopping = True

    watch.trouble = stop
    with pytest.raises(Stopped):
        watch.go()
    assert watch.results()["status"] == "unfinished"
    watch.trouble = lambda request: None
    assert watch.go() == "done"
    assert watch.calls == whole.calls and left_behind(watch.folder) == left_behind(whole.folder)


def test_a_story_that_was_changed_is_found_out_and_left_alone(watch: Watch) -> None:
    assert watch.go() == "done"
    path = watch.folder / "events.jsonl"
    path.write_text(path.read_text().replace('"epoch":1', '"epoch":7', 1))
    changed = path.read_bytes()
    with pytest.raises(NotDeterministic, match=r"not deterministic at event \d+ of .*step_done differs in epoch"):
        watch.go()
    assert path.read_bytes() == changed


def test_a_finished_job_resumed_says_the_same_and_calls_nobody(watch: Watch) -> None:
    assert watch.go() == "done"
    before, calls = left_behind(watch.folder), watch.calls
    assert watch.go() == "done"
    assert watch.calls == calls and left_behind(watch.folder) == before


def test_a_job_that_runs_elsewhere_is_not_run_twice(watch: Watch) -> None:
    with locked(watch.folder), pytest.raises(UsageError, match="running in another process"):
        watch.go()


def test_a_cap_on_seconds_ends_with_status_budget_and_a_resume_goes_on(tmp_path: Path, whole: Watch) -> None:
    slow = SETTINGS | {"models": {"target": "scripted/rules?latency=0.02", "optimizer": "scripted/rules"}}
    watch = Watch(prepare(load(None, slow), tmp_path)[0], slow | {"budget": {"seconds": 0.4}, "workers": 4})
    assert watch.go() == "budget"
    assert [line["type"] for line in read_events(watch.folder / "events.jsonl")][-1] == "job_ended"
    watch.settings = slow
    assert asyncio.run(watch.session().run(more_budget=True)) == "done"
    assert left_behind(watch.folder) == left_behind(whole.folder)


def test_the_way_it_is_run_is_no_part_of_what_it_is() -> None:
    parts = build(load(None, SETTINGS | {"workers": 3, "budget": {"tokens": 5}, "max_failures": 0.5}))
    assert parts.how == How(parts.how.caps, 3, 0.5) and parts.how.caps.tokens == 5
    assert parts.setup.spec == build(load(None, SETTINGS)).setup.spec
