"""Signals that ask a process to stop: Ctrl-C, SIGTERM (from `kill` or a scheduler) and SIGHUP (the terminal is gone).

All three mean the same: finish the calls under way, store them, and end; a second one means at once. One that is ignored
when the program starts (SIGHUP under `nohup`) stays ignored.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from types import FrameType

_INHERITED = (signal.SIGTERM, signal.SIGHUP)
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def raise_on_stop_signals() -> None:
    """Make SIGTERM and SIGHUP raise KeyboardInterrupt, as Ctrl-C does, where nothing better is set up."""
    protect_children()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _interrupt)


@contextmanager
def handle_stop_signals(handler: Callable[[], None], numbers: Sequence[int] = STOP_SIGNALS) -> Iterator[None]:
    """While inside, `handler` is called on the event loop when a stop signal arrives."""
    import asyncio  # slow to import, and this module is part of every command

    protect_children()
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in numbers}
    heard = [number for number in numbers if before[number] != signal.SIG_IGN]

    for number in heard:
        loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        for number in heard:
            loop.remove_signal_handler(number)
            signal.signal(number, before[number])


@cache
def protect_children() -> None:
    """A process that somebody's code forks off must die of a SIGTERM, not pass it on: the pipe by which a signal reaches the
    event loop would be the parent's."""
    os.register_at_fork(before=_hold_back, after_in_child=_forget_handlers, after_in_parent=_let_through)


def _hold_back() -> None:
    """A signal that arrives in the child before its handlers are forgotten would still take the parent's pipe."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _INHERITED)


def _let_through() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _INHERITED)


def _forget_handlers() -> None:
    with suppress(ValueError):  # only the main thread may, and a fork in another one makes that the main thread
        signal.set_wakeup_fd(-1)
        for number in _INHERITED:
            if signal.getsignal(number) not in (signal.SIG_IGN, signal.SIG_DFL):
                signal.signal(number, signal.SIG_DFL)
    _let_through()


def _interrupt(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt
