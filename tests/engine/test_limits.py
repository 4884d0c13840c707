"""The limiter: never more under way than allowed, one cut per burst, pauses kept by all, and never a deadlock."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sharpen.engine.limits import Limiter
from sharpen.testing.clock import run_simulated


def test_starts_at_its_cap_and_holds_it() -> None:
    async def main() -> int:
        limiter = Limiter(4)
        most = 0

        async def call() -> None:
            nonlocal most
            async with limiter.slot() as slot:
                most = max(most, limiter.in_flight)
                await asyncio.sleep(1)
                slot.succeeded()

        await asyncio.gather(*(call() for _ in range(20)))
        assert asyncio.get_running_loop().time() == pytest.approx(5.0)
        assert limiter.history == ()
        return most

    assert run_simulated(main()) == 4


def test_a_burst_of_refusals_cuts_once() -> None:
    async def main() -> Limiter:
        limiter = Limiter(64)

        async def call() -> None:
            async with limiter.slot() as slot:
                await asyncio.sleep(1)
                slot.throttled()

        await asyncio.gather(*(call() for _ in range(64)))
        return limiter

    limiter = run_simulated(main())
    assert limiter.limit == 44
    assert [change.limit for change in limiter.history] == [44]


def test_refusals_that_trickle_in_for_calls_sent_together_cut_once() -> None:
    async def main() -> Limiter:
        limiter = Limiter(10)

        async def call(lasts: float) -> None:
            async with limiter.slot() as slot:
                await asyncio.sleep(lasts)
                slot.throttled()

        await asyncio.gather(*(call(1.0 + number) for number in range(10)))
        return limiter

    assert run_simulated(main()).limit == 7


def test_refusals_of_later_calls_cut_again_but_not_below_one() -> None:
    async def main() -> Limiter:
        limiter = Limiter(8)
        for _ in range(20):
            async with limiter.slot() as slot:
                await asyncio.sleep(1)
                slot.throttled()
        return limiter

    limiter = run_simulated(main())
    assert limiter.limit == 1
    assert [change.limit for change in limiter.history] == [5, 3, 2, 1]


def test_quick_refusals_within_the_cool_down_cut_once() -> None:
    async def main() -> Limiter:
        limiter = Limiter(100, cool_down=1.0)
        for _ in range(50):
            async with limiter.slot() as slot:
                await asyncio.sleep(0.01)
                slot.throttled()
        return limiter

    assert run_simulated(main()).limit == 70


def test_creeps_up_by_about_one_per_round_of_successes() -> None:
    async def main() -> Limiter:
        limiter = Limiter(16)
        limiter.throttled(0.0)
        assert limiter.limit == 11

        async def call() -> None:
            async with limiter.slot() as slot:
                await asyncio.sleep(1)
                slot.succeeded()

        await asyncio.gather(*(call() for _ in range(11 + 12 + 13)))
        assert 12 <= limiter.limit <= 14
        await asyncio.gather(*(call() for _ in range(200)))
        return limiter

    assert run_simulated(main()).limit == 16


def test_a_limit_that_is_not_used_does_not_grow() -> None:
    async def main() -> Limiter:
        limiter = Limiter(16)
        limiter.throttled(0.0)
        for _ in range(200):
            async with limiter.slot() as slot:
                slot.succeeded()
        return limiter

    assert run_simulated(main()).limit == 11


def test_nothing_is_sent_before_the_endpoints_wish_is_over() -> None:
    async def main() -> list[float]:
        limiter = Limiter(8)
        clock = asyncio.get_running_loop().time
        sent: list[float] = []

        async def call(refused: bool) -> None:
            async with limiter.slot() as slot:
                sent.append(clock())
                await asyncio.sleep(1)
                if refused:
                    slot.throttled(10.0)

        await asyncio.gather(call(True), *(call(False) for _ in range(20)))
        return sent

    sent = run_simulated(main())
    assert sent[:8] == [0.0] * 8
    assert min(sent[8:]) >= 11.0


def test_a_caller_served_in_the_moment_the_pause_begins_waits_too() -> None:
    async def main() -> float:
        limiter = Limiter(1)
        await limiter.acquire()
        next_one = asyncio.create_task(limiter.acquire())
        await asyncio.sleep(1)
        limiter.release()
        limiter.pause(10.0)
        return await next_one

    assert run_simulated(main()) == pytest.approx(11.0)


def test_a_longer_wish_outlasts_a_shorter_one() -> None:
    async def main() -> float:
        limiter = Limiter(2)
        limiter.pause(10.0)
        limiter.pause(3.0)
        return await limiter.acquire()

    assert run_simulated(main()) == pytest.approx(10.0)


def test_a_wish_beyond_all_patience_does_not_hold_the_others_back() -> None:
    async def main() -> float:
        limiter = Limiter(2, longest_pause=60.0)
        limiter.throttled(0.0, 86_400.0)
        return await limiter.acquire()

    assert run_simulated(main()) == 0.0


def test_a_cancelled_waiter_leaves_its_turn_to_the_next() -> None:
    async def main() -> None:
        limiter = Limiter(1)
        await limiter.acquire()
        first = asyncio.create_task(limiter.acquire())
        second = asyncio.create_task(limiter.acquire())
        await asyncio.sleep(0)
        limiter.release()
        first.cancel()
        await second
        assert first.cancelled()
        assert limiter.in_flight == 1

    run_simulated(main())


def test_a_cap_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Limiter(0)


@dataclass(frozen=True)
class Call:
    arrives: float
    lasts: float
    refused: bool
    retry_after: float | None
    cancelled_after: float | None


_times = st.integers(0, 40).map(lambda tenths: tenths / 10)
_calls = st.builds(
    Call,
    arrives=_times,
    lasts=_times,
    refused=st.booleans(),
    retry_after=st.none() | _times,
    cancelled_after=st.none() | _times,
)


@settings(max_examples=150, deadline=None)
@given(cap=st.integers(1, 6), calls=st.lists(_calls, max_size=25))
def test_whatever_happens_the_limit_holds_and_everything_ends(cap: int, calls: list[Call]) -> None:
    async def main() -> None:
        limiter = Limiter(cap)
        clock = asyncio.get_running_loop().time
        quiet_until = 0.0

        async def one(call: Call) -> None:
            nonlocal quiet_until
            await asyncio.sleep(call.arrives)
            async with limiter.slot() as slot:
                assert limiter.in_flight <= cap
                assert clock() >= quiet_until - 1e-6
                await asyncio.sleep(call.lasts)
                if call.refused:
                    slot.throttled(call.retry_after)
                    quiet_until = max(quiet_until, clock() + (call.retry_after or 0.0))
                else:
                    before = limiter.limit
                    slot.succeeded()
                    assert limiter.limit >= before
                assert 1 <= limiter.limit <= cap

        tasks = [asyncio.create_task(one(call)) for call in calls]
        for task, call in zip(tasks, calls, strict=True):
            if call.cancelled_after is not None:
                asyncio.get_running_loop().call_later(call.cancelled_after, task.cancel)
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [r for r in results if r is not None and not isinstance(r, asyncio.CancelledError)] == []
        assert limiter.in_flight == 0
        await limiter.acquire()

    run_simulated(main())


@settings(max_examples=50, deadline=None)
@given(cap=st.integers(1, 8), cuts=st.integers(0, 5), calls=st.integers(1, 40))
def test_after_cuts_no_new_call_starts_above_the_limit(cap: int, cuts: int, calls: int) -> None:
    async def main() -> None:
        limiter = Limiter(cap, cool_down=0.0)
        for _ in range(cuts):
            await asyncio.sleep(1)
            limiter.throttled(asyncio.get_running_loop().time())

        async def call() -> None:
            async with limiter.slot():
                assert limiter.in_flight <= limiter.limit
                await asyncio.sleep(1)

        await asyncio.gather(*(call() for _ in range(calls)))

    run_simulated(main())
