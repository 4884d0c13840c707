"""Asking a sandboxed program question by question over two pipes, while everything else stays in our own process.

What a program must not know yet is not in its process, so no trick inside of that process can find it. What comes back
crosses as one line of JSON with the number of the question before it: plain data of a bounded size, never an object. A
line that can't be read, has another number, is too long or comes unasked is `NoAnswer`, as are a program that ended and one
that takes too long. The questions are for a harness of ours inside, which the program shares a process with and may have
replaced: an answer is whatever the program wants it to be, and must be judged as such.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from sharpen.sandbox.client import begin, report_of, send_order
from sharpen.sandbox.contract import Order, Ran, Reason

_PIECE = 1 << 16
_DECODER = json.JSONDecoder(parse_constant={"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}.__getitem__)


class NoAnswer(Exception):
    """A question that was not answered. `reason` is the limit the program met, empty where it met none."""

    def __init__(self, message: str, reason: Reason = "") -> None:
        super().__init__(message)
        self.reason: Reason = reason


@asynccontextmanager
async def open_conversations(*orders: Order) -> AsyncIterator[tuple[Conversation, ...]]:
    """Start a program for each order, all at one time, and kill them with everything they started when the block ends.

    The limits of an order hold for the whole conversation, `call_seconds` and `output_kb` for one answer.
    """
    for order in orders:
        if not order.fits:
            raise NoAnswer(f"the program's own files take more than {order.limits.file_mb} MB", "files")
    open_ends: list[int] = []
    conversations: list[Conversation] = []
    try:
        channels = []
        for _ in orders:
            (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe()
            open_ends += [theirs_in, ours_out, ours_in, theirs_out]
            channels.append(((theirs_in, theirs_out), (ours_out, ours_in)))
        controls = begin(*(theirs for theirs, _ in channels))
        for order, control, (theirs, (ours_out, ours_in)) in zip(orders, controls, channels, strict=True):
            conversations.append(Conversation(order, control, ours_out, ours_in))
            for end in (*theirs, ours_out, ours_in):
                open_ends.remove(end)
            for end in theirs:
                os.close(end)
        for order, conversation in zip(orders, conversations, strict=True):
            await send_order(conversation.control, order)
        yield tuple(conversations)
    finally:
        for conversation in conversations:
            conversation.close()
        for end in open_ends:
            os.close(end)


class Conversation:
    """A program that is being asked. One question at a time."""

    def __init__(self, order: Order, control: socket.socket, questions: int, answers: int) -> None:
        self.control = control
        self._questions, self._answers = questions, answers
        self._patience, self._longest = order.limits.call_seconds, order.limits.output_kb * 1024
        self._asked = 0
        self._heard = bytearray()
        self._silent = False
        """Nothing more is read: the program has closed its end, or said too much."""
        self._waiting: asyncio.Future[None] | None = None
        self._ran: Ran | None = None
        for end in (questions, answers):
            os.set_blocking(end, False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(answers, self._hear)

    async def ask(self, question: Any) -> Any:
        """The answer to a question; `NoAnswer` where there is none."""
        number, self._asked = self._asked, self._asked + 1
        if self._heard:
            raise NoAnswer("the program answered more than it was asked")
        patience = None if number == 0 else self._patience
        await self._send(f"{json.dumps([number, question])}\n".encode(), patience)
        return _answer_in(await self._line(patience), number)

    async def ran(self) -> Ran:
        """How the program ended; waits until it has."""
        if self._ran is None:
            self._ran = await report_of(self.control)
        return self._ran

    def close(self) -> None:
        """Hang up, which kills the program."""
        self._loop.remove_reader(self._answers)
        for end in (self._questions, self._answers):
            os.close(end)
        self.control.close()

    async def _send(self, data: bytes, patience: float | None) -> None:
        while data:
            try:
                data = data[os.write(self._questions, data) :]
            except BlockingIOError:
                await self._writable(patience)
            except BrokenPipeError:  # it has ended, as waiting for its answer will show
                return

    async def _writable(self, patience: float | None) -> None:
        free = asyncio.Event()
        self._loop.add_writer(self._questions, free.set)
        try:
            async with asyncio.timeout(patience):
                await free.wait()
        except TimeoutError:
            raise NoAnswer("the program does not read what it is asked", "time") from None
        finally:
            self._loop.remove_writer(self._questions)

    async def _line(self, patience: float | None) -> bytes:
        """Everything the program says up to the end of a line, which must be the end of what it says."""
        timer = None if patience is None else self._loop.call_later(patience, self._lose_patience)
        try:
            while not self._heard.endswith(b"\n") and not self._silent:
                self._waiting = self._loop.create_future()
                await self._waiting
        finally:
            self._waiting = None
            if timer is not None:
                timer.cancel()
        if len(self._heard) > self._longest:
            raise NoAnswer("the program answered too much", "output")
        if not self._heard.endswith(b"\n"):
            await self._explain()
        line, self._heard = bytes(self._heard), bytearray()
        return line

    def _lose_patience(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(NoAnswer("the program took too long", "time"))

    def _hear(self) -> None:
        try:
            piece = os.read(self._answers, _PIECE)
        except BlockingIOError:
            return
        self._heard += piece
        if not piece or len(self._heard) > self._longest:
            self._silent = True
            self._loop.remove_reader(self._answers)
        if self._waiting is not None and not self._waiting.done() and (self._silent or piece.endswith(b"\n")):
            self._waiting.set_result(None)

    async def _explain(self) -> None:
        """Say why there is no answer of a program that has closed its end."""
        ran = await self.ran()
        last = ran.stderr.strip().splitlines()[-1:]
        raise NoAnswer(f"the program ended without an answer{f' ({last[0][:200]})' if last else ''}", ran.reason)


def _answer_in(line: bytes, number: int) -> Any:
    """The answer that a line holds; `NoAnswer` where it holds none, or the answer to another question."""
    try:
        message = _DECODER.decode(line.decode())
    except (ValueError, RecursionError) as error:  # also for bytes that are no text and numbers of too many digits
        raise NoAnswer(f"the answer can't be read: {error}") from None
    if not isinstance(message, list) or len(message) != 2 or type(message[0]) is not int or message[0] != number:
        raise NoAnswer("the program did not answer the question it was asked")
    return message[1]
