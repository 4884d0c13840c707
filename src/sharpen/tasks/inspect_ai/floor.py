"""Running samples with Inspect: `eval_async`, the one public way, which a process can call once at a time.

So rollouts that wait are run together: each turn takes all that are there, one run for each task, a sample at most once in
a run. Logs go to a folder that is gone afterwards; there is no display, no server and no retry of Inspect's own.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from inspect_ai import eval_async
from inspect_ai.log import read_eval_log_async
from inspect_ai.model import ChatMessageSystem
from inspect_ai.solver import solver
from inspect_ai.util import display_type

from sharpen.core.errors import ModelError, ModelErrorKind
from sharpen.tasks.inspect_ai.loading import with_samples
from sharpen.tasks.inspect_ai.provider import CURRENT, KEY, ORDERS, Order, model

_GATHERING = 3
"""Turns of the event loop that are waited, so that rollouts which start together are run together."""


class Floor:
    """Where the samples of one event loop are run."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Order, asyncio.Future[Any]]] = []
        self._running: list[asyncio.Future[Any]] = []
        self._worker: asyncio.Task[None] | None = None

    async def run(self, order: Order) -> Any:
        """The sample as Inspect logs it, scored. A call of the model that failed is raised."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append((order, future))
        self._see_to_it()
        try:
            return await future
        finally:
            if future.cancelled():
                order.abandoned = True
                await self._stop_if_nobody_waits()

    def _see_to_it(self) -> None:
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())

    async def _work(self) -> None:
        for _ in range(_GATHERING):
            await asyncio.sleep(0)
        while batch := self._next():
            self._running = [future for _, future in batch]
            try:
                logged = await _evaluated([order for order, _ in batch])
            except asyncio.CancelledError:
                for future in self._running:
                    future.cancel()
                raise
            except BaseException as error:  # those who wait are told; whoever comes after has a run of their own
                for future in self._running:
                    if not future.done():
                        future.set_exception(error)
                continue
            for order, future in batch:
                if not future.done():
                    _settle(order, future, logged.get(str(order.sample.id)))

    def _next(self) -> list[tuple[Order, asyncio.Future[Any]]]:
        """The next run: everything that waits for the task of whoever waits longest, each sample once."""
        self._waiting = [(order, future) for order, future in self._waiting if not future.done()]
        batch: dict[str, tuple[Order, asyncio.Future[Any]]] = {}
        for order, future in self._waiting:
            if order.task is self._waiting[0][0].task:
                batch.setdefault(str(order.sample.id), (order, future))
        chosen = list(batch.values())
        self._waiting = [waiting for waiting in self._waiting if waiting not in chosen]
        return chosen

    async def _stop_if_nobody_waits(self) -> None:
        """End a run whose rollouts were all given up, as at Ctrl-C."""
        open_ones = [*self._running, *(future for _, future in self._waiting)]
        if self._worker is not None and all(future.done() for future in open_ones):
            self._worker.cancel()
            await asyncio.wait([self._worker])
            if self._waiting:
                self._see_to_it()


def here() -> Floor:
    """The floor of the running event loop."""
    return _floors.setdefault(asyncio.get_running_loop(), Floor())


_floors: WeakKeyDictionary[asyncio.AbstractEventLoop, Floor] = WeakKeyDictionary()


async def _evaluated(orders: list[Order]) -> dict[str, Any]:
    """The logged samples of one run, by id."""
    _no_display()
    by_id = {str(order.sample.id): order for order in orders}
    task = with_samples(orders[0].task, [order.sample for order in orders], _opening(by_id))
    target = model("target")
    task.model = target
    task.model_roles = {"grader": model("grader")}
    numbers = {id(order): order for order in orders}
    with tempfile.TemporaryDirectory(prefix="sharpen-inspect-") as folder, _under_way(numbers):
        logs = await eval_async(
            task,
            model=target,
            model_roles=task.model_roles,
            log_dir=folder,
            log_samples=True,
            log_realtime=False,
            log_level="critical",
            log_model_api=False,
            fail_on_error=False,
            retry_on_error=0,
            score_display=False,
            ctl_server=False,
            acp_server=False,
            max_samples=len(orders),
        )
        # A log would read its samples when they are first looked at, and patch asyncio to do so within a running loop.
        read = [await read_eval_log_async(log.location) for log in logs]
    return {str(sample.id): sample for log in read for sample in log.samples or ()}


@contextmanager
def _under_way(orders: dict[int, Order]) -> Iterator[None]:
    ORDERS.update(orders)
    try:
        yield
    finally:
        for number in orders:
            del ORDERS[number]


def _opening(orders: dict[str, Order]) -> Any:
    """The first step of every sample: whose it is, and the skill as the first system message."""

    def make() -> Any:
        async def solve(state: Any, generate: Any) -> Any:
            order = orders[str(state.sample_id)]
            CURRENT.set(order)
            state.store.set(KEY, id(order))
            if order.skill.strip():
                state.messages.insert(0, ChatMessageSystem(content=order.skill))
            return state

        return solve

    make.__name__ = "sharpen_opening"
    return solver(make)()


def _settle(order: Order, future: asyncio.Future[Any], sample: Any) -> None:
    if order.error is not None:
        future.set_exception(order.error)
    elif sample is None:
        future.set_exception(ModelError(ModelErrorKind.BAD_REPLY, "Inspect ended without this sample"))
    elif sample.error is not None:
        future.set_exception(ModelError(ModelErrorKind.BAD_REPLY, f"Inspect: {sample.error.message}"))
    else:
        future.set_result(sample)


def _no_display() -> None:
    """Inspect chooses its display once, from the environment; ours shows what is to be seen."""
    before = os.environ.get("INSPECT_DISPLAY")
    os.environ["INSPECT_DISPLAY"] = "none"
    try:
        display_type()
    finally:
        if before is None:
            del os.environ["INSPECT_DISPLAY"]
        else:
            os.environ["INSPECT_DISPLAY"] = before
