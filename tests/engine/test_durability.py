"""What a job's record of syncs is good for: a lost ledger is noticed, and a power failure costs what was not synced."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from measuring import A, B, Fake, work

from sharpen.core.chat import Message
from sharpen.core.errors import StorageError
from sharpen.engine.durability import RECORD, LedgerLost, cut_damaged_end, read_durable
from sharpen.engine.job import Job
from sharpen.engine.replay import read_events

LEDGER, LOG = "ledger.db", "events.jsonl"


async def measure_both(job: Job) -> None:
    for candidate in (A, B):
        await job.evaluate(candidate, job.splits.val, purpose="gate")


async def measure_first(job: Job) -> None:
    await job.evaluate(A, job.splits.val, purpose="gate")


async def measure_and_ask(job: Job) -> None:
    await measure_first(job)
    await job.ask("target", [Message("user", "why?")], scope=("why",))


async def ask_only(job: Job) -> None:
    await job.ask("target", [Message("user", "why?")], scope=("why",))


def tree(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def remove(folder: Path) -> None:
    (folder / LEDGER).unlink()


def empty(folder: Path) -> None:
    (folder / LEDGER).write_bytes(b"")


def put_another(folder: Path) -> None:
    other = folder.parent / "another"
    other.mkdir()
    work(other, Fake(), ask_only)
    shutil.copy(other / LEDGER, folder / LEDGER)


def put_older(folder: Path) -> None:
    delete_rows(folder, "id > 4")


def put_older_that_grew(folder: Path) -> None:
    """The numbers are those of before, the rows are not."""
    with closing(sqlite3.connect(folder / LEDGER)) as connection:
        connection.execute("UPDATE replies SET key=randomblob(16) WHERE id > 4")
        connection.commit()


def delete_rows(folder: Path, which: str) -> None:
    with closing(sqlite3.connect(folder / LEDGER)) as connection:
        for table in ("replies", "rollouts"):
            connection.execute(f"DELETE FROM {table} WHERE {which}")
        connection.commit()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (remove, "is gone"),
        (empty, "holds nothing any more"),
        (put_another, "is another ledger than the one this job was paid into"),
        (put_older, "has 4 of the 10 replies it held and has 4 of the 10 rollouts it held"),
        (put_older_that_grew, "has other replies than it held"),
    ],
)
def test_a_ledger_that_lost_what_was_paid_is_refused_with_the_cost_and_nothing_is_changed(
    tmp_path: Path, damage: Callable[[Path], None], message: str
) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    work(folder, Fake(), measure_first)
    damage(folder)
    before, model = tree(folder), Fake()
    with pytest.raises(LedgerLost, match=message) as refused:
        work(folder, model, measure_both)
    assert "would pay again for up to 10 calls with 80 tokens and" in str(refused.value)
    assert "--pay-again" in str(refused.value)
    assert model.calls == 0 and tree(folder) == before
    work(folder, model, measure_both, pay_again=True)
    assert model.calls > 0 and [line["n"] for line in read_events(folder / LOG)] == [0, 1]
    work(folder, Fake(), measure_both)


def test_a_deleted_write_ahead_log_is_noticed(tmp_path: Path) -> None:
    folder, copy = tmp_path / "job", tmp_path / "copy"
    folder.mkdir()
    work(folder, Fake(), measure_first)
    with closing(sqlite3.connect(folder / LEDGER, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.execute("SELECT 1 FROM about").fetchall()
        work(folder, Fake(), measure_both)  # somebody else has the ledger open, so it is not folded
        shutil.copytree(folder, copy)
    assert (copy / "ledger.db-wal").stat().st_size > 0
    (copy / "ledger.db-wal").unlink()
    (copy / "ledger.db-shm").unlink()
    with pytest.raises(LedgerLost, match="has 10 of the 20 replies it held"):
        work(copy, Fake(), measure_both)


@pytest.mark.parametrize(("doing", "table"), [(measure_both, "rollouts"), (measure_and_ask, "replies")])
def test_a_row_that_is_missing_in_the_middle_is_not_paid_for_silently(
    tmp_path: Path, doing: Callable[[Job], object], table: str
) -> None:
    work(tmp_path, Fake(), doing)  # type: ignore[arg-type]
    last = 20 if doing is measure_both else 11
    with closing(sqlite3.connect(tmp_path / LEDGER)) as connection:
        connection.execute(f"UPDATE {table} SET key=randomblob(16) WHERE id={last - 1 if last == 20 else last}")
        connection.commit()
    if (
        doing is measure_and_ask
    ):  # the last row is looked at when the job is opened; here it is to be found missing later
        record = json.loads((tmp_path / RECORD).read_text())
        record["ledger"]["replies"] = [0, ""]
        (tmp_path / RECORD).write_text(json.dumps(record))
    model = Fake()
    with pytest.raises(LedgerLost, match=r"lacks .* that event 1 of .* stands on"):
        work(tmp_path, model, doing)  # type: ignore[arg-type]
    assert model.calls == 0


@pytest.mark.parametrize("doing", [measure_both, measure_and_ask])
def test_an_event_that_outlived_its_rows_is_worked_out_again(tmp_path: Path, doing: Callable[[Job], object]) -> None:
    """The log reached the disk and the ledger did not: what a power failure leaves."""
    work(tmp_path, Fake(noise=0.4), doing)  # type: ignore[arg-type]
    before = read_events(tmp_path / LOG)
    delete_rows(tmp_path, "id > 10")
    record = json.loads((tmp_path / RECORD).read_text())
    extent = record["ledger"]
    with closing(sqlite3.connect(tmp_path / LEDGER)) as connection:
        for table in ("replies", "rollouts"):
            extent[table] = connection.execute(f"SELECT max(id), '' FROM {table}").fetchone()
            key = connection.execute(f"SELECT lower(hex(key)) FROM {table} WHERE id=?", (extent[table][0],)).fetchone()
            extent[table] = [extent[table][0], key[0]]
    (tmp_path / RECORD).write_text(json.dumps({**record, "events": 1}))
    model = Fake(noise=0.4)
    work(tmp_path, model, doing)  # type: ignore[arg-type]
    after = read_events(tmp_path / LOG)
    assert model.calls == (10 if doing is measure_both else 1), "what was synced is not paid for again"
    assert after[0] == before[0] and len(after) == len(before)
    again = Fake(noise=0.4)
    work(tmp_path, again, doing)  # type: ignore[arg-type]
    assert again.calls == 0


@pytest.mark.parametrize("end", [b"\0" * 700 + b"\n", b"\0" * 300, b'{"n":1,"type"\n', b'{"n":7,"type":"x"}\n'])
def test_what_a_power_failure_left_at_the_end_of_the_log_is_cut(tmp_path: Path, end: bytes) -> None:
    work(tmp_path, Fake(), measure_first)
    whole = (tmp_path / LOG).read_bytes()
    (tmp_path / LOG).write_bytes(whole + end)
    cut_damaged_end(tmp_path / LOG)
    work(tmp_path, Fake(), measure_both)
    assert [line["n"] for line in read_events(tmp_path / LOG)] == [0, 1]


def test_damage_among_what_was_synced_is_not_cut(tmp_path: Path) -> None:
    work(tmp_path, Fake(), measure_both)
    lines = (tmp_path / LOG).read_bytes().splitlines(keepends=True)
    (tmp_path / LOG).write_bytes(b"\0\n" + lines[1])
    cut_damaged_end(tmp_path / LOG)
    with pytest.raises(StorageError, match="damaged at line 1"):
        work(tmp_path, Fake(), measure_both)


def test_the_ledger_is_synced_before_the_log_and_both_before_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    real = os.fdatasync

    def note(descriptor: int) -> None:
        synced.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        real(descriptor)

    replaced = os.replace

    def note_replace(source: str, target: Path) -> None:
        synced.append(Path(target).name)
        replaced(source, target)

    monkeypatch.setattr(os, "fdatasync", note)
    monkeypatch.setattr(os, "replace", note_replace)

    async def slowly(job: Job) -> None:
        for candidate in (A, B):
            await job.evaluate(candidate, job.splits.val, purpose="gate")
            for _ in range(10_000):
                if read_durable(tmp_path).events == job.runtime.story.length:  # type: ignore[union-attr]
                    break
                await asyncio.sleep(0.001)

    work(tmp_path, Fake(), slowly, sync_seconds=0.0)
    kinds = [name for name in synced if name in ("ledger.db-wal", LOG, RECORD)]
    assert kinds[0] == RECORD, "a new job says that nothing is certain yet"
    rounds = kinds[1:]
    assert len(rounds) >= 6 and rounds == ["ledger.db-wal", LOG, RECORD] * (len(rounds) // 3)
    assert read_durable(tmp_path).events == 2  # type: ignore[union-attr]


def test_a_disk_that_fails_a_sync_ends_the_job_with_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", fail)
    with pytest.raises(StorageError, match="Input/output error; what the last second brought"):
        work(tmp_path, Fake(), measure_both)
