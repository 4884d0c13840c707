"""The retry policy: what is tried again, how long is waited, when it gives up, and that no slot is held meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharpen.core.errors import HEALS, ModelError, ModelErrorKind
from sharpen.engine.limits import Limiter
from sharpen.engine.retry import Retry, RetryPolicy, with_retries
from sharpen.testing.clock import run_simulated

K = ModelErrorKind
POLICY = RetryPolicy()


class Script:
    """A call that fails as told, then answers; remembers when it was made."""

    def __init__(self, failures: Sequence[ModelError], lasts: float = 0.0) -> None:
        self.failures = list(failures)
        self.lasts = lasts
        self.made_at: list[float] = []

    async def __call__(self) -> str:
        self.made_at.append(asyncio.get_running_loop().time())
        await asyncio.sleep(self.lasts)
        if self.failures:
            raise self.failures.pop(0)
        return "answer"


def attempt(script: Script, policy: RetryPolicy = POLICY) -> str:
    async def main() -> str:
        return await with_retries(script, policy=policy, limiter=Limiter(4), jitter=lambda: 1.0)

    return run_simulated(main())


def test_pauses_double_up_to_the_longest() -> None:
    script = Script([ModelError(K.UNAVAILABLE, "down")] * 7)
    assert attempt(script, RetryPolicy(longest_pause=5.0)) == "answer"
    gaps = [after - before for before, after in zip(script.made_at, script.made_at[1:], strict=False)]
    assert gaps == pytest.approx([0.5, 1, 2, 4, 5, 5, 5])


@pytest.mark.parametrize("kind", sorted(set(K) - HEALS))
def test_what_cannot_heal_is_tried_once(kind: ModelErrorKind) -> None:
    script = Script([ModelError(kind, "no")])
    with pytest.raises(ModelError, match=r"^no$"):
        attempt(script)
    assert len(script.made_at) == 1


@pytest.mark.parametrize("kind", sorted(HEALS - {K.UNREACHABLE}))
def test_what_can_heal_is_tried_again_until_attempts_run_out(kind: ModelErrorKind) -> None:
    script = Script([ModelError(kind, "not now")] * 100)
    with pytest.raises(ModelError, match=r"not now \(gave up after 8 attempts\)") as caught:
        attempt(script)
    assert caught.value.kind is kind
    assert len(script.made_at) == 8


def test_an_endpoint_nobody_listens_at_is_given_up_sooner() -> None:
    script = Script([ModelError(K.UNREACHABLE, "refused")] * 100)
    with pytest.raises(ModelError):
        attempt(script)
    assert len(script.made_at) == 3


def test_patience_ends_it_before_the_attempts_do() -> None:
    script = Script([ModelError(K.TIMEOUT, "slow")] * 100, lasts=120.0)
    with pytest.raises(ModelError, match="3 attempts"):
        attempt(script)
    assert len(script.made_at) == 3


def test_the_endpoints_wish_is_waited_for() -> None:
    script = Script([ModelError(K.RATE_LIMITED, "slow down", retry_after=20.0)])
    attempt(script)
    assert script.made_at[1] == pytest.approx(20.5)


def test_a_wish_beyond_patience_is_given_up_at_once() -> None:
    script = Script([ModelError(K.RATE_LIMITED, "tomorrow", retry_after=86_400.0)] * 3)
    with pytest.raises(ModelError, match="tomorrow") as caught:
        attempt(script)
    assert caught.value.retry_after == 86_400.0
    assert script.made_at == [0.0]


def test_a_wish_holds_back_every_caller_of_the_endpoint() -> None:
    async def main() -> tuple[Script, Script]:
        limiter = Limiter(1)
        first = Script([ModelError(K.UNAVAILABLE, "maintenance", retry_after=30.0)])
        second = Script([])
        await asyncio.gather(
            with_retries(first, policy=RetryPolicy(), limiter=limiter, jitter=lambda: 0.0),
            with_retries(second, policy=RetryPolicy(), limiter=limiter, jitter=lambda: 0.0),
        )
        return first, second

    first, second = run_simulated(main())
    assert first.made_at[1] >= 30.0
    assert second.made_at[0] >= 30.0


def test_no_slot_is_held_during_a_pause() -> None:
    async def main() -> float:
        limiter = Limiter(1)
        waiting = asyncio.create_task(
            with_retries(
                Script([ModelError(K.UNAVAILABLE, "down")] * 5),
                policy=RetryPolicy(),
                limiter=limiter,
                jitter=lambda: 1.0,
            )
        )
        await asyncio.sleep(0.1)
        assert limiter.in_flight == 0
        other = Script([])
        await with_retries(other, policy=RetryPolicy(), limiter=limiter)
        await waiting
        return other.made_at[0]

    assert run_simulated(main()) == pytest.approx(0.1)


def test_waiting_for_a_slot_does_not_use_up_patience() -> None:
    async def main() -> str:
        limiter = Limiter(1)
        await limiter.acquire()
        asyncio.get_running_loop().call_later(10_000, limiter.release)
        script = Script([ModelError(K.UNAVAILABLE, "down")])
        return await with_retries(script, policy=RetryPolicy(patience=5.0), limiter=limiter)

    assert run_simulated(main()) == "answer"


def test_refusals_lower_the_limit_and_every_retry_is_told() -> None:
    told: list[Retry] = []

    async def main() -> Limiter:
        limiter = Limiter(10)
        failures = [ModelError(K.RATE_LIMITED, "slow down"), ModelError(K.TIMEOUT, "slow")]
        await with_retries(
            Script(failures), policy=RetryPolicy(), limiter=limiter, on_retry=told.append, jitter=lambda: 0.5
        )
        return limiter

    assert run_simulated(main()).limit == 7
    assert [(retry.error.kind, retry.failures, retry.pause) for retry in told] == [
        (K.RATE_LIMITED, 1, 0.25),
        (K.TIMEOUT, 2, 0.5),
    ]


def test_a_bug_in_the_call_is_not_retried_and_frees_the_slot() -> None:
    limiter = Limiter(1)

    async def broken() -> str:
        raise KeyError("bug")

    async def main() -> None:
        await with_retries(broken, policy=RetryPolicy(), limiter=limiter)

    with pytest.raises(KeyError):
        run_simulated(main())
    assert limiter.in_flight == 0


@given(
    kind=st.sampled_from(sorted(K)),
    retry_after=st.none() | st.floats(0, 1e6),
    failures=st.integers(1, 2000),
    spent=st.floats(0, 1e4),
    jitter=st.floats(0, 1, exclude_max=True),
)
def test_a_pause_is_never_negative_and_never_passes_patience(
    kind: ModelErrorKind, retry_after: float | None, failures: int, spent: float, jitter: float
) -> None:
    policy = RetryPolicy()
    pause = policy.pause(ModelError(kind, "x", retry_after=retry_after), failures, spent, jitter)
    if pause is not None:
        assert kind in HEALS
        assert failures < policy.attempts
        assert pause >= (retry_after or 0.0)
        assert spent + pause <= policy.patience
