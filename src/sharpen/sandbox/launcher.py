"""The process that sandboxes are started from: small, so that forking it costs little; single-threaded, so that it is safe.

Run as `python -m sharpen.sandbox.launcher FD`, with a socket to its parent as FD. Every packet on it carries the socket of
one run, or of several that belong together, for which keepers are forked as soon as a processor is free: those that belong
together at once, since one may wait for the other. If the parent goes, so does everything.
"""

from __future__ import annotations

import gc
import os
import resource
import select
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from sharpen.sandbox import usage
from sharpen.sandbox.contract import MOST_HANDLES
from sharpen.sandbox.keeper import Connection, keep
from sharpen.sandbox.places import Places, arrive_at_own_proc, found, leave_for_own_proc, proc_is_ours, staged
from sharpen.sandbox.starting import adopt_orphans, die_with_parent, warm_up

_CLOSE_ON_EXEC = 0x40000000  # MSG_CMSG_CLOEXEC: a program that held the socket of its own run could forge its report

_FAREWELL = 5.0


def main(handle: int) -> None:
    """Serve until the parent hangs up, from a place whose /proc can be trusted."""
    if not leave_for_own_proc():
        serve(handle)
        return
    launcher = os.fork()
    if launcher:
        os.close(handle)
        os.waitpid(launcher, 0)
        return
    with suppress(OSError):  # then sandboxes fail, and each says why
        arrive_at_own_proc()
    serve(handle)


def serve(handle: int) -> None:
    """Fork a keeper for every run, as many at one time as there are processors."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's Ctrl-C is the parent's business
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    places = staged(found())
    adopt_orphans()
    warm_up()
    gc.freeze()
    waker, woken = os.pipe()
    for end in (waker, woken):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    parent = socket.socket(fileno=handle)
    waiting: deque[list[Connection]] = deque()
    keepers: set[int] = set()
    slots = len(os.sched_getaffinity(0))
    while True:
        ready, _, _ = select.select([handle, waker], [], [])
        if waker in ready:
            os.read(waker, 4096)
            _reap(keepers)
        if handle in ready:
            packet, handles, _, _ = socket.recv_fds(parent, 16, MOST_HANDLES, _CLOSE_ON_EXEC)
            if not packet:
                break
            waiting.append(_connections(packet, handles))
        while waiting and len(keepers) < slots:
            together = waiting.popleft()
            while together:
                keepers.add(_fork_keeper(together.pop(0), (together, *waiting), places, (handle, waker, woken)))
    # A parent that is gone has hung up on its keepers too, which then tidy up. Who takes too long dies with this process.
    until = time.monotonic() + _FAREWELL
    while keepers and time.monotonic() < until:
        select.select([waker], [], [], 0.1)
        _reap(keepers)


def _connections(packet: bytes, handles: list[int]) -> list[Connection]:
    """The connections that a packet carries, one for each run; its bytes say how many handles each has."""
    connections, rest = [], iter(handles)
    for count in packet:
        control, *channel = (next(rest) for _ in range(count))
        connections.append(Connection(socket.socket(fileno=control), (channel[0], channel[1]) if channel else None))
    return connections


def _fork_keeper(
    connection: Connection, waiting: Sequence[Sequence[Connection]], places: Places, mine: tuple[int, ...]
) -> int:
    launcher = os.getpid()
    keeper = os.fork()
    if keeper:
        connection.close()
        return keeper
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        die_with_parent(launcher)
        # The connections of other runs must be held by nobody else, or their ends would go unnoticed.
        for group in waiting:
            for other in group:
                other.close()
        for descriptor in mine:
            os.close(descriptor)
        keep(connection, places)
    finally:
        os._exit(0)


def _reap(keepers: set[int]) -> None:
    while keepers:
        try:
            keeper, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if keeper == 0:
            return
        keepers.discard(keeper)
        if os.WIFSIGNALED(status):
            _bury_for_another(keepers)


def _bury_for_another(keepers: set[int]) -> None:
    """Kill what a keeper that was killed itself has left to us."""
    for child in usage.children(os.getpid()) if proc_is_ours() else ():
        if child not in keepers:
            usage.kill_below(child)
            os.kill(child, signal.SIGKILL)


if __name__ == "__main__":
    main(int(sys.argv[1]))
