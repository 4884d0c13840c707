"""Of several processes that want the same reply one pays for it, and the others take it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from sharpen.core.chat import Reply
from sharpen.ledger import store
from sharpen.ledger.claims import Claims
from sharpen.ledger.store import Ledger
from sharpen.testing.ledgers import key
from sharpen.testing.processes import end_of, start_child


def test_a_claim_ends_when_the_reply_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_IN_VAIN", 1)
    with Ledger(tmp_path / "ledger.db") as one, Ledger(tmp_path / "ledger.db") as other:
        assert other.reply(key(9)) is None, "from here on it goes by a filter of the keys that it has seen"
        assert one.claim(key(1)) and other.claim(key(2)) and not other.claim(key(1))
        one.add_reply(key(1), "m", "target", Reply("four"))
        one.flush()
        assert other.claim(key(1))
        stored = other.reply(key(1), claimed=True)
        assert stored is not None and stored.text == "four"


def test_who_fails_gives_the_claim_up(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.db") as one, Ledger(tmp_path / "ledger.db") as other:
        assert one.claim(key(1)) and not other.claim(key(1))
        one.release(key(1))
        assert other.claim(key(1))
        other.release(key(1))
        other.release(key(1))
        assert one.claim(key(1))
        one.close()
        assert other.claim(key(1))


def test_a_process_that_is_killed_holds_nobody_up(tmp_path: Path) -> None:
    def claim() -> None:
        Ledger(tmp_path / "ledger.db").claim(key(1))
        (tmp_path / "claimed").touch()
        time.sleep(60)

    with Ledger(tmp_path / "ledger.db") as ledger:
        child = start_child(claim)
        while not (tmp_path / "claimed").exists():
            time.sleep(0.01)
        assert not ledger.claim(key(1))
        os.kill(child, signal.SIGKILL)
        assert end_of(child) == -signal.SIGKILL
        assert ledger.claim(key(1))


def test_nothing_is_left_beside_a_ledger_that_is_closed(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.db") as ledger:
        assert ledger.claim(key(1))
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.db"]


def test_a_process_forked_off_by_one_that_is_killed_holds_nobody_up(tmp_path: Path) -> None:
    """Locks of an open file belong to all who have it open, a grandchild that knows nothing of them included."""

    def claim() -> None:
        mine = Ledger(tmp_path / "ledger.db")
        assert mine.claim(key(1))
        grandchild = start_child(lambda: time.sleep(60))
        (tmp_path / "claimed.part").write_text(str(grandchild))
        (tmp_path / "claimed.part").rename(tmp_path / "claimed")
        time.sleep(60)

    with Ledger(tmp_path / "ledger.db") as ledger:
        child = start_child(claim)
        while not (tmp_path / "claimed").exists():
            time.sleep(0.01)
        assert not ledger.claim(key(1))
        os.kill(child, signal.SIGKILL)
        assert end_of(child) == -signal.SIGKILL
        try:
            assert ledger.claim(key(1))
        finally:
            os.kill(int((tmp_path / "claimed").read_text()), signal.SIGKILL)


def test_two_processes_that_come_and_go_never_hold_the_same_claim(tmp_path: Path) -> None:
    """The last one to close a ledger removes the file of the claims, perhaps while another opens it."""

    def come_and_go() -> None:
        for _ in range(150):
            claims = Claims(tmp_path / "ledger.db")
            if claims.take(key(1)):
                os.close(os.open(tmp_path / "alone", os.O_CREAT | os.O_EXCL))
                os.unlink(tmp_path / "alone")
            claims.close()

    children = [start_child(come_and_go) for _ in range(4)]
    assert [end_of(child) for child in children] == [0] * 4
    assert not list(tmp_path.iterdir())
