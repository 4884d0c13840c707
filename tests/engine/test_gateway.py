"""The one way to a model: paid once, retried where that heals, stored before anyone builds on it, stopped in good order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from sharpen.core import redact
from sharpen.core.chat import Message, Reply, Request
from sharpen.core.errors import BudgetExhausted, ModelError, ModelErrorKind, UsageError
from sharpen.core.usage import Usage
from sharpen.engine.budget import Budget, Caps
from sharpen.engine.gateway import Gateway, Stopped
from sharpen.engine.retry import RetryPolicy
from sharpen.ledger.payments import Paid, read_accounts
from sharpen.ledger.store import Ledger
from sharpen.models.scripted import ScriptedModel
from sharpen.testing.clock import run_simulated

T = TypeVar("T")
K = ModelErrorKind


class Fake(ScriptedModel):
    """A scripted model that fails as told and keeps count."""

    def __init__(self, *, noise: float = 0.0, latency: float = 0.0, failures: tuple[ModelError, ...] = ()) -> None:
        super().__init__("scripted/fake", lambda request: f"re: {request.messages[-1].content}", noise=noise)
        self.asked: list[Request] = []
        self.lasts = latency
        self.failures = list(failures)

    async def complete(self, request: Request) -> Reply:
        self.asked.append(request)
        await asyncio.sleep(self.lasts)
        if self.failures:
            raise self.failures.pop(0)
        return await super().complete(request)


def say(text: str, **settings: float) -> Request:
    return Request(messages=(Message("user", text),), **settings)  # type: ignore[arg-type]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger.db") as opened:
        yield opened


def with_gateway(
    ledger: Ledger, model: Fake, use: Callable[[Gateway, Budget], Awaitable[T]], caps: Caps | None = None
) -> T:
    async def main() -> T:
        budget = Budget(caps or Caps(), lambda: 0.0)
        return await use(Gateway({"target": model}, ledger, budget, policy=RetryPolicy(first_pause=0.01)), budget)

    return run_simulated(main())


def test_the_same_question_is_paid_for_once(ledger: Ledger) -> None:
    async def use(gateway: Gateway, budget: Budget) -> None:
        first = await gateway.complete("target", say("hi"), [0])
        second = await gateway.complete("target", say("hi"), [1])
        assert first == second and first.text == "re: hi"
        assert (gateway.paid_calls, budget.spent.calls) == (1, 2), "paid once, counted as often as it was used"

    model = Fake()
    with_gateway(ledger, model, use)
    with_gateway(ledger, model, use_again)
    assert len(model.asked) == 1


async def use_again(gateway: Gateway, budget: Budget) -> None:
    await gateway.complete("target", say("hi"), [7])
    assert (gateway.paid_calls, budget.spent.calls) == (0, 1)


def test_a_model_that_may_answer_differently_is_asked_once_per_draw(ledger: Ledger) -> None:
    async def use(gateway: Gateway, budget: Budget) -> None:
        for draw in ([0], [1], [0], [1]):
            await gateway.complete("target", say("hi"), draw)

    model = Fake(noise=0.5)
    with_gateway(ledger, model, use)
    assert len(model.asked) == 2
    assert len({request.seed for request in model.asked}) == 2 and None not in {r.seed for r in model.asked}


def test_warm_sampling_makes_draws_differ_too(ledger: Ledger) -> None:
    async def use(gateway: Gateway, budget: Budget) -> None:
        for draw in ([0], [1], [0]):
            await gateway.complete("target", say("hi", temperature=0.7), draw)

    model = Fake()
    with_gateway(ledger, model, use)
    assert len(model.asked) == 2


def test_a_question_that_is_under_way_is_not_sent_again(ledger: Ledger) -> None:
    async def use(gateway: Gateway, budget: Budget) -> list[Reply]:
        return await asyncio.gather(*(gateway.complete("target", say("hi"), [n]) for n in range(20)))

    model = Fake(latency=1.0)
    replies = with_gateway(ledger, model, use)
    assert len(model.asked) == 1 and len(set(map(id, replies))) == 1


def test_a_question_that_another_process_is_paying_for_is_waited_for(tmp_path: Path) -> None:
    """Two ledgers on one file stand for two processes."""

    async def main(model: Fake) -> tuple[list[Reply | BaseException], list[int]]:
        with Ledger(tmp_path / "ledger.db") as one, Ledger(tmp_path / "ledger.db") as other:
            gateways = [Gateway({"target": model}, ledger, Budget(Caps(), lambda: 0.0)) for ledger in (one, other)]
            asking = (gateway.complete("target", say("hi"), [0]) for gateway in gateways)
            found = await asyncio.gather(*asking, return_exceptions=True)
            return found, [gateway.paid_calls for gateway in gateways]

    failing = Fake(latency=1.0, failures=(ModelError(K.BAD_REQUEST, "no"),))
    (first, second), paid = run_simulated(main(failing))
    assert isinstance(first, ModelError) and isinstance(second, Reply) and paid == [0, 1], "a failure is one's own"
    (tmp_path / "ledger.db").unlink()
    model = Fake(latency=1.0)
    (first, second), paid = run_simulated(main(model))
    assert first == second and isinstance(first, Reply) and paid == [1, 0] and len(model.asked) == 1


def test_those_who_wait_for_a_question_share_its_failure(ledger: Ledger) -> None:
    async def use(gateway: Gateway, budget: Budget) -> list[Reply | BaseException]:
        asking = (gateway.complete("target", say("hi"), [n]) for n in range(3))
        return await asyncio.gather(*asking, return_exceptions=True)

    model = Fake(latency=1.0, failures=(ModelError(K.BAD_REQUEST, "no"),))
    found = with_gateway(ledger, model, use)
    assert len(model.asked) == 1 and all(isinstance(one, ModelError) for one in found)


def test_those_who_wait_are_not_cancelled_with_the_one_who_asked(ledger: Ledger) -> None:
    """One rollout running into its time limit must not take another one down that asked the same."""

    async def impatient(gateway: Gateway) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await gateway.complete("target", say("hi"), [0])

    async def use(gateway: Gateway, budget: Budget) -> list[object]:
        found = await asyncio.gather(
            impatient(gateway),
            gateway.complete("target", say("hi"), [1]),
            gateway.complete("target", say("hi"), [2]),
            return_exceptions=True,
        )
        return [*found]

    model = Fake(latency=5.0)
    found = with_gateway(ledger, model, use)
    assert [getattr(one, "text", one) for one in found] == [None, "re: hi", "re: hi"]
    assert len(model.asked) == 2


@pytest.mark.parametrize("kind", [K.RATE_LIMITED, K.UNAVAILABLE, K.TIMEOUT])
def test_what_heals_is_tried_again_and_counted_once(ledger: Ledger, kind: ModelErrorKind) -> None:
    async def use(gateway: Gateway, budget: Budget) -> None:
        assert (await gateway.complete("target", say("hi"), [0])).text == "re: hi"
        assert budget.spent.calls == 1

    model = Fake(failures=(ModelError(kind, "later"),) * 3)
    with_gateway(ledger, model, use)
    assert len(model.asked) == 4


@pytest.mark.parametrize("kind", [K.AUTH, K.NOT_FOUND, K.BAD_REQUEST])
def test_what_does_not_heal_is_raised_at_once_and_costs_nothing(ledger: Ledger, kind: ModelErrorKind) -> None:
    async def use(gateway: Gateway, budget: Budget) -> None:
        with pytest.raises(ModelError) as caught:
            await gateway.complete("target", say("hi"), [0])
        assert caught.value.kind is kind
        assert budget.spent == Usage() and budget._held.calls == 0

    model = Fake(failures=(ModelError(kind, "no"),))
    with_gateway(ledger, model, use, Caps(calls=1))
    assert len(model.asked) == 1 and ledger.counts()["replies"] == 0


def test_a_failed_call_leaves_room_in_the_budget_for_the_next(ledger: Ledger) -> None:
    async def use(gateway: Gateway, budget: Budget) -> None:
        with pytest.raises(ModelError):
            await gateway.complete("target", say("one"), [0])
        await gateway.complete("target", say("two"), [0])
        with pytest.raises(BudgetExhausted):
            await gateway.complete("target", say("three"), [0])
        assert (await gateway.complete("target", say("two"), [0])).text == "re: two", "what is stored costs nothing"

    model = Fake(failures=(ModelError(K.BAD_REQUEST, "no"),))
    with_gateway(ledger, model, use, Caps(calls=1))
    assert len(model.asked) == 2


def test_a_reply_with_a_known_secret_is_scored_as_it_came_and_not_stored(ledger: Ledger) -> None:
    redact.remember("hunter2-hunter2")
    try:

        async def use(gateway: Gateway, budget: Budget) -> None:
            said = await gateway.complete("target", say("hunter2-hunter2 is the key"), [0])
            assert said.text == "re: hunter2-hunter2 is the key"
            asked = await gateway.complete("target", say("hunter2-hunter2 it is"), [0], keep_request=True)
            assert asked.text == "re: [redacted] it is"
            assert (await gateway.complete("target", say("hunter2-hunter2 it is"), [0], keep_request=True)) == asked

        with_gateway(ledger, model := Fake(), use)
        assert len(model.asked) == 2
    finally:
        redact._known.clear()
    ledger.flush()
    kept = b"".join(path.read_bytes() for path in ledger.path.parent.iterdir())
    assert b"it is" in kept and b"hunter2" not in kept


def test_an_answer_of_no_use_is_paid_for_all_the_same(ledger: Ledger) -> None:
    bad = ModelError(K.BAD_REPLY, "empty", usage=Usage(1, 40, 0, 2))

    async def use(gateway: Gateway, budget: Budget) -> None:
        with pytest.raises(ModelError):
            await gateway.complete("target", say("one"), [0])
        assert budget.spent == bad.usage
        with pytest.raises(BudgetExhausted):
            await gateway.complete("target", say("two"), [0])

    with_gateway(ledger, Fake(failures=(bad,)), use, Caps(calls=1))


@pytest.mark.parametrize("trouble", ["hangs", "asks for a long pause"])
def test_the_cap_on_seconds_ends_a_call_whatever_it_waits_for(ledger: Ledger, trouble: str) -> None:
    wait = ModelError(K.RATE_LIMITED, "busy", retry_after=60.0)
    model = Fake(latency=3600.0) if trouble == "hangs" else Fake(failures=(wait,) * 9)

    async def main() -> float:
        clock = asyncio.get_running_loop().time
        began = clock()
        budget = Budget(Caps(seconds=6.0), lambda: clock() - began)
        with pytest.raises(BudgetExhausted, match="the cap of 6 seconds is reached"):
            await Gateway({"target": model}, ledger, budget).complete("target", say("one"), [0])
        assert budget._held.calls == 0
        return clock() - began

    assert run_simulated(main()) == pytest.approx(6.0, abs=0.1)


def test_half_characters_in_replies_become_whole_ones(ledger: Ledger) -> None:
    """A reply cut off within an emoji could be written to no file."""

    async def use(gateway: Gateway, budget: Budget) -> None:
        said = await gateway.complete("target", say("half \ud83d"), [0])
        assert said.text == "re: half \ufffd"
        assert (await gateway.complete("target", say("half \ud83d"), [0])) == said

    with_gateway(ledger, Fake(), use)


def test_stopping_refuses_new_calls_and_lets_the_others_finish(ledger: Ledger) -> None:
    async def use(gateway: Gateway, budget: Budget) -> None:
        await gateway.complete("target", say("stored"), [0])
        under_way = asyncio.create_task(gateway.complete("target", say("under way"), [0]))
        await asyncio.sleep(0.5)
        gateway.stopping = True
        with pytest.raises(Stopped):
            await gateway.complete("target", say("new"), [0])
        assert (await gateway.complete("target", say("stored"), [0])).text == "re: stored"
        assert (await under_way).text == "re: under way"

    model = Fake(latency=1.0)
    with_gateway(ledger, model, use)
    assert len(model.asked) == 2 and ledger.counts()["replies"] == 2


def test_a_role_without_a_model_is_named(ledger: Ledger) -> None:
    async def use(gateway: Gateway, budget: Budget) -> None:
        with pytest.raises(UsageError, match="no model is given for the role 'judge'; given: target"):
            await gateway.complete("judge", say("hi"), [0])

    with_gateway(ledger, Fake(), use)


@pytest.mark.parametrize("kind", [K.UNAVAILABLE, K.TIMEOUT, K.BAD_REPLY])
def test_what_may_have_been_answered_counts_at_its_bound(ledger: Ledger, kind: ModelErrorKind) -> None:
    """Whether a call that broke off was answered and billed, only the server knows."""

    async def use(gateway: Gateway, budget: Budget) -> None:
        with pytest.raises((ModelError, BudgetExhausted)):
            await gateway.complete("target", say("hi", max_tokens=100), [0])
        assert budget.paid.calls == len(model.asked) == budget.paid.lost > 0
        assert budget.paid.tokens >= 100 * budget.paid.calls

    model = Fake(failures=(ModelError(kind, "no"),) * 20)
    with_gateway(ledger, model, use, Caps(calls=3))
    assert len(model.asked) == (1 if kind is K.BAD_REPLY else 3), "not even retries pass the cap"


def test_a_call_that_was_certainly_not_served_is_not_counted(ledger: Ledger) -> None:
    async def use(gateway: Gateway, budget: Budget) -> None:
        await gateway.complete("target", say("hi"), [0])
        assert (budget.paid.calls, budget.paid.lost) == (1, 0)

    refusals = (ModelError(K.RATE_LIMITED, "429"), ModelError(K.UNAVAILABLE, "500", counts=False))
    with_gateway(ledger, Fake(failures=refusals), use, Caps(calls=1))


def test_lost_calls_end_a_job_but_are_not_part_of_what_it_plans_by(ledger: Ledger) -> None:
    """A reply that came at the third attempt is one call to the trainer, and three to the cap."""

    async def use(gateway: Gateway, budget: Budget) -> None:
        await gateway.complete("target", say("one"), [0])
        assert (budget.spent.calls, budget.paid.calls, budget.paid.lost) == (1, 3, 2)
        await gateway.complete("target", say("two"), [0])
        with pytest.raises(BudgetExhausted, match="the cap of 4 calls leaves no room for another call"):
            await gateway.complete("target", say("three"), [0])
        assert budget.spent.calls == 2

    with_gateway(ledger, Fake(failures=(ModelError(K.TIMEOUT, "late"),) * 2), use, Caps(calls=4))


def test_what_a_bad_reply_cost_after_a_retry_is_told(ledger: Ledger) -> None:
    async def use(gateway: Gateway, budget: Budget) -> None:
        with pytest.raises(ModelError) as caught:
            await gateway.complete("target", say("one"), [0])
        assert caught.value.usage == budget.spent == bad.usage

    bad = ModelError(K.BAD_REPLY, "empty", usage=Usage(1, 40, 0, 2))
    with_gateway(ledger, Fake(failures=(ModelError(K.RATE_LIMITED, "429"), bad)), use)


def test_a_cancelled_call_counts_and_one_that_never_left_does_not(ledger: Ledger) -> None:
    async def use(gateway: Gateway, budget: Budget) -> None:
        for text in ("one", "two"):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await gateway.complete("target", say(text), [0])
        assert (budget.paid.calls, budget.paid.lost, len(model.asked)) == (2, 2, 2)
        gateway.stopping = True
        with pytest.raises(Stopped):
            await gateway.complete("target", say("three"), [0])
        assert budget.paid.calls == 2

    model = Fake(latency=60.0)
    with_gateway(ledger, model, use)


def test_a_call_is_on_record_before_it_leaves_and_what_it_cost_with_its_reply(tmp_path: Path) -> None:
    """Looked at from outside, as it would stand after a kill at that instant."""
    path = tmp_path / "ledger.db"
    seen: list[dict[str, Paid]] = []

    class Watched(Fake):
        in_process = False

        async def complete(self, request: Request) -> Reply:
            seen.append(read_accounts(path))
            return await super().complete(request)

    async def main() -> None:
        with Ledger(path) as ledger:
            model = Watched()
            gateway = Gateway({"target": model}, ledger, Budget(Caps(), lambda: 0.0), account="jobs/a")
            await gateway.complete("target", say("one two", max_tokens=50), [0])
            ledger.flush()
            seen.append(read_accounts(path))
            await asyncio.gather(*(gateway.complete("target", say(f"{n}", max_tokens=50), [0]) for n in range(9)))

    run_simulated(main())
    most, cost, *others = seen
    assert most == {"jobs/a": Paid(1, 52, 0.0, lost=1)}, "under way it counts at its bound, as lost"
    assert cost["jobs/a"].calls == 1 and cost["jobs/a"].tokens < 52 and cost["jobs/a"].lost == 0
    assert max(accounts["jobs/a"].calls for accounts in others) == 10
    with Ledger(path) as ledger:
        assert ledger.paid("jobs/a") == read_accounts(path)["jobs/a"] and ledger.paid("jobs/a").calls == 10
        assert ledger.paid("jobs/b") == Paid()
