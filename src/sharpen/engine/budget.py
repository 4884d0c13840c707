"""Caps on calls, tokens, money and seconds that are never passed, however many calls are under way.

Before a call goes out, the most it can cost is held; when its reply is there, the hold becomes what it did cost. A call
that does not fit waits while other holds may still shrink, and is refused with `BudgetExhausted` when they can't; nobody
overtakes those who wait, so that who is refused does not depend on how fast the others are. What a
resumed job finds in the ledger is charged as if it had been paid now, so that a cap ends a resumed job where it would have
ended an undisturbed one. A part of the budget can be set aside for the closing measurement, so that a job that runs into
its cap still ends with a test score.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sharpen.core.errors import BudgetExhausted
from sharpen.core.usage import NOTHING, Usage

_MARGIN = 1.2
"""Tokens and seconds set aside are estimates from what calls cost so far; this much more is kept, to be on the safe side."""


@dataclass(frozen=True)
class Caps:
    """None means no cap."""

    calls: int | None = None
    tokens: int | None = None
    money: float | None = None
    seconds: float | None = None


@dataclass
class Hold:
    calls: int
    tokens: int
    money: float


@dataclass
class Budget:
    """What a job may spend and has spent. `elapsed` gives the job's seconds so far, over all its sessions."""

    caps: Caps
    elapsed: Callable[[], float]
    spent: Usage = NOTHING
    _held: Hold = field(default_factory=lambda: Hold(0, 0, 0.0))
    _aside: int = 0
    _began: tuple[float, int] | None = None
    """Seconds and calls at the first hold: the pace of calls is reckoned from there, not from a model's slow start."""
    _waiting: int = 0
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def aside(self) -> int:
        """Calls set aside for the closing measurement."""
        return self._aside

    def set_aside(self, calls: int) -> None:
        """Keep this many calls, and what they are likely to cost, for the end."""
        self._aside = calls

    @contextmanager
    def closing(self) -> Iterator[None]:
        """Within this context, what was set aside may be used."""
        kept, self._aside = self._aside, 0
        try:
            yield
        finally:
            self._aside = kept

    def admit(self, calls: int) -> None:
        """Refuse a batch of work whose calls can't all be made. Checked before any of it starts, so that where a cap on
        calls ends a job does not depend on how many calls ran at once."""
        if self.caps.calls is not None and self.spent.calls + calls + self._aside > self.caps.calls:
            raise BudgetExhausted(
                f"the cap of {self.caps.calls} calls is reached: {self.spent.calls} used, "
                f"{self._aside} set aside for the closing measurement, {calls} more needed"
            )
        self._check_seconds()

    def charge(self, usage: Usage) -> None:
        """Count something that was paid for before."""
        self.spent += usage

    async def hold(self, tokens: int, money: float | None) -> Hold:
        """Reserve one call that can use up to `tokens` and cost up to `money`."""
        wanted = Hold(1, tokens, money or 0.0)
        if self._began is None and self.caps.seconds is not None:
            self._began = (self.elapsed(), self.spent.calls)
        if self._waiting == 0 and self._fits(wanted):
            self._add(wanted, 1)
            return wanted
        self._waiting += 1
        try:
            async with self._turn:
                while (missing := self._missing(wanted)) is not None:
                    if self._held.calls == 0:
                        raise BudgetExhausted(missing)
                    self._changed.clear()
                    await self._changed.wait()
                self._add(wanted, 1)
        finally:
            self._waiting -= 1
        return wanted

    async def settle(self, hold: Hold, usage: Usage) -> None:
        """Turn a hold into what the call cost (nothing, if it failed)."""
        self._add(hold, -1)
        self.spent += usage
        self._changed.set()

    @property
    def _has_caps(self) -> bool:
        return self.caps != Caps()

    def _add(self, hold: Hold, sign: int) -> None:
        self._held.calls += sign * hold.calls
        self._held.tokens += sign * hold.tokens
        self._held.money += sign * hold.money

    def _fits(self, wanted: Hold) -> bool:
        return not self._has_caps or self._missing(wanted) is None

    def _missing(self, wanted: Hold) -> str | None:
        """Why a call does not fit now, or None when it does. The words become part of the story, so they hold no number
        that depends on which calls happened to be first."""
        caps, spent, held = self.caps, self.spent, self._held
        if caps.calls is not None and spent.calls + held.calls + wanted.calls + self._aside > caps.calls:
            return f"the cap of {caps.calls} calls is reached: {spent.calls} used"
        aside = self._aside * _MARGIN / max(spent.calls, 1)
        if caps.tokens is not None and spent.tokens * (1 + aside) + held.tokens + wanted.tokens > caps.tokens:
            return f"the cap of {caps.tokens} tokens leaves no room for another call"
        paid = spent.money or 0.0
        if caps.money is not None and paid * (1 + aside) + held.money + wanted.money > caps.money:
            return f"the cap of {caps.money:g} in money leaves no room for another call"
        return self._late()

    def _late(self) -> str | None:
        if self.caps.seconds is None:
            return None
        elapsed = self.elapsed()
        needed = elapsed + self._aside * _MARGIN * self._pace(elapsed)
        return f"the cap of {self.caps.seconds:g} seconds is reached" if needed > self.caps.seconds else None

    def _pace(self, elapsed: float) -> float:
        """Seconds per call so far, those under way included; 0 while nothing is known."""
        if self._began is None:
            return 0.0
        at, before = self._began
        return (elapsed - at) / max(1, self.spent.calls + self._held.calls - before)

    def _check_seconds(self) -> None:
        late = self._late()
        if late is not None:
            raise BudgetExhausted(late)
