"""The caller's side: hand an order to the launcher and wait for its report, or say why there can be no sandbox here.

Each run has a socket of its own, over which the order goes out and the report comes back. Closing it is how a run is
cancelled, and a caller that dies closes it too; so nothing runs on for nobody. The launcher is started at the first run, one
for each process, and ends when that process does.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sharpen.core.errors import SandboxFailed
from sharpen.sandbox.contract import HEADER, Limits, Mode, Order, Ran, packed, receive

_PROBE = Order({}, ("python", "-c", "print('here')"), b"", Limits(seconds=30.0), Mode.BUBBLEWRAP, ())


async def run_program(
    files: Mapping[str, str],
    argv: Sequence[str],
    *,
    stdin: bytes = b"",
    limits: Limits = Limits(),  # noqa: B008 - it is frozen
    mode: Mode = Mode.BUBBLEWRAP,
    packages: Sequence[str] = (),
) -> Ran:
    """Run a program on `files`, laid out in its working folder, and tell how it ended.

    `python` as the first word is this interpreter without its site packages; `packages` names those it may import after all.
    At most as many programs run at one time as there are processors; others wait their turn, which does not count
    against their time. Cancelling kills the program and everything it started.
    """
    order = Order(files, argv, stdin, limits, mode, packages)
    if not order.fits:
        return Ran("", f"the program's own files take more than {limits.file_mb} MB", None, "files", 0.0, 0.0)
    (ours,) = begin(())
    with ours:
        await send_order(ours, order)
        return await report_of(ours)


async def send_order(control: socket.socket, order: Order) -> None:
    """Say what is to be run. A launcher that is gone is met when its report is waited for."""
    control.setblocking(False)
    with suppress(BrokenPipeError, ConnectionResetError):
        await asyncio.get_running_loop().sock_sendall(control, packed(order.dump()))


async def report_of(control: socket.socket) -> Ran:
    """Wait until a run has ended, and tell how."""
    try:
        report = await _report(control)
    except ConnectionResetError:
        report = None
    return _ran(report)


@functools.cache
def missing() -> str | None:
    """What is missing for a sandbox here, as something that can be needed ("bubblewrap, which ..."); None where it works.

    Tried once in a process, by running a program. Whatever goes wrong counts as missing.
    """
    if shutil.which("bwrap") is None:
        return "bubblewrap, which is not installed here (apt install bubblewrap)"
    try:
        (ours,) = begin(())
        with ours:
            ours.sendall(packed(_PROBE.dump()))
            ran = _ran(receive(ours))
    except (SandboxFailed, OSError) as error:
        return f"bubblewrap, which can't make a sandbox here ({error}; are user namespaces forbidden?)"
    if ran.stdout.strip() != "here":
        return f"bubblewrap, in which Python does not start here ({ran.stderr.strip() or ran.reason or ran.code})"
    return None


@dataclass
class _Launcher:
    """The launcher of this process, and the socket over which it is told of new runs."""

    process: subprocess.Popen[bytes]
    socket: socket.socket
    owner: int

    def close(self) -> None:
        if self.owner == os.getpid():
            self.socket.close()
            self.process.wait()


_launcher: _Launcher | None = None
_starting = threading.Lock()


def begin(*channels: Sequence[int]) -> list[socket.socket]:
    """Our ends of the sockets of new runs that are started together, one for each channel, which may be empty."""
    pairs = [socket.socketpair() for _ in channels]
    handles = [[theirs.fileno(), *channel] for (_, theirs), channel in zip(pairs, channels, strict=True)]
    packet = bytes(len(each) for each in handles)
    try:
        with _starting:
            socket.send_fds(_our_launcher().socket, [packet], [handle for each in handles for handle in each])
    except OSError as error:
        for ours, _ in pairs:
            ours.close()
        raise SandboxFailed(f"the process that starts sandboxes can't be reached: {error}") from error
    finally:
        for _, theirs in pairs:
            theirs.close()
    return [ours for ours, _ in pairs]


def _our_launcher() -> _Launcher:
    global _launcher
    if _launcher is not None and _launcher.owner == os.getpid() and _launcher.process.poll() is None:
        return _launcher
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "sharpen.sandbox.launcher", str(theirs.fileno())],
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    theirs.close()
    _launcher = _Launcher(process, ours, os.getpid())
    atexit.register(_launcher.close)
    return _launcher


async def _report(source: socket.socket) -> dict[str, Any] | None:
    """The report of a run, waited for without blocking the loop."""
    loop = asyncio.get_running_loop()
    got = bytearray()
    while len(got) < HEADER.size or len(got) < HEADER.size + HEADER.unpack_from(got)[0]:
        piece = await loop.sock_recv(source, 1 << 18)
        if not piece:
            return None
        got += piece
    message: dict[str, Any] = json.loads(got[HEADER.size :])
    return message


def _ran(report: Mapping[str, Any] | None) -> Ran:
    if report is None:
        raise SandboxFailed("the process that watches over a sandbox has died")
    if "failed" in report:
        raise SandboxFailed(report["failed"])
    return Ran(**report)
