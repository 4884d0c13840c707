"""What every ledger must hold to, as a suite that another store's tests inherit.

    class TestMyLedger(LedgerContract):
        def open(self, path: Path) -> Ledger:
            return MyLedger(path)

`small_disk` is a file system that fills up at once, for tests of what happens then.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from sharpen.core.chat import Message, Reply
from sharpen.core.errors import StorageError
from sharpen.core.outcome import Failure, FailureKind, Outcome, scored
from sharpen.core.usage import Usage
from sharpen.ledger.store import Ledger
from sharpen.testing.processes import end_of, in_child, start_child

AWKWARD = 'line\nbreak\ttab "quote" \\ nul\0 ß 日本 🎈 \u2028 \ufeff'


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Path]:
    """A file system of `size` bytes at `folder`. Skips the test where mounting one is not allowed."""
    folder.mkdir(parents=True, exist_ok=True)
    mount, unmount = shutil.which("mount"), shutil.which("umount")
    if mount is None or unmount is None or os.geteuid() != 0:
        pytest.skip("mounting a small file system takes root")
    made = subprocess.run([mount, "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True)
    if made.returncode:
        pytest.skip(f"mounting a small file system is not allowed here: {made.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run([unmount, "--lazy", str(folder)], check=True)


def key(number: int) -> bytes:
    return number.to_bytes(16, "big")


def outcome(item: str, answer: str = "yes") -> Outcome:
    return scored(item, 1.0, soft=0.5, answer=answer)


class LedgerContract:
    """Inherit, and give `open`. A ledger is used from one thread; several may be open on one path."""

    def open(self, path: Path) -> Ledger:
        raise NotImplementedError

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return tmp_path / "somewhere" / "ledger.db"

    def test_a_rollout_comes_back_as_it_was_put_in(self, path: Path) -> None:
        usage = {"target": Usage(2, 30, 10, 7, 0.00125), "judge": Usage(1, 5, 0, 1, None)}
        trajectory = (Message("user", AWKWARD), Message("assistant", "ok"))
        measures = {"seconds": 0.1 + 0.2, "tokens " + AWKWARD: -7.0}
        text = ("item " + AWKWARD, 0.25, 0.75, AWKWARD, "feedback " + AWKWARD)
        put = Outcome(*text, trajectory, usage, measures=measures)
        with self.open(path) as ledger:
            ledger.add_rollout(key(1), "task", "candidate", 3, put)
            assert ledger.outcome(key(1)) == put
            found = ledger.scores([key(1)])[key(1)]
            assert (found.hard, found.soft, dict(found.usage), found.measures) == (0.25, 0.75, usage, measures)
        with self.open(path) as again:
            assert again.outcome(key(1)) == put

    def test_a_reply_comes_back_as_it_was_put_in(self, path: Path) -> None:
        call = {"id": "1", "function": {"name": "look", "arguments": '{"at": "ß"}'}}
        put = Reply(AWKWARD, Usage(1, 3, 2, 4, None), "tool_calls", tool_calls=(call,))
        with self.open(path) as ledger:
            ledger.add_reply(key(1), "model", "target", put, [["user", AWKWARD]])
            assert ledger.reply(key(1)) == put
        with self.open(path) as again:
            assert again.reply(key(1)) == put

    def test_what_is_not_there_is_absent(self, path: Path) -> None:
        with self.open(path) as ledger:
            ledger.add_rollout(key(1), "task", "candidate", 0, outcome("a"))
            assert list(ledger.scores([key(1), key(2)])) == [key(1)]
            assert ledger.scores([]) == {}
            assert ledger.outcome(key(2)) is None
            assert ledger.reply(key(1)) is None, "rollouts and replies are different things"

    def test_more_keys_than_fit_into_one_question(self, path: Path) -> None:
        with self.open(path) as ledger:
            for number in range(0, 3000, 2):
                ledger.add_rollout(key(number), "task", "candidate", 0, outcome(str(number)))
            assert set(ledger.scores(map(key, range(3000)))) == set(map(key, range(0, 3000, 2)))
            assert ledger.counts()["rollouts"] == 1500

    def test_a_failed_rollout_is_refused(self, path: Path) -> None:
        failed = Outcome("a", None, None, failure=Failure(FailureKind.TIMEOUT, "late"))
        with self.open(path) as ledger:
            with pytest.raises(ValueError, match="failed"):
                ledger.add_rollout(key(1), "task", "candidate", 0, failed)
            assert ledger.counts()["rollouts"] == 0

    def test_what_was_paid_for_first_stays(self, path: Path) -> None:
        with self.open(path) as ledger:
            for answer in ("first", "second"):
                ledger.add_rollout(key(1), "task", "candidate", 0, outcome("a", answer))
                ledger.add_reply(key(1), "model", "target", Reply(answer, Usage(1, 1, 0, 1, 0.5)))
                ledger.flush()
            stored, reply = ledger.outcome(key(1)), ledger.reply(key(1))
            assert stored is not None and stored.answer == "first"
            assert reply is not None and reply.text == "first"
            assert ledger.counts() == {"rollouts": 1, "replies": 1}

    def test_half_a_surrogate_pair_does_no_harm_to_the_rest(self, path: Path) -> None:
        """Models cut off in the middle of an emoji do send such texts."""
        with self.open(path) as ledger:
            ledger.add_rollout(key(1), "task", "candidate", 0, outcome("a", "half \ud83d"))
            ledger.add_rollout(key(2), "task", "candidate", 0, outcome("b"))
            ledger.flush()
            stored = ledger.outcome(key(1))
            assert stored is not None and stored.answer == "half \ud83d"
        with self.open(path) as again:
            assert set(again.scores([key(1), key(2)])) == {key(1), key(2)}

    def test_everything_added_before_the_event_loop_waits_survives_a_kill(self, path: Path) -> None:
        async def pay() -> None:
            ledger = self.open(path)
            for number in range(100):
                ledger.add_reply(key(number), "model", "target", Reply("x"))
                ledger.add_rollout(key(number), "task", "candidate", 0, outcome(str(number)))
                await asyncio.sleep(0)
            await asyncio.sleep(0.001)
            os.kill(os.getpid(), signal.SIGKILL)

        assert in_child(lambda: asyncio.run(pay())) == -signal.SIGKILL
        with self.open(path) as again:
            assert again.counts() == {"rollouts": 100, "replies": 100}

    def test_what_was_flushed_survives_a_kill(self, path: Path) -> None:
        def pay() -> None:
            ledger = self.open(path)
            for number in range(40):
                ledger.add_rollout(key(number), "task", "candidate", 0, outcome(str(number)))
            ledger.flush()
            os.kill(os.getpid(), signal.SIGKILL)

        assert in_child(pay) == -signal.SIGKILL
        with self.open(path) as again:
            assert set(again.scores(map(key, range(40)))) == set(map(key, range(40)))

    def test_processes_writing_at_once_lose_nothing(self, path: Path) -> None:
        def pay(start: int) -> None:
            with self.open(path) as ledger:
                for number in range(start, start + 150):
                    ledger.add_rollout(key(number), "task", "candidate", 0, outcome(str(number)))
                    ledger.add_reply(key(number), "model", "target", Reply("x"))
                    if number % 7 == 0:
                        ledger.flush()

        children = [start_child(partial(pay, start)) for start in (0, 100, 200)]
        assert [end_of(child) for child in children] == [0, 0, 0]
        with self.open(path) as again:
            assert again.counts() == {"rollouts": 350, "replies": 350}

    def test_a_rollout_of_another_process_is_seen_at_once(self, path: Path) -> None:
        with self.open(path) as one, self.open(path) as other:
            one.add_rollout(key(1), "task", "candidate", 0, outcome("a"))
            one.flush()
            assert key(1) in other.scores([key(1)])

    def test_a_full_disk_loses_nothing_that_was_paid_for(self, tmp_path: Path) -> None:
        """Replies that come back after the disk filled up were under way: they are stored too, then work is refused."""
        with small_disk(tmp_path / "disk", 3 << 20) as disk:
            ledger = self.open(disk / "ledger.db")
            added, refused = 0, 0
            while refused < 5:
                assert added < 2000, "the disk never filled up"
                try:
                    ledger.add_reply(key(added), "model", "target", Reply("x" * 5000))
                    ledger.flush()
                except StorageError as error:
                    refused += 1
                    assert "ledger.db" in str(error) and "resume" in str(error)
                added += 1
            with pytest.raises(StorageError):
                ledger.reply(key(999_999))
            ledger.close()
            subprocess.run(["mount", "-o", "remount,size=16m", str(disk)], check=True)
            with self.open(disk / "ledger.db") as again:
                assert again.counts()["replies"] == added
                again.add_reply(key(added), "model", "target", Reply("x" * 5000))
                again.flush()

    def test_a_folder_that_cannot_be_written_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(StorageError, match=r"ledger\.db"):
            self.open(tmp_path / "file" / "ledger.db")

    def test_a_file_that_is_no_ledger_is_named(self, path: Path) -> None:
        path.parent.mkdir()
        path.write_text("Dear diary, " * 1000)
        with pytest.raises(StorageError, match=r"ledger\.db"):
            self.open(path)
