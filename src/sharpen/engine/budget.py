"""Caps on calls, tokens, money and seconds that are never passed, however many calls are under way.

Before a call goes out, the most it can cost is held; when its reply is there, the hold becomes what it did cost. A call
that does not fit waits while other holds may still shrink, and is refused with `BudgetExhausted` when they can't; nobody
overtakes those who wait, so that who is refused does not depend on how fast the others are. A part of the budget can be
set aside for the closing measurement, so that a job that runs into its cap still ends with a test score.

There are two accounts, and both are kept within the caps. `spent` is what trainers see and plan by: what a resumed job
finds in the ledger is charged as if it had been paid now, so that a cap ends a resumed job where it would have ended an
undisturbed one. `paid` is what really left: every attempt of every session, those that were repeated, lost in a kill or
answered with nothing usable included. It only ever refuses a payment.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from sharpen.core.digest import Json
from sharpen.core.errors import BudgetExhausted
from sharpen.core.usage import NOTHING, Usage
from sharpen.ledger.payments import Paid

OPTIMIZER = "optimizer"
_MARGIN = 1.2
"""Tokens and seconds set aside are estimates from what calls cost so far; this much more is kept, to be on the safe side."""

_SPARE = 0.2
"""Share of the seconds, or of `_LONG` ones, kept beside the time that rollouts without a model are likely to take."""
_LONG = 60.0


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
    paid: Paid = field(default_factory=Paid)
    """What was really paid, by earlier sessions too."""
    _open: Hold = field(default_factory=lambda: Hold(0, 0, 0.0))
    """The most that attempts under way can cost."""
    _held: Hold = field(default_factory=lambda: Hold(0, 0, 0.0))
    _aside: int = 0
    _rolled: Usage = NOTHING
    """The part of `spent` that went into rollouts, which is what the closing measurement consists of."""
    _kept: Hold = field(default_factory=lambda: Hold(0, 0, 0.0))
    """What the calls set aside are likely to use. Reckoned anew before each batch and not within one, where the order in
    which calls end would have a say in it."""
    _owed: int = 0
    """Rollouts of the closing measurement that call no model: time is all they take."""
    _spare: float = 0.0
    _closing: bool = False
    _free: tuple[int, float] = (0, 0.0)
    """How many rollouts called no model, and the seconds they took, side by side as they were."""
    _began: tuple[float, int] | None = None
    """Seconds and calls at the first hold: the pace of calls is reckoned from there, not from a model's slow start."""
    _refused: str | None = None
    """Why a call was refused. Those that wait behind it are refused too, so that it does not depend on the number of
    workers what is still paid for."""
    _waiting: int = 0
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _attempt_ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def aside(self) -> int:
        """Calls set aside for the closing measurement."""
        return self._aside

    def set_aside(self, calls: int) -> None:
        """Keep this many calls, and what they are likely to cost, for the end."""
        self._aside = calls

    @property
    def owed(self) -> int:
        """Rollouts for which time is kept."""
        return self._owed

    def keep_time(self, rollouts: int, *, training: bool = True) -> None:
        """Keep the time that so many rollouts are likely to take for the end, where rollouts call no model. Such rollouts
        may take next to no time, so a little is kept for what is done around them, most of it while still training."""
        self._owed = rollouts
        self._spare = (_SPARE if training else _SPARE / 4) * bool(rollouts)

    def rolled_out(self, rollouts: int, seconds: float) -> None:
        """Count rollouts that called no model."""
        self._free = (self._free[0] + rollouts, self._free[1] + seconds)

    def record(self) -> list[Json]:
        """What is spent so far, in a form that `go_on` understands."""
        return [list(self.spent.told()), list(self._rolled.told())]

    def go_on(self, spent: list[Any] | None) -> None:
        """After the budget has ended: what is still to be done is weighed anew. `spent` is what was recorded when it ended
        the first time: questions that were answered after that are not asked again, but they count."""
        self._refused = None
        if spent is not None:
            self.spent, self._rolled = (Usage.from_told(row) for row in spent)

    @contextmanager
    def closing(self) -> Iterator[None]:
        """Within this context, what was set aside may be used."""
        aside, self._aside = self._aside, 0
        self._closing, self._refused = True, None
        self._keep()
        try:
            yield
        finally:
            self._aside, self._closing = aside, False
            self._keep()

    def admit(self, calls: int, *, free: int = 0, told: bool = False) -> None:
        """Refuse a batch of rollouts whose calls can't all be made, or, going by what rollouts cost so far, can't all be
        paid for; or, where they are `free` and call no model, can't all be done in time. Checked before any of it starts, so
        that where a cap ends a job does not depend on how many calls ran at once, and nothing is spent on half a batch. What
        was `told` before was not refused, and is not refused now. Nor is a closing measurement that calls no model, which
        costs nothing but the time that was kept for it, and perhaps a little more."""
        self._keep()
        if told or (self._closing and not calls):
            return
        if self.caps.calls is not None and self.spent.calls + calls + self._aside > self.caps.calls:
            raise BudgetExhausted(
                f"the cap of {self.caps.calls} calls is reached: {self.spent.calls} used, "
                f"{self._aside} set aside for the closing measurement, {calls} more needed"
            )
        likely = self._likely(calls)
        missing = self._missing(Hold(0, likely.tokens, likely.money)) or self._late(free)
        if missing is not None:
            raise BudgetExhausted(missing)

    def charge(self, usage: Usage, role: str) -> None:
        """Count something that was paid for before."""
        self.spent += usage
        if role != OPTIMIZER:
            self._rolled += usage

    async def hold(self, tokens: int, money: float | None) -> Hold:
        """Reserve one call that can use up to `tokens` and cost up to `money`."""
        wanted = Hold(1, tokens, money or 0.0)
        if self._began is None and self.caps.seconds is not None:
            self._began = (self.elapsed(), self.spent.calls)
        if self._refused is not None:
            raise BudgetExhausted(self._refused)
        if self._waiting == 0 and self._fits(wanted):
            _add(self._held, wanted, 1)
            return wanted
        self._waiting += 1
        try:
            async with self._turn:
                while (missing := self._refused or self._missing(wanted)) is not None:
                    if self._held.calls == 0 or self._refused is not None:
                        self._refused = missing
                        raise BudgetExhausted(missing)
                    self._changed.clear()
                    await self._changed.wait()
                _add(self._held, wanted, 1)
        finally:
            self._waiting -= 1
        return wanted

    @asynccontextmanager
    async def in_time(self) -> AsyncIterator[None]:
        """What is done inside ends where the cap on seconds does, whatever it is waiting for."""
        if self.caps.seconds is None:
            yield
            return
        try:
            async with asyncio.timeout(max(0.0, self.caps.seconds - self.elapsed())) as limit:
                yield
        except TimeoutError:
            if not limit.expired():
                raise
            raise BudgetExhausted(f"the cap of {self.caps.seconds:g} seconds is reached") from None

    async def settle(self, hold: Hold, usage: Usage, role: str) -> None:
        """Turn a hold into what the call cost (nothing, if it failed)."""
        _add(self._held, hold, -1)
        self.charge(usage, role)
        self._changed.set()

    async def begin_attempt(self, tokens: int, money: float | None) -> Hold:
        """Reserve one attempt to send a call. It waits while those under way may turn out cheaper than they could be."""
        wanted = Hold(1, tokens, money or 0.0)
        while (cap := self._passed(self.paid, self._open, wanted)) is not None:
            if self._open.calls == 0:
                raise BudgetExhausted(
                    f"the cap of {cap} leaves no room for another call: calls that were repeated, lost or answered with "
                    f"nothing usable count too"
                )
            self._attempt_ended.clear()
            await self._attempt_ended.wait()
        _add(self._open, wanted, 1)
        return wanted

    def end_attempt(self, attempt: Hold, cost: Paid) -> None:
        """Count what an attempt cost: nothing where it certainly was not served."""
        _add(self._open, attempt, -1)
        if cost.calls:
            self.paid += cost
        self._attempt_ended.set()

    @property
    def _has_caps(self) -> bool:
        return self.caps != Caps()

    def _fits(self, wanted: Hold) -> bool:
        return not self._has_caps or self._missing(wanted) is None

    def _missing(self, wanted: Hold) -> str | None:
        """Why a call does not fit now, or None when it does. The words become part of the story, so they hold no number
        that depends on which calls happened to be first."""
        spent = Paid(self.spent.calls, self.spent.tokens, self.spent.money or 0.0)
        cap = self._passed(spent, self._held, wanted)
        if cap is None:
            return self._late()
        if cap.endswith("calls"):
            return f"the cap of {cap} is reached: {spent.calls} used"
        return f"the cap of {cap} leaves no room for another call"

    def _passed(self, spent: Paid, held: Hold, wanted: Hold) -> str | None:
        """The cap that one more call would pass, in words; None where it fits."""
        caps, kept = self.caps, self._kept
        if caps.calls is not None and spent.calls + held.calls + wanted.calls + self._aside > caps.calls:
            return f"{caps.calls} calls"
        if caps.tokens is not None and spent.tokens + kept.tokens + held.tokens + wanted.tokens > caps.tokens:
            return f"{caps.tokens} tokens"
        if caps.money is not None and spent.money + kept.money + held.money + wanted.money > caps.money:
            return f"{caps.money:g} in money"
        return None

    def _keep(self) -> None:
        self._kept = self._likely(self._aside * _MARGIN)

    def _likely(self, calls: float) -> Hold:
        """What so many calls of rollouts are likely to use; nothing while none has been made."""
        share = calls / max(1, self._rolled.calls)
        return Hold(0, round(self._rolled.tokens * share), (self._rolled.money or 0.0) * share)

    def _late(self, free: int = 0) -> str | None:
        if self.caps.seconds is None:
            return None
        elapsed = self.elapsed()
        owed = (free + self._owed) * self._free[1] / max(1, self._free[0])
        spare = self._spare * min(self.caps.seconds, _LONG)
        needed = elapsed + spare + _MARGIN * (self._aside * self._pace(elapsed) + owed)
        return f"the cap of {self.caps.seconds:g} seconds is reached" if needed > self.caps.seconds else None

    def _pace(self, elapsed: float) -> float:
        """Seconds per call so far, those under way included; 0 while nothing is known."""
        if self._began is None:
            return 0.0
        at, before = self._began
        return (elapsed - at) / max(1, self.spent.calls + self._held.calls - before)


def _add(total: Hold, hold: Hold, sign: int) -> None:
    total.calls += sign * hold.calls
    total.tokens += sign * hold.tokens
    total.money = total.money + sign * hold.money if total.calls else 0.0
