"""What is particular to the SQLite store: its version, its groups, its write-ahead log, its spare file."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sharpen.core.chat import Reply
from sharpen.core.errors import StorageError, UsageError
from sharpen.core.outcome import scored
from sharpen.ledger import store
from sharpen.ledger.store import Ledger
from sharpen.testing.ledgers import key, outcome


def replies_on_disk(path: Path) -> int:
    connection = sqlite3.connect(path)
    try:
        found: int = connection.execute("SELECT COUNT(*) FROM replies").fetchone()[0]
        return found
    finally:
        connection.close()


def test_a_ledger_of_another_version_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    Ledger(path).close()
    connection = sqlite3.connect(path)
    connection.execute("UPDATE about SET value='99' WHERE name='schema_version'")
    connection.commit()
    connection.close()
    with pytest.raises(UsageError, match=r"ledger\.db is a ledger of schema version 99; this sharpen reads version 1"):
        Ledger(path)


def test_a_ledger_from_before_there_were_measures_is_read_and_written(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger(path) as ledger:
        ledger.add_rollout(key(1), "task", "candidate", 0, outcome("a"))
    connection = sqlite3.connect(path)
    connection.execute("ALTER TABLE rollouts DROP COLUMN measures")
    connection.commit()
    connection.close()
    with Ledger(path) as one, Ledger(path) as other:
        assert one.outcome(key(1)) == outcome("a")
        assert one.scores([key(1)])[key(1)].measures == {}
        other.add_rollout(key(2), "task", "candidate", 0, scored("b", 1, measures={"length": 4}))
        other.flush()
        assert one.scores([key(2)])[key(2)].measures == {"length": 4.0}


def test_rows_are_committed_as_soon_as_the_event_loop_waits(tmp_path: Path) -> None:
    async def main() -> None:
        with Ledger(tmp_path / "ledger.db") as ledger:
            for number in range(5):
                ledger.add_reply(key(number), "m", "target", Reply("x"))
            assert replies_on_disk(ledger.path) == 0, "they go together"
            await asyncio.sleep(0)
            assert replies_on_disk(ledger.path) == 5

    asyncio.run(main())


def test_a_full_group_does_not_wait_for_the_event_loop(tmp_path: Path) -> None:
    async def main() -> None:
        with Ledger(tmp_path / "ledger.db") as ledger:
            for number in range(store._GROUP):
                ledger.add_reply(key(number), "m", "target", Reply("x"))
            assert replies_on_disk(ledger.path) == store._GROUP

    asyncio.run(main())


def test_a_reply_can_be_read_before_it_is_committed(tmp_path: Path) -> None:
    async def main() -> None:
        with Ledger(tmp_path / "ledger.db") as ledger:
            ledger.add_reply(key(1), "m", "target", Reply("x"))
            assert ledger.reply(key(1)) == Reply("x")

    asyncio.run(main())


def test_replies_that_look_alike_to_the_filter_are_told_apart(tmp_path: Path) -> None:
    stored, alike = b"a" * 16, b"b" * 13 + b"aaa"
    for _ in range(2):
        with Ledger(tmp_path / "ledger.db") as ledger:
            ledger.add_reply(stored, "m", "target", Reply("x"))
            assert ledger.reply(stored) == Reply("x") and ledger.reply(alike) is None


def test_the_log_is_folded_into_the_file_while_work_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_FOLD_BYTES", 50_000)
    with Ledger(tmp_path / "ledger.db") as ledger:
        for number in range(1500):
            ledger.add_reply(key(number), "m", "target", Reply("x" * 200))
        assert ledger._folding is not None
        ledger._folding.join()
        assert (tmp_path / "ledger.db").stat().st_size > 100_000
        assert ledger.counts()["replies"] == 1500


def test_nothing_but_the_ledger_is_left_behind(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.db") as ledger:
        ledger.add_rollout(key(1), "t", "c", 0, outcome("a"))
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.db"]


def test_a_limit_on_file_size_ends_in_a_clear_error(tmp_path: Path) -> None:
    """Works without root, unlike a small disk; the spare file can't help here, but nothing may be torn."""
    script = f"""
import resource
from pathlib import Path
from sharpen.core.chat import Reply
from sharpen.core.errors import StorageError
from sharpen.ledger.store import Ledger
resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 20, 2 << 20))
ledger = Ledger(Path({str(tmp_path)!r}) / "ledger.db")
for number in range(2000):
    try:
        ledger.add_reply(number.to_bytes(16, "big"), "m", "target", Reply("x" * 5000))
        ledger.flush()
    except StorageError as error:
        print(number, error)
        break
try:
    ledger.close()
except StorageError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    number, _, message = done.stdout.partition(" ")
    assert f"cannot write to the ledger {tmp_path / 'ledger.db'}" in message and "resume" in message
    assert "the disk had no room for 1 replies and 0 scored rollouts (5 kB): they are lost" in message
    with Ledger(tmp_path / "ledger.db") as again:
        assert again.counts()["replies"] == int(number)


def test_a_broken_ledger_stays_broken_until_it_is_opened_again(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    blocker = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    ledger._db.execute("PRAGMA busy_timeout=1")
    with pytest.raises(StorageError, match="cannot write to the ledger"):
        ledger.add_rollout(key(1), "t", "c", 0, outcome("a"))
        ledger.flush()
    with pytest.raises(StorageError):
        ledger.flush()
    blocker.execute("ROLLBACK")
    blocker.close()
    ledger.close()
    with Ledger(tmp_path / "ledger.db") as again:
        again.add_rollout(key(1), "t", "c", 0, outcome("a"))
        again.flush()


def test_processes_that_open_a_new_ledger_at_once_wait_for_each_other(tmp_path: Path) -> None:
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom sharpen.ledger.store import Ledger\n"
        "time.sleep(max(0.0, float(sys.argv[2]) - time.time()))\n"
        "for number in range(12):\n    Ledger(Path(sys.argv[1]) / f'{number}.db').close()\n"
    )
    start = str(time.time() + 1.0)
    command = [sys.executable, "-c", code, str(tmp_path), start]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(6)]
    said = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * 6, said


def test_replies_are_found_before_and_after_it_pays_to_know_them_by_heart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_IN_VAIN", 3)
    with Ledger(tmp_path / "ledger.db") as ledger:
        ledger.add_reply(key(1), "model", "target", Reply("before"))
    with Ledger(tmp_path / "ledger.db") as ledger:
        ledger.add_reply(key(2), "model", "target", Reply("not yet committed"))
        for unknown in range(10, 20):
            assert ledger.reply(key(unknown)) is None
        ledger.add_reply(key(3), "model", "target", Reply("since"))
        found = [ledger.reply(key(number)) for number in (1, 2, 3)]
        assert [reply and reply.text for reply in found] == ["before", "not yet committed", "since"]


def test_room_is_kept_without_a_file_that_could_be_left_behind(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.db") as ledger:
        ledger.add_reply(key(1), "model", "target", Reply("x" * 300_000))
        ledger.flush()
        assert all(ledger.claim(key(number)) for number in range(2, 10))
        assert ledger._reserve._size > 8 * 900_000
        assert os.fstat(ledger._reserve._file).st_blocks * 512 >= ledger._reserve._size
        assert {path.name for path in tmp_path.iterdir()} <= {
            "ledger.db", "ledger.db-wal", "ledger.db-shm", "ledger.db-claims"
        }  # fmt: skip
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.db"]


def test_a_damaged_ledger_is_named_and_not_a_traceback(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger(path) as ledger:
        for number in range(300):
            ledger.add_reply(bytes([number % 256, number // 256] * 8), "m", "target", Reply("x" * 200))
    whole = path.read_bytes()
    path.write_bytes(whole[:12_288] + b"\xff" * (len(whole) - 16_384) + whole[-4_096:])
    with pytest.raises(StorageError, match=r"ledger\.db"), Ledger(path) as ledger:
        for number in range(300):
            ledger.reply(bytes([number % 256, number // 256] * 8))
