"""Where rollouts run: many at once on this machine's event loop, started in order, finished as they come.

After the first error nothing new is started, but what is under way is allowed to finish, because it is being paid for;
then the error is raised. Memory does not grow with the number of items: there are as many tasks as may run at once, no
more, and work that never waits is made to, now and then, so that the event loop can clear away what it has done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

_BREATH = 16
"""After so many pieces the event loop gets its turn, for timers, signals and screens, even if none of them waited."""


async def run_all(pieces: Sequence[T], work: Callable[[T], Awaitable[None]], *, at_once: int) -> None:
    """Carry out `work` on every piece, at most `at_once` of them at a time."""
    waiting = enumerate(pieces, start=1)
    errors: list[BaseException] = []

    async def worker() -> None:
        for number, piece in waiting:
            if errors:
                return
            try:
                await work(piece)
            except asyncio.CancelledError:
                raise
            except BaseException as error:  # raised below, once the others are done
                errors.append(error)
            if number % _BREATH == 0:
                await asyncio.sleep(0)

    await asyncio.gather(*(worker() for _ in range(min(at_once, len(pieces)))))
    if errors:
        raise errors[0]


async def together(*pieces: Awaitable[T]) -> list[T]:
    """All results, in order. If one fails, the error is raised once the others are done: none goes on unattended."""
    ended = await asyncio.gather(*pieces, return_exceptions=True)
    results: list[T] = []
    for end in ended:
        if isinstance(end, BaseException):
            raise end
        results.append(end)
    return results
