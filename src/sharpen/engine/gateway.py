"""The one way to a model: pay once, stay within the budget, keep to the endpoint's pace, try again what can heal.

Every call of every role passes here. A reply that is in the ledger is returned from there; a request that is already
under way, here or in another process that uses the ledger, is not sent twice; anything else is reserved in the budget, waits
for a slot of its endpoint, is retried where that helps, and is stored before anyone builds on it. What each attempt may cost
is on record in the ledger before it leaves, under the job's `account`, so that no cap is passed whatever ends the process.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
from collections.abc import Callable, Mapping
from contextlib import suppress

from sharpen.core.chat import Reply, Request
from sharpen.core.digest import Json, canonical
from sharpen.core.errors import ModelError, SharpenError, StorageError, UsageError
from sharpen.core.redact import redact_known
from sharpen.core.usage import NOTHING, Usage
from sharpen.engine.budget import Budget, Hold
from sharpen.engine.limits import Limiter
from sharpen.engine.retry import Retry, RetryPolicy, with_retries
from sharpen.ledger.keys import reply_key
from sharpen.ledger.payments import Paid, Session
from sharpen.ledger.store import Ledger
from sharpen.models.base import Model

_FIRST_LOOK, _LAST_LOOK = 0.002, 0.05
"""Seconds between two looks at what another process is paying for: few at first, since many calls are short."""


_BYTES_PER_TOKEN = 12
"""Room on the disk for each token a call may use: four letters, in the reply and twice in the rollout that quotes it."""


class Stopped(SharpenError):
    """The person at the keyboard asked the job to stop. What was under way has been stored."""

    exit_code = 130


class NotStored(Exception):
    """A reply that is on record is not in the ledger."""


class Gateway:
    """Shared by everything in a job that talks to a model."""

    def __init__(
        self,
        models: Mapping[str, Model],
        ledger: Ledger,
        budget: Budget,
        *,
        policy: RetryPolicy | None = None,
        on_retry: Callable[[Retry], None] | None = None,
        repeat: int = 0,
        account: str = "",
    ) -> None:
        self.models = models
        self.stopping = False
        self.paid_calls = 0
        self._ledger = ledger
        self._budget = budget
        self._session = Session(account)
        self._policy = policy or RetryPolicy()
        self._on_retry = on_retry
        self._repeat = repeat
        self._flying: dict[bytes, asyncio.Future[Reply]] = {}
        self.limiters: dict[str, Limiter] = {}
        for model in models.values():
            self.limiters.setdefault(model.endpoint, Limiter(model.concurrency))

    def model(self, role: str) -> Model:
        if role not in self.models:
            raise UsageError(f"no model is given for the role {role!r}; given: {', '.join(self.models) or 'none'}")
        return self.models[role]

    @property
    def ledger(self) -> Ledger:
        return self._ledger

    def count(self, usage: Usage, role: str) -> None:
        """Count towards the budget what was paid for in an earlier session and is not in the ledger."""
        self._budget.charge(usage, role)

    async def complete(
        self, role: str, request: Request, draw: Json, *, keep_request: bool = False, on_record: bool = False
    ) -> Reply:
        """The reply to `request`. `draw` tells one random draw from another; it is ignored where there is no randomness.
        One that is `on_record` as paid is not paid for: where it is not stored, `NotStored` is raised."""
        model = self.model(role)
        if model.deterministic and request.temperature == 0:
            draw = None
        else:
            request = dataclasses.replace(request, seed=_seed(draw))
        # A repetition asks the very same again, the request's seed included; only what it is told is its own.
        key = reply_key(model.identity, request, draw, repeat=self._repeat)
        stored = self._ledger.reply(key)
        while stored is None and key in self._flying:
            stored = await _landing(self._flying[key])
        if stored is not None:
            self._budget.charge(stored.usage, role)
            return stored
        if on_record:
            raise NotStored(f"the reply of the {role}")
        if self.stopping:
            raise Stopped("stopped")
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._flying[key] = future
        try:
            stored = await self._claim(key, _BYTES_PER_TOKEN * model.bound(request)[0])
            if stored is not None:
                self._budget.charge(stored.usage, role)
                future.set_result(stored)
                return stored
            reply = await self._pay(role, model, request)
            clean = redact_known(reply.text)
            kept = [[m.role, redact_known(m.content)] for m in request.messages] if keep_request else None
            if keep_request and clean != reply.text:
                reply = dataclasses.replace(reply, text=clean)
            # A rollout is scored by what the model said. Where that holds a secret it is not kept: the rollout is.
            if clean == reply.text:
                self._ledger.add_reply(key, model.name, role, reply, kept)
            future.set_result(reply)
            return reply
        except asyncio.CancelledError:
            future.cancel()
            raise
        except BaseException as error:
            future.set_exception(error)
            future.exception()  # marks it as seen: often nobody else waits for it
            raise
        finally:
            del self._flying[key]
            self._ledger.release(key)

    async def _claim(self, key: bytes, expected: int) -> Reply | None:
        """Wait until no other process is paying for a reply. Returns theirs; None where it is for us to pay."""
        pause = _FIRST_LOOK
        async with self._budget.in_time():
            while not self._ledger.claim(key, expected):
                if self.stopping:
                    raise Stopped("stopped")
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LAST_LOOK)
        return self._ledger.reply(key, claimed=True)

    async def _pay(self, role: str, model: Model, request: Request) -> Reply:
        bound = model.bound(request)
        hold = await self._budget.hold(*bound)
        usage = NOTHING
        try:
            async with self._budget.in_time():
                reply = await with_retries(
                    lambda: self._send(model, request, *bound),
                    policy=self._policy,
                    limiter=self.limiters[model.endpoint],
                    on_retry=self._on_retry,
                )
            usage = reply.usage
            self.paid_calls += 1
        except ModelError as error:
            usage = error.usage
            raise
        finally:
            await self._budget.settle(hold, usage, role)
        whole = _whole(reply.text)
        return reply if whole == reply.text else dataclasses.replace(reply, text=whole)

    async def _send(self, model: Model, request: Request, tokens: int, money: float | None) -> Reply:
        """One attempt at the call. A job that was asked to stop while it queued does not make it any more."""
        if self.stopping:
            raise Stopped("stopped")
        attempt = await self._begin_attempt(tokens, money, leaves=not getattr(model, "in_process", False))
        try:
            reply = await model.complete(request)
        except ModelError as error:
            if error.counts and error.usage == NOTHING:
                error.usage = Usage(1, tokens - request.max_tokens, 0, request.max_tokens, money)
            self._end_attempt(attempt, _cost(error.usage, lost=error.usage.calls))
            raise
        except BaseException:  # cancelled, or a defect of the model: what has left may have been answered
            self._end_attempt(attempt, Paid(1, attempt.tokens, attempt.money, lost=1))
            raise
        self._end_attempt(attempt, _cost(reply.usage))
        return reply

    async def _begin_attempt(self, tokens: int, money: float | None, *, leaves: bool) -> Hold:
        """Put an attempt on record, so that it counts even if this process is killed before its end. One that does not leave
        the process ends with it: nobody could send a bill."""
        attempt = await self._budget.begin_attempt(tokens, money)
        session = self._session
        session.open_calls += 1
        session.open_tokens += attempt.tokens
        session.open_money += attempt.money
        try:
            self._ledger.note_payments(session)
            if leaves:
                await self._ledger.committed()
        except BaseException:  # nothing has left
            self._end_attempt(attempt, Paid())
            raise
        return attempt

    def _end_attempt(self, attempt: Hold, cost: Paid) -> None:
        self._budget.end_attempt(attempt, cost)
        session = self._session
        session.open_calls -= 1
        session.open_tokens -= attempt.tokens
        session.open_money = session.open_money - attempt.money if session.open_calls else 0.0
        session.calls += cost.calls
        session.tokens += cost.tokens
        session.money += cost.money
        session.lost += cost.lost
        with suppress(StorageError):  # told where the reply is stored, or where the next call would leave
            self._ledger.note_payments(session)


def _cost(usage: Usage, lost: int = 0) -> Paid:
    return Paid(usage.calls, usage.tokens, usage.money or 0.0, lost)


async def _landing(flight: asyncio.Future[Reply]) -> Reply | None:
    """What a call that somebody else sent came to. None if they were cancelled: that says nothing about the question."""
    await asyncio.wait([flight])
    return None if flight.cancelled() else flight.result()


def _whole(text: str) -> str:
    """`text` without half characters, which an answer that breaks off within an emoji has and no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _seed(draw: Json) -> int:
    return int.from_bytes(hashlib.sha256(canonical(draw).encode()).digest()[:4], "big") >> 1
