"""Many pieces of work at once: started in order, never too many, and stopped in good order after an error."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharpen.engine.executor import run_all, together
from sharpen.testing.clock import run_simulated


@given(st.lists(st.floats(0, 3), max_size=20), st.integers(1, 8))
def test_everything_is_done_once_and_never_too_much_at_once(lasts: list[float], at_once: int) -> None:
    begun: list[int] = []
    ended: list[int] = []

    async def work(number: int) -> None:
        begun.append(number)
        assert len(begun) - len(ended) <= at_once
        await asyncio.sleep(lasts[number])
        ended.append(number)

    run_simulated(run_all(range(len(lasts)), work, at_once=at_once))
    assert begun == list(range(len(lasts))) and sorted(ended) == begun


def test_after_an_error_nothing_new_begins_and_the_rest_finishes() -> None:
    begun: list[int] = []
    ended: list[int] = []

    async def work(number: int) -> None:
        begun.append(number)
        await asyncio.sleep(1 if number == 1 else 2)
        if number in (1, 2):
            raise ValueError(f"piece {number}")
        ended.append(number)

    with pytest.raises(ValueError, match="piece 1"):
        run_simulated(run_all(range(10), work, at_once=3))
    assert begun == [0, 1, 2] and ended == [0]


def test_there_are_only_as_many_tasks_as_may_run_at_once() -> None:
    most = 0

    async def work(_: int) -> None:
        nonlocal most
        most = max(most, len(asyncio.all_tasks()))
        await asyncio.sleep(0)

    run_simulated(run_all(range(5000), work, at_once=4))
    assert most <= 5


def test_cancelling_cancels_what_is_under_way() -> None:
    cancelled: list[int] = []

    async def work(number: int) -> None:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            cancelled.append(number)
            raise

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await run_all(range(10), work, at_once=3)
        await asyncio.sleep(0)

    run_simulated(main())
    assert cancelled == [0, 1, 2]


def test_together_gives_results_in_order() -> None:
    async def after(seconds: float) -> float:
        await asyncio.sleep(seconds)
        return seconds

    async def main() -> list[float]:
        return await together(after(3), after(1), after(2))

    assert run_simulated(main()) == [3, 1, 2]


def test_together_raises_the_first_error_by_place_once_all_are_done() -> None:
    """Work that goes on behind the back of whoever asked for it would spend a budget that is meant for something else."""
    ended: list[str] = []

    async def work(name: str, seconds: float, fails: bool) -> None:
        await asyncio.sleep(seconds)
        ended.append(name)
        if fails:
            raise ValueError(name)

    async def main() -> None:
        await together(work("a", 3, False), work("b", 2, True), work("c", 1, True))

    with pytest.raises(ValueError, match="b"):
        run_simulated(main())
    assert ended == ["c", "b", "a"]
