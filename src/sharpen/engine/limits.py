"""How many calls of one endpoint may be under way at once, learnt from what the endpoint says.

A `Limiter` starts at its cap. When the endpoint pushes back (429, 529) the limit is cut by a factor, and every success
under a limit that is in full use lets it creep up again, by about one per round of calls. Only a call that was sent after
the last cut can cause the next one, so a burst of refusals to calls that were under way together counts once. An endpoint
that says how long to wait is left alone for that long by everybody. The limiter decides nothing about trying again
(`retry.py` does) and knows nothing of models. Its clock is that of the running event loop, so a loop with simulated time
simulates it too.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from types import TracebackType

CUT = 0.7
COOL_DOWN = 0.25
LONGEST_PAUSE = 300.0
_HISTORY = 1000


@dataclass(frozen=True, slots=True)
class Change:
    """The limit was set to `limit` at loop time `at`."""

    at: float
    limit: int


class Slot:
    """The right to have one call under way: `async with limiter.slot() as slot`. Report what came of it while inside."""

    __slots__ = ("_limiter", "_started")

    def __init__(self, limiter: Limiter) -> None:
        self._limiter = limiter
        self._started = 0.0

    async def __aenter__(self) -> Slot:
        self._started = await self._limiter.acquire()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._limiter.release()

    def succeeded(self) -> None:
        self._limiter.succeeded()

    def throttled(self, retry_after: float | None = None) -> None:
        self._limiter.throttled(self._started, retry_after)


class Limiter:
    """Adaptive concurrency for one endpoint. One object, one event loop; waiters are served in the order they came."""

    def __init__(self, cap: int, *, cool_down: float = COOL_DOWN, longest_pause: float = LONGEST_PAUSE) -> None:
        if cap < 1:
            raise ValueError(f"a limiter needs a cap of at least 1, got {cap}")
        self.cap = cap
        self._cool_down = cool_down
        self._longest_pause = longest_pause
        self._exact = float(cap)
        self._in_flight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._resume_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._open = asyncio.Event()
        self._open.set()
        self._cut_at: float | None = None
        self._history: deque[Change] = deque(maxlen=_HISTORY)

    @property
    def limit(self) -> int:
        """The most calls that may be under way now: between 1 and the cap."""
        return int(self._exact)

    @property
    def in_flight(self) -> int:
        return self._in_flight

    @property
    def history(self) -> tuple[Change, ...]:
        """The latest changes of the limit, oldest first; empty when it has always been the cap."""
        return tuple(self._history)

    def slot(self) -> Slot:
        return Slot(self)

    async def acquire(self) -> float:
        """Wait for a slot, take it, and tell the loop time at which it was had."""
        loop = asyncio.get_running_loop()
        if self._in_flight < self.limit and not self._waiting and self._open.is_set():
            self._in_flight += 1
            return loop.time()
        turn = loop.create_future()
        self._waiting.append(turn)
        try:
            await turn
            # The endpoint may have asked for quiet between being served and waking up; the slot is kept meanwhile,
            # since nobody else may use it either.
            while not self._open.is_set():
                await self._open.wait()
        except asyncio.CancelledError:
            # Cancelled in the same breath as it was served: the slot goes to the next one instead.
            if turn.done() and not turn.cancelled():
                self.release()
            raise
        return loop.time()

    def release(self) -> None:
        self._in_flight -= 1
        self._serve()

    def succeeded(self) -> None:
        """A call brought an answer. Call it before the slot is given back."""
        # A limit that is not in use has proved nothing, so it does not grow.
        if self._exact < self.cap and self._in_flight >= self.limit:
            self._set(min(float(self.cap), self._exact + 1.0 / self._exact))
            self._serve()

    def throttled(self, started: float, retry_after: float | None = None) -> None:
        """The endpoint turned away a call that was sent at loop time `started`."""
        now = asyncio.get_running_loop().time()
        if self._cut_at is None or (started > self._cut_at and now >= self._cut_at + self._cool_down):
            self._cut_at = now
            self._set(max(1.0, self._exact * CUT))
        if retry_after is not None:
            self.pause(retry_after)

    def pause(self, seconds: float) -> None:
        """Send nothing new for so long. A wish beyond `longest_pause` is not waited for: the calls that meet it fail,
        and holding back the others would only delay the same end."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        if seconds <= 0 or seconds > self._longest_pause or until <= self._resume_at:
            return
        self._resume_at = until
        self._open.clear()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_at(until, self._resume)

    def _resume(self) -> None:
        self._timer = None
        self._open.set()
        self._serve()

    def _serve(self) -> None:
        while self._waiting and self._open.is_set() and self._in_flight < self.limit:
            turn = self._waiting.popleft()
            if not turn.done():
                self._in_flight += 1
                turn.set_result(None)

    def _set(self, exact: float) -> None:
        before = self.limit
        self._exact = exact
        if self.limit != before:
            self._history.append(Change(asyncio.get_running_loop().time(), self.limit))
