"""The one retry policy: which failed calls are tried again, after which pause, and when to give up.

Only errors that can heal by themselves (`HEALS` in `core/errors.py`) are tried again. Pauses grow exponentially with full
jitter, so that calls which failed together do not come back together; where the endpoint says how long to wait, that is
waited, by every caller of the endpoint. No slot is held during a pause. Time spent waiting for a slot does not count
against the caller's patience: a long queue is not a failure.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from sharpen.core.errors import HEALS, ModelError, ModelErrorKind
from sharpen.core.usage import NOTHING, Usage
from sharpen.engine.limits import LONGEST_PAUSE, Limiter

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """`attempts` counts the first one; `patience` is the most seconds in failed calls and pauses together."""

    attempts: int = 8
    unreachable_attempts: int = 3
    patience: float = LONGEST_PAUSE
    first_pause: float = 0.5
    longest_pause: float = 30.0

    def pause(self, error: ModelError, failures: int, spent: float, jitter: float) -> float | None:
        """Seconds to wait after the `failures`-th failure, or None to give up. `jitter` is a number in [0, 1)."""
        most = self.attempts
        if error.kind is ModelErrorKind.UNREACHABLE:
            most = min(most, self.unreachable_attempts)
        if error.kind not in HEALS or failures >= most:
            return None
        if error.retry_after is None:
            pause = jitter * min(self.longest_pause, self.first_pause * 2.0 ** min(failures - 1, 60))
        else:
            pause = error.retry_after + jitter * self.first_pause
        return None if spent + pause > self.patience else pause


@dataclass(frozen=True, slots=True)
class Retry:
    """A call failed for the `failures`-th time and will be tried again after `pause` seconds."""

    error: ModelError
    failures: int
    pause: float


async def with_retries(
    call: Callable[[], Awaitable[T]],
    *,
    policy: RetryPolicy,
    limiter: Limiter,
    on_retry: Callable[[Retry], None] | None = None,
    jitter: Callable[[], float] = random.random,
) -> T:
    """Await `call()` in a slot of `limiter`, again while that may help. Raises the last `ModelError` otherwise."""
    clock = asyncio.get_running_loop().time
    failures = 0
    spent = 0.0
    usage = NOTHING
    while True:
        async with limiter.slot() as slot:
            started = clock()
            try:
                result = await call()
            except ModelError as error:
                if error.kind is ModelErrorKind.RATE_LIMITED:
                    slot.throttled(error.retry_after)
                elif error.retry_after is not None:
                    limiter.pause(error.retry_after)
                failure = error
            else:
                slot.succeeded()
                return result
        failures += 1
        usage += failure.usage
        spent += clock() - started
        pause = policy.pause(failure, failures, spent, jitter())
        if pause is None:
            raise _final(failure, failures, usage)
        if on_retry is not None:
            on_retry(Retry(failure, failures, pause))
        spent += pause
        await asyncio.sleep(pause)


def _final(error: ModelError, failures: int, usage: Usage) -> ModelError:
    """The last error, with what all attempts cost."""
    if failures == 1:
        return error
    message = f"{error} (gave up after {failures} attempts)"
    last = ModelError(error.kind, message, retry_after=error.retry_after, usage=usage, counts=error.counts)
    last.__cause__ = error
    return last
