"""The bridge to optimizers that run in a thread: errors end them for good, being cancelled too, and they print nothing."""

from __future__ import annotations

import asyncio
import sys
import threading

import pytest

from sharpen.core.errors import BudgetExhausted, UsageError
from sharpen.trainers.adapters.bridge import Bridge, Ended, in_thread
from sharpen.trainers.adapters.host import needed


async def refused() -> None:
    raise BudgetExhausted("the cap of 3 calls is reached")


async def granted(value: int) -> int:
    await asyncio.sleep(0)
    return value


def test_wishes_are_granted_one_after_another_on_the_event_loop() -> None:
    threads: list[int] = []

    async def whose() -> int:
        threads.append(threading.get_ident())
        return len(threads)

    def work(bridge: Bridge) -> list[int]:
        assert threading.current_thread() is not threading.main_thread()
        return [bridge.call(whose) for _ in range(3)]

    assert asyncio.run(in_thread(work)) == [1, 2, 3]
    assert set(threads) == {threading.get_ident()}


def test_an_optimizer_that_carries_on_after_any_error_is_ended_all_the_same() -> None:
    reached: list[str] = []

    def stubborn(bridge: Bridge) -> str:
        for _ in range(3):
            try:
                bridge.call(refused)
            except Exception:
                reached.append("caught")
        return "finished"

    def blind(bridge: Bridge) -> str:
        for _ in range(3):
            try:
                bridge.call(refused)
            except BaseException:
                reached.append("ended")
        with pytest.raises(Ended):
            bridge.call(granted, 1)
        return "finished"

    for work in (stubborn, blind):
        with pytest.raises(BudgetExhausted, match="cap of 3 calls"):
            asyncio.run(in_thread(work))
    assert reached == ["ended"] * 3


def test_an_error_of_the_optimizers_own_keeps_its_kind() -> None:
    def broken(bridge: Bridge) -> int:
        bridge.call(granted, 1)
        raise ZeroDivisionError("by the optimizer")

    with pytest.raises(ZeroDivisionError, match="by the optimizer"):
        asyncio.run(in_thread(broken))


@pytest.mark.timeout(20)
def test_being_cancelled_gives_up_the_wish_under_way_and_leaves_no_thread_behind() -> None:
    given_up: list[str] = []

    async def endless() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            given_up.append("wish")
            raise

    def work(bridge: Bridge) -> None:
        try:
            bridge.call(endless)
        finally:
            given_up.append("optimizer")

    async def go() -> None:
        running = asyncio.ensure_future(in_thread(work))
        await asyncio.sleep(0.05)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(go())
    assert sorted(given_up) == ["optimizer", "wish"]


def test_what_the_optimizer_prints_goes_nowhere_and_what_others_print_does_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def speak() -> None:
        print("job")

    def loud(bridge: Bridge) -> None:
        print("optimizer")
        print("optimizer", file=sys.stderr)
        bridge.call(speak)

    before = sys.stdout, sys.stderr
    asyncio.run(in_thread(loud))
    assert (sys.stdout, sys.stderr) == before
    assert capsys.readouterr() == ("job\n", "")


def test_a_missing_package_is_named_with_what_to_install() -> None:
    with pytest.raises(UsageError, match=r"needs the package no-such-thing: pip install 'sharpen\[dspy\]'"):
        needed("no-such-thing", "dspy")
