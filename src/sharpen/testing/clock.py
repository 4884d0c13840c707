"""Simulated time for asynchronous code: an event loop whose clock jumps to the next timer instead of waiting for it.

Everything that takes its time from the loop (`asyncio.sleep`, timeouts, the limiter, the retry policy) runs in no real
time and always in the same order. Only for code that does no real input or output while it waits.
"""

from __future__ import annotations

import asyncio
import selectors
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_PATIENCE = 60.0


class _Skipping(selectors.DefaultSelector):
    """A selector that never blocks; the time it was asked to wait for is added to the clock."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                return self._wait_for_threads()
            self.now += max(0.0, timeout)
        return ready

    def _wait_for_threads(self) -> list[tuple[selectors.SelectorKey, int]]:
        """Another thread may still wake the loop: the one that brings files to the disk, for one."""
        ready = super().select(_PATIENCE if threading.active_count() > 1 else 0.0)
        if not ready:
            raise RuntimeError("deadlock: everything waits and no timer is set")
        return ready


class SimulatedLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._skipping = _Skipping()
        super().__init__(self._skipping)

    def time(self) -> float:
        return self._skipping.now


def run_simulated(main: Coroutine[Any, Any, T]) -> T:
    """Like `asyncio.run`, in simulated time. A program that can never go on raises `RuntimeError`."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(main)
