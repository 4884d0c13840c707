"""The bridge between a synchronous optimizer and a job: the optimizer runs in a thread, its wishes on the event loop.

One wish at a time, in the order the optimizer has them, so the story of a job is as if no thread were there. The first
wish that fails ends the optimizer: `Ended` is no `Exception`, so code that carries on after any error does not catch it, and
every later wish meets it again. The caller then gets the error itself. What the thread prints goes nowhere.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, TypeVar

T = TypeVar("T")


class Ended(BaseException):
    """Raised in the optimizer's thread once the job will grant no further wish."""


class Bridge:
    """What the optimizer's thread holds of the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lock = threading.Lock()
        self._under_way: concurrent.futures.Future[Any] | None = None
        self.error: BaseException | None = None

    def call(self, wish: Callable[..., Coroutine[Any, Any, T]], *given: Any) -> T:
        """Carry out `wish(*given)` on the event loop and wait for it. For the optimizer's thread alone."""
        with self._lock:
            if self.error is not None:
                raise Ended
            future = asyncio.run_coroutine_threadsafe(wish(*given), self._loop)
            self._under_way = future
        try:
            return future.result()
        except BaseException as error:
            self.error = self.error or error
            raise Ended from error

    def stop(self, error: BaseException) -> None:
        """Grant no further wish, and give up the one that is under way. For the event loop."""
        with self._lock:
            self.error = self.error or error
            if self._under_way is not None:
                self._under_way.cancel()


async def in_thread(work: Callable[[Bridge], T]) -> T:
    """Run an optimizer in a thread of its own until it ends, or until the job ends it with an error."""
    bridge = Bridge(asyncio.get_running_loop())
    running = asyncio.ensure_future(asyncio.to_thread(_quietly, work, bridge))
    try:
        await asyncio.wait([running])
    except asyncio.CancelledError as error:
        bridge.stop(error)
        await asyncio.wait([running])
        running.exception()  # marks it as seen: being cancelled is what is to be reported
        raise
    failed = running.exception()
    if bridge.error is not None:
        raise bridge.error
    if failed is not None:
        raise failed
    return running.result()


def _quietly(work: Callable[[Bridge], T], bridge: Bridge) -> T:
    with _hushed():
        return work(bridge)


class _Hushed:
    """A stream that drops what one thread writes and passes on what all others do."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._thread = threading.get_ident()

    def write(self, text: str) -> int:
        return len(text) if threading.get_ident() == self._thread else self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def _hushed() -> Iterator[None]:
    """While inside, what this thread prints goes nowhere."""
    before = sys.stdout, sys.stderr
    hushed = _Hushed(sys.stdout), _Hushed(sys.stderr)
    sys.stdout, sys.stderr = hushed
    try:
        yield
    finally:
        # Somebody else may have put a stream of their own there meanwhile; that one stays.
        if (sys.stdout, sys.stderr) == hushed:
            sys.stdout, sys.stderr = before
