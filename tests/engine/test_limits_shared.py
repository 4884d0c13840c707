"""A limit that several processes share: it holds over all of them, and what a killed one held comes back."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sharpen.engine.limits import Limiter
from sharpen.engine.sharing import SharedQuota
from sharpen.testing.processes import end_of, start_child

SOON = 2.0


@contextmanager
def sharing(folder: Path, cap: int, processes: int = 1) -> Iterator[list[Limiter]]:
    """Limiters that share a limit as if each were in a process of its own."""
    quotas = [SharedQuota(folder, "endpoint", cap) for _ in range(processes)]
    try:
        yield [Limiter(cap, quota=quota) for quota in quotas]
    finally:
        for quota in quotas:
            quota.close()


@contextmanager
def another(folder: Path, cap: int, work: Callable[[Limiter], None]) -> Iterator[int]:
    """A real process that shares the limit, does `work`, and then waits to be killed."""
    read, write = os.pipe()

    async def main() -> None:
        with sharing(folder, cap) as (limiter,):
            await asyncio.gather(*(limiter.acquire() for _ in range(cap)))
            work(limiter)
            os.write(write, b".")
            await asyncio.sleep(60)

    child = start_child(lambda: asyncio.run(main()))
    try:
        assert os.read(read, 1) == b"."
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        end_of(child)
        os.close(read)
        os.close(write)


def test_together_they_never_pass_the_limit(tmp_path: Path) -> None:
    async def main() -> int:
        under_way = most = done = 0
        choose = random.Random(1)

        async def call(limiter: Limiter) -> None:
            nonlocal under_way, most, done
            await asyncio.sleep(choose.random() / 20)
            async with limiter.slot() as slot:
                under_way += 1
                most = max(most, under_way)
                assert under_way <= 5
                try:
                    await asyncio.sleep(choose.random() / 100)
                    slot.succeeded()
                    done += 1
                finally:
                    under_way -= 1

        with sharing(tmp_path, 5, 4) as limiters:
            calls = [asyncio.create_task(call(limiter)) for limiter in limiters for _ in range(30)]
            for one in calls[::7]:
                asyncio.get_running_loop().call_later(choose.random() / 20, one.cancel)
            await asyncio.gather(*calls, return_exceptions=True)
            assert done >= 120 - len(calls[::7]) and [limiter.in_flight for limiter in limiters] == [0] * 4
        return most

    assert asyncio.run(main()) == 5


def test_who_comes_late_gets_a_share(tmp_path: Path) -> None:
    async def main() -> tuple[float, float]:
        async def calls(limiter: Limiter, number: int) -> float:
            async def call() -> None:
                async with limiter.slot():
                    await asyncio.sleep(0.02)

            await asyncio.gather(*(call() for _ in range(number)))
            return time.monotonic()

        with sharing(tmp_path, 4, 2) as (early, late):
            first = asyncio.create_task(calls(early, 100))
            await asyncio.sleep(0.05)
            began = time.monotonic()
            second = await calls(late, 10)
            return second - began, await first - began

    late, early = asyncio.run(main())
    assert late < early / 2


def test_a_refusal_and_a_pause_in_one_process_hold_for_all(tmp_path: Path) -> None:
    def refused(limiter: Limiter) -> None:
        limiter.throttled(time.monotonic(), retry_after=0.4)
        for _ in range(10):
            limiter.release()

    async def main() -> None:
        with sharing(tmp_path, 10) as (limiter,):
            assert limiter.limit == 10
            before = time.monotonic()
            with another(tmp_path, 10, refused):
                assert limiter.limit == 7 and limiter.history == ()
                await asyncio.wait_for(limiter.acquire(), SOON)
                assert time.monotonic() - before >= 0.4

    asyncio.run(main())


def test_what_a_killed_process_held_comes_back(tmp_path: Path) -> None:
    async def main() -> None:
        with sharing(tmp_path, 3) as (limiter,):
            with another(tmp_path, 3, lambda limiter: None), pytest.raises(TimeoutError):
                await asyncio.wait_for(limiter.acquire(), 0.3)
            await asyncio.wait_for(asyncio.gather(*(limiter.acquire() for _ in range(3))), SOON)
            assert limiter.in_flight == 3

    asyncio.run(main())


def test_a_call_costs_microseconds(tmp_path: Path) -> None:
    async def main() -> float:
        with sharing(tmp_path, 64, 4) as limiters:
            began = time.process_time()
            for _ in range(2000):
                async with limiters[0].slot() as slot:
                    slot.succeeded()
            return (time.process_time() - began) / 2000

    assert min(asyncio.run(main()) for _ in range(3)) < 20e-6
