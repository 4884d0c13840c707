"""Jobs in processes of their own: started from the nursery, watched, killed when their time is up, their output kept.

Output goes through a pipe and from there, without secrets and up to a limit, to a file: a job that prints a gigabyte leaves
a few megabytes. Nobody waits for a pipe to close, since a process that detached itself could hold it open; when the nursery
says that a job has ended, what is in the pipe is read and that is all.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sharpen.bench.job_process import Together
from sharpen.bench.keeper import PACKET
from sharpen.core.errors import StorageError
from sharpen.core.redact import redact

LOG_LIMIT = 4 << 20
_GRACE = 20.0


@dataclass(frozen=True)
class Ended:
    """How a job's process ended. `reason` is empty where it ended of its own accord; `why` is what it then said itself."""

    code: int | None
    signal: int | None
    reason: str = ""
    cpu: float = 0.0
    memory: int = 0
    """The largest resident size of one of its processes, in kilobytes."""
    why: str = ""


@dataclass(frozen=True)
class Order:
    """What is to be started: a job of a run, and the limits it has."""

    run: Path
    job: str
    log: Path
    together: Together | None = None
    timeout: float | None = None
    memory: int | None = None
    pay_again: bool = False


class Log:
    """Bytes from a pipe to a file: whole lines, redacted, up to a limit."""

    def __init__(self, source: int, path: Path) -> None:
        self._source, self._path = source, path
        self._rest = b""
        self._written = 0
        self._cut = False
        os.set_blocking(source, False)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab")

    def pump(self) -> bool:
        """Take what is there now. False once nobody is left who could write more."""
        while True:
            try:
                piece = os.read(self._source, PACKET)
            except BlockingIOError:
                return True
            if not piece:
                return False
            if not self._cut:
                self._take(piece)

    def close(self) -> None:
        self.pump()
        if self._rest and not self._cut:
            self._write(self._rest)
        self._file.close()
        os.close(self._source)

    def _take(self, piece: bytes) -> None:
        lines, newline, rest = (self._rest + piece).rpartition(b"\n")
        if len(rest) > LOG_LIMIT:
            lines, newline, rest = rest, b"", b""
        self._rest = rest
        self._write(lines + newline)

    def _write(self, data: bytes) -> None:
        clean = redact(data.decode(errors="replace")).encode()
        room = LOG_LIMIT - self._written
        self._file.write(clean[:room])
        self._written += min(len(clean), room)
        if len(clean) > room:
            self._cut = True
            self._file.write(b"\n[what was printed after this was left out]\n")
        self._file.flush()


@dataclass
class Nursery:
    """The parent's end of the nursery."""

    socket: socket.socket
    _waiting: dict[str, asyncio.Future[dict[str, Any]]] = field(default_factory=dict)

    async def carry_out(self, order: Order) -> Ended:
        """Run a job to its end, or to the end of its time. If this is cancelled, the job is killed."""
        source, sink = os.pipe()
        log = Log(source, order.log)
        loop = asyncio.get_running_loop()

        def pump() -> None:
            if not log.pump():
                loop.remove_reader(source)  # a pipe at its end is always readable: the loop would never sleep

        loop.add_reader(source, pump)
        self._waiting[order.job] = ended = loop.create_future()
        message = {"start": order.job, "run": str(order.run.resolve()), "job": order.job, "memory": order.memory}
        if order.pay_again:
            message["pay_again"] = True
        if order.together is not None:
            message |= {"jobs_at_once": order.together.jobs, "limits": str(order.together.limits)}
        try:
            socket.send_fds(self.socket, [json.dumps(message).encode()], [sink])
            os.close(sink)
            return await self._until_ended(order, ended)
        finally:
            loop.remove_reader(source)
            log.close()
            del self._waiting[order.job]

    def stop_gently(self) -> None:
        """Ask every job to finish the calls under way and stop."""
        for key in self._waiting:
            self.socket.send(json.dumps({"stop": key}).encode())

    async def _until_ended(self, order: Order, ended: asyncio.Future[dict[str, Any]]) -> Ended:
        reason = ""
        try:
            told = await asyncio.wait_for(asyncio.shield(ended), order.timeout)
        except TimeoutError:
            reason = f"killed: it took more than {order.timeout:g} seconds"
            told = await self._kill(order.job, ended)
        except asyncio.CancelledError:
            await self._kill(order.job, ended)
            raise
        return _described(told, reason)

    async def _kill(self, key: str, ended: asyncio.Future[dict[str, Any]]) -> dict[str, Any]:
        self.socket.send(json.dumps({"kill": key}).encode())
        return await asyncio.wait_for(asyncio.shield(ended), _GRACE)

    async def listen(self) -> None:
        """Pass on what the nursery says, until it falls silent."""
        loop = asyncio.get_running_loop()
        while packet := await loop.sock_recv(self.socket, PACKET):
            message = json.loads(packet)
            waiting = self._waiting.get(message.get("ended", ""))
            if waiting is not None and not waiting.done():
                waiting.set_result(message)
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(
                    StorageError("the process that starts jobs has died; the same command goes on where this stopped")
                )


@asynccontextmanager
async def nursery(modules: Sequence[str] = ()) -> AsyncIterator[Nursery]:
    """A nursery that lasts as long as the context and has `modules` imported; jobs still running at its end are killed."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "sharpen.bench.nursery", str(theirs.fileno()), *modules, pass_fds=[theirs.fileno()],
        start_new_session=True,
    )  # fmt: skip
    theirs.close()
    await asyncio.get_running_loop().sock_recv(ours, PACKET)
    made = Nursery(ours)
    listening = asyncio.create_task(made.listen())
    try:
        yield made
    finally:
        listening.cancel()
        ours.close()
        await process.wait()


def _described(told: dict[str, Any], reason: str) -> Ended:
    if not reason and told.get("signal"):
        name = signal.Signals(told["signal"]).name
        reason = {"SIGSEGV": "crashed: segmentation fault", "SIGXCPU": "killed: out of CPU time"}.get(
            name, f"killed by {name}"
        )
    cpu, memory = told.get("cpu", 0.0), told.get("memory", 0)
    return Ended(told.get("code"), told.get("signal"), reason, cpu, memory, told.get("why", ""))
