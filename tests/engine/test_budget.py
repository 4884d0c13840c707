"""Caps are never passed, whatever is under way; nothing deadlocks; what was set aside is there in the end."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sharpen.core.errors import BudgetExhausted
from sharpen.core.usage import Usage
from sharpen.engine.budget import Budget, Caps
from sharpen.testing.clock import run_simulated


@dataclass
class Traffic:
    """Many calls at once, each with a bound and a cost below it; some fail, some are cancelled half way."""

    budget: Budget
    random: random.Random
    flight: int = 64
    most_tokens: int = 200
    most_money: float = 0.01
    trouble: float = 0.2
    sent: int = 0
    refused: list[tuple[int, float]] = field(default_factory=list)

    async def run(self, calls: int) -> None:
        queue = iter(range(calls))

        async def worker() -> None:
            for _ in queue:
                await self.call()

        await asyncio.gather(*(worker() for _ in range(self.flight)))

    async def call(self) -> None:
        draw = self.random
        tokens, money = draw.randint(1, self.most_tokens), draw.uniform(0, self.most_money)
        try:
            hold = await self.budget.hold(tokens, money)
        except BudgetExhausted:
            self.refused.append((tokens, money))
            return
        self.sent += 1
        self.check()
        usage = Usage(1, draw.randint(0, tokens), 0, 0, draw.uniform(0, money))
        try:
            async with asyncio.timeout(draw.uniform(0, 2) if draw.random() < self.trouble else None):
                await asyncio.sleep(draw.uniform(0, 2))
            if draw.random() < self.trouble:
                usage = Usage()
        except TimeoutError:
            usage = Usage()
        finally:
            await self.budget.settle(hold, usage, "target")
        self.check()

    def check(self) -> None:
        caps, spent, held = self.budget.caps, self.budget.spent, self.budget._held
        assert caps.calls is None or spent.calls + held.calls <= caps.calls
        assert caps.tokens is None or spent.tokens + held.tokens <= caps.tokens
        assert caps.money is None or (spent.money or 0) + held.money <= caps.money + 1e-9


def never(_: object = None) -> float:
    return 0.0


caps = st.builds(
    Caps,
    calls=st.none() | st.integers(1, 300),
    tokens=st.none() | st.integers(1, 20_000),
    money=st.none() | st.floats(0.001, 1.0),
)


@settings(max_examples=60, deadline=None)
@given(caps, st.integers(0, 2**32), st.integers(1, 64))
def test_no_cap_is_passed_at_any_instant(limits: Caps, seed: int, flight: int) -> None:
    traffic = Traffic(Budget(limits, never), random.Random(seed), flight)
    run_simulated(traffic.run(400))
    held = traffic.budget._held
    assert (held.calls, held.tokens) == (0, 0) and held.money == pytest.approx(0)
    assert traffic.sent + len(traffic.refused) == 400


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(["calls", "tokens", "money"]))
def test_a_call_is_refused_only_when_it_would_not_have_fitted(seed: int, which: str) -> None:
    limits = {"calls": Caps(calls=50), "tokens": Caps(tokens=3000), "money": Caps(money=0.3)}[which]
    traffic = Traffic(Budget(limits, never), random.Random(seed), trouble=0.0)
    run_simulated(traffic.run(2000))
    spent = traffic.budget.spent
    assert traffic.refused
    left = {
        "calls": 50 - spent.calls,
        "tokens": 3000 - spent.tokens - max(tokens for tokens, _ in traffic.refused) + 1,
        "money": 0.3 - (spent.money or 0) - max(money for _, money in traffic.refused),
    }[which]
    assert left <= 0, "the budget was left unused"


def test_calls_wait_for_holds_to_shrink_instead_of_giving_up() -> None:
    """64 calls may need 100 each, use 10 each, and all fit into 1000 one after another."""

    async def main() -> int:
        budget = Budget(Caps(tokens=1000), never)

        async def call() -> None:
            hold = await budget.hold(100, None)
            await asyncio.sleep(1)
            await budget.settle(hold, Usage(1, 10, 0, 0, None), "target")

        await asyncio.gather(*(call() for _ in range(64)))
        return budget.spent.tokens

    assert run_simulated(main()) == 640


def test_a_caller_that_is_cancelled_while_it_waits_holds_nothing() -> None:
    async def main() -> None:
        budget = Budget(Caps(calls=2), never)
        first = await budget.hold(1, None)
        second = await budget.hold(1, None)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await budget.hold(1, None)
        await budget.settle(first, Usage(), "target")
        third = await budget.hold(1, None)
        await budget.settle(second, Usage(1), "target")
        await budget.settle(third, Usage(1), "target")
        with pytest.raises(BudgetExhausted):
            await budget.hold(1, None)

    run_simulated(main())


def test_nobody_overtakes_those_who_wait() -> None:
    """Else which call a cap refuses would hang on how fast the others are, and a resumed job might be refused another."""

    async def main() -> list[str]:
        budget = Budget(Caps(tokens=100), never)
        order: list[str] = []

        async def call(name: str, tokens: int) -> None:
            hold = await budget.hold(tokens, None)
            order.append(name)
            await asyncio.sleep(1)
            await budget.settle(hold, Usage(1, 10), "target")

        await asyncio.gather(call("a", 60), call("large", 70), call("small", 20), call("tiny", 1))
        return order

    assert run_simulated(main()) == ["a", "large", "small", "tiny"]


def test_what_is_set_aside_can_be_used_only_for_closing() -> None:
    async def main() -> None:
        budget = Budget(Caps(calls=10), never)
        budget.set_aside(4)
        for _ in range(6):
            await budget.settle(await budget.hold(1, None), Usage(1), "target")
        with pytest.raises(BudgetExhausted, match="the cap of 10 calls"):
            await budget.hold(1, None)
        with pytest.raises(BudgetExhausted, match="4 set aside"):
            budget.admit(1)
        with budget.closing():
            budget.admit(4)
            for _ in range(4):
                await budget.settle(await budget.hold(1, None), Usage(1), "target")
            with pytest.raises(BudgetExhausted):
                await budget.hold(1, None)
        assert budget.aside == 4

    run_simulated(main())


@pytest.mark.parametrize("limits", [Caps(tokens=10_000), Caps(money=1.0)])
def test_tokens_and_money_for_the_closing_calls_are_kept_as_well(limits: Caps) -> None:
    async def main() -> None:
        budget = Budget(limits, never)
        budget.set_aside(40)
        batches = 0
        with pytest.raises(BudgetExhausted):
            while True:
                budget.admit(5)
                batches += 1
                for _ in range(5):
                    await budget.settle(await budget.hold(120, 0.012), Usage(1, 100, 0, 0, 0.01), "target")
        assert batches >= 9
        with budget.closing():
            for _ in range(40):
                await budget.settle(await budget.hold(120, 0.012), Usage(1, 100, 0, 0, 0.01), "target")

    run_simulated(main())


@pytest.mark.parametrize("limits", [Caps(tokens=60_000), Caps(money=6.0)])
def test_dear_questions_to_the_optimizer_do_not_swell_what_is_set_aside(limits: Caps) -> None:
    """The closing measurement consists of rollouts; a few long reflections say nothing about its cost."""

    async def main() -> None:
        budget = Budget(limits, never)
        budget.set_aside(500)
        for _ in range(20):
            await budget.settle(await budget.hold(30, 0.003), Usage(1, 20, 0, 0, 0.002), "target")
        for _ in range(8):
            await budget.settle(await budget.hold(5000, 0.5), Usage(1, 900, 0, 100, 0.1), "optimizer")
        budget.admit(1000)

    run_simulated(main())


@pytest.mark.parametrize("limits", [Caps(tokens=1000), Caps(money=0.1)])
def test_a_batch_that_is_likely_to_cost_too_much_is_not_begun(limits: Caps) -> None:
    budget = Budget(limits, never)
    budget.charge(Usage(5, 90, 0, 10, 0.01), "target")
    budget.admit(45)
    with pytest.raises(BudgetExhausted, match="leaves no room"):
        budget.admit(46)


def test_a_batch_is_admitted_whole_or_not_at_all() -> None:
    budget = Budget(Caps(calls=10), never)
    budget.charge(Usage(4), "target")
    budget.admit(6)
    with pytest.raises(BudgetExhausted, match="4 used"):
        budget.admit(7)


def test_a_failed_call_gives_its_hold_back() -> None:
    async def main() -> None:
        budget = Budget(Caps(calls=1, tokens=100, money=1.0), never)
        for _ in range(5):
            await budget.settle(await budget.hold(100, 1.0), Usage(), "target")
        assert budget.spent == Usage()

    run_simulated(main())


def test_without_caps_nothing_is_refused() -> None:
    async def main() -> None:
        budget = Budget(Caps(), never)
        holds = [await budget.hold(10**9, None) for _ in range(100)]
        for hold in holds:
            await budget.settle(hold, Usage(1, 10**9, 0, 0, None), "target")
        budget.admit(10**9)

    run_simulated(main())


class TestSeconds:
    def pace(self, seconds: float, latency: float, *, aside: int, workers: int = 1, setup: float = 0.0) -> float:
        """How long a job works until it is refused, with calls of one length."""

        async def main() -> float:
            clock = asyncio.get_running_loop().time
            budget = Budget(Caps(seconds=seconds), clock)
            budget.set_aside(aside)
            await asyncio.sleep(setup)

            async def worker() -> None:
                while True:
                    hold = await budget.hold(1, None)
                    await asyncio.sleep(latency)
                    await budget.settle(hold, Usage(1, 1), "target")

            with pytest.raises(BudgetExhausted, match="seconds"):
                await asyncio.gather(*(worker() for _ in range(workers)))
            return clock()

        return run_simulated(main())

    def test_the_cap_ends_a_job(self) -> None:
        assert 100 <= self.pace(100, 0.5, aside=0) <= 101

    def test_time_for_the_closing_measurement_is_kept(self) -> None:
        assert 60 <= self.pace(100, 0.1, aside=200) <= 80

    def test_a_slow_start_is_not_taken_for_slow_calls(self) -> None:
        """Loading a model takes seconds, once; the first call must not be refused because of it."""
        assert self.pace(100, 0.1, aside=200, setup=5.0) >= 50

    def test_many_calls_at_once_are_not_taken_for_slow_ones(self) -> None:
        assert self.pace(100, 2.0, aside=200, workers=32) >= 60
