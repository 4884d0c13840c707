"""How many calls of one endpoint may be under way at once, learnt from what the endpoint says.

A `Limiter` starts at its cap. When the endpoint pushes back (429, 529) the limit is cut by a factor, and every success
under a limit that is in full use lets it creep up again, by about one per round of calls. Only a call that was sent after
the last cut can cause the next one, so a burst of refusals to calls that were under way together counts once. An endpoint
that says how long to wait is left alone for that long by everybody. Who everybody is depends on the `Quota` the limiter
draws from: a job's own, or one that several jobs share (`sharing.py`). The limiter decides nothing about trying again
(`retry.py` does) and knows nothing of models. Its clock is that of the running event loop, so a loop with simulated time
simulates it too.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

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


class Quota(Protocol):
    """Where the limit of an endpoint is kept, and how much of it is in use. `now` is the time of the event loop."""

    poll: float | None
    """Seconds after which a refused `take` is worth another try; None where only our own calls make room."""

    @property
    def limit(self) -> int:
        """The most calls that may be under way now, at least 1."""

    @property
    def in_flight(self) -> int:
        """Our own calls under way."""

    @property
    def resume_at(self) -> float:
        """When the endpoint may be asked again."""

    def take(self, now: float) -> bool:
        """Begin one more call, if there is room."""

    def give_back(self) -> None:
        """One of our calls is over."""

    def withdraw(self) -> None:
        """Nobody of ours waits any more."""

    def grow(self) -> None:
        """A call succeeded."""

    def cut(self, started: float, now: float, cool_down: float) -> None:
        """A call that began at `started` was turned away."""

    def pause(self, until: float) -> None:
        """The endpoint asked for quiet until then."""


def grown(exact: float, cap: int) -> float:
    return min(float(cap), exact + 1.0 / exact)


def lowered(exact: float, cut_at: float | None, started: float, now: float, cool_down: float) -> float | None:
    """The limit after a refusal; None where it belongs to a burst that was answered by the cut at `cut_at`."""
    if cut_at is None or (started > cut_at and now >= cut_at + cool_down):
        return max(1.0, exact * CUT)
    return None


class OwnQuota:
    """The quota of one process that shares its endpoint with nobody."""

    poll: float | None = None

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._exact = float(cap)
        self._cut_at: float | None = None
        self.in_flight = 0
        self.resume_at = 0.0

    @property
    def limit(self) -> int:
        return int(self._exact)

    def take(self, now: float) -> bool:
        if self.in_flight >= self.limit:
            return False
        self.in_flight += 1
        return True

    def give_back(self) -> None:
        self.in_flight -= 1

    def withdraw(self) -> None:
        return

    def grow(self) -> None:
        # A limit that is not in use has proved nothing, so it does not grow.
        if self._exact < self._cap and self.in_flight >= self.limit:
            self._exact = grown(self._exact, self._cap)

    def cut(self, started: float, now: float, cool_down: float) -> None:
        exact = lowered(self._exact, self._cut_at, started, now, cool_down)
        if exact is not None:
            self._exact, self._cut_at = exact, now

    def pause(self, until: float) -> None:
        self.resume_at = until


class Limiter:
    """Adaptive concurrency for one endpoint. One object, one event loop; waiters are served in the order they came."""

    def __init__(
        self,
        cap: int,
        *,
        quota: Quota | None = None,
        cool_down: float = COOL_DOWN,
        longest_pause: float = LONGEST_PAUSE,
    ) -> None:
        if cap < 1:
            raise ValueError(f"a limiter needs a cap of at least 1, got {cap}")
        self.cap = cap
        self._quota = OwnQuota(cap) if quota is None else quota
        self._cool_down = cool_down
        self._longest_pause = longest_pause
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._silence: asyncio.TimerHandle | None = None
        self._looking: asyncio.TimerHandle | None = None
        self._open = asyncio.Event()
        self._open.set()
        self._history: deque[Change] = deque(maxlen=_HISTORY)

    @property
    def limit(self) -> int:
        """The most calls that may be under way now, by all who share the endpoint: between 1 and the cap."""
        return self._quota.limit

    @property
    def in_flight(self) -> int:
        return self._quota.in_flight

    @property
    def history(self) -> tuple[Change, ...]:
        """The latest changes of the limit that our calls caused, oldest first; empty when there were none."""
        return tuple(self._history)

    def slot(self) -> Slot:
        return Slot(self)

    async def acquire(self) -> float:
        """Wait for a slot, take it, and tell the loop time at which it was had."""
        loop = asyncio.get_running_loop()
        self._listen(loop.time())
        if not self._waiting and self._open.is_set() and self._quota.take(loop.time()):
            return loop.time()
        turn = loop.create_future()
        self._waiting.append(turn)
        self._look_later()
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
        self._quota.give_back()
        self._serve()

    def succeeded(self) -> None:
        """A call brought an answer. Call it before the slot is given back."""
        before = self.limit
        self._quota.grow()
        if self._note(before):
            self._serve()

    def throttled(self, started: float, retry_after: float | None = None) -> None:
        """The endpoint turned away a call that was sent at loop time `started`."""
        before = self.limit
        self._quota.cut(started, asyncio.get_running_loop().time(), self._cool_down)
        self._note(before)
        if retry_after is not None:
            self.pause(retry_after)

    def pause(self, seconds: float) -> None:
        """Send nothing new for so long. A wish beyond `longest_pause` is not waited for: the calls that meet it fail,
        and holding back the others would only delay the same end."""
        until = asyncio.get_running_loop().time() + seconds
        if 0 < seconds <= self._longest_pause and until > self._quota.resume_at:
            self._quota.pause(until)
            self._be_silent(until)

    def _listen(self, now: float) -> None:
        """Keep to a pause that another who shares the endpoint was asked for."""
        if self._quota.resume_at > now and self._open.is_set():
            self._be_silent(self._quota.resume_at)

    def _be_silent(self, until: float) -> None:
        self._open.clear()
        if self._silence is not None:
            self._silence.cancel()
        self._silence = asyncio.get_running_loop().call_at(until, self._resume)

    def _resume(self) -> None:
        self._silence = None
        self._open.set()
        self._serve()

    def _serve(self) -> None:
        if not self._waiting:
            return
        now = asyncio.get_running_loop().time()
        self._listen(now)
        while self._waiting and self._open.is_set():
            if not self._waiting[0].done() and not self._quota.take(now):
                break
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
        if self._waiting:
            self._look_later()
        else:
            self._quota.withdraw()

    def _look_later(self) -> None:
        """Where others make room too, nobody says so: it has to be looked for."""
        if self._quota.poll is not None and self._looking is None:
            self._looking = asyncio.get_running_loop().call_later(self._quota.poll, self._look)

    def _look(self) -> None:
        self._looking = None
        self._serve()

    def _note(self, before: int) -> bool:
        """Keep a change of the limit for whoever asks."""
        if self.limit == before:
            return False
        self._history.append(Change(asyncio.get_running_loop().time(), self.limit))
        return True
