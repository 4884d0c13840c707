"""One run from its beginning to its end: start the program, read what it prints, stop it when it goes too far, bury it.

A keeper is a process of its own. It adopts whatever the program leaves behind, so that nothing outlives the run, and it
never waits for a pipe to close, since a process that detached itself could hold it open: when the program has ended, what
is in the pipes is read and that is all. It ends the run when its time is up, when the caller hangs up, when too much is
printed, and, looking ten times a second, when all processes together use too much.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import time
from dataclasses import asdict, dataclass, field

from sharpen.core.errors import SandboxFailed, SharpenError
from sharpen.sandbox import usage, verdict
from sharpen.sandbox.contract import Limits, Mode, Order, Ran, Reason, packed, receive
from sharpen.sandbox.places import Places, proc_is_ours
from sharpen.sandbox.starting import Started, adopt_orphans, start

_GLANCE = 0.1
_PATIENCE = 0.005
"""What dies with its namespace does so by itself, and sooner than it is looked for."""
_GRACE = 2.0
_GOODBYE = 0.05
"""How long a program may take to end by itself when its conversation is over. Who is killed leaves no account of time."""
_PIECE = 1 << 16


@dataclass
class Connection:
    """What connects a run with its caller: `control`, over which the order comes and the report goes, and where the
    two hold a conversation, the ends of the pipes that become the program's standard input and output."""

    control: socket.socket
    channel: tuple[int, int] | None

    def close(self) -> None:
        self.control.close()
        self.close_channel()

    def close_channel(self) -> None:
        for descriptor in self.channel or ():
            os.close(descriptor)
        self.channel = None


def keep(connection: Connection, places: Places) -> None:
    """Carry out the order that comes over a connection, and report over it."""
    adopt_orphans()
    control = connection.control
    message = receive(control)
    if message is None:
        return
    order = Order.load(message)
    try:
        goodbye = 0.0 if connection.channel is None else _GOODBYE
        started = start(order, places, connection.channel)
        connection.close_channel()
        try:
            report = asdict(_watched(order, started, control, goodbye))
        finally:
            _bury(started)
            started.clean_up()
    except (SharpenError, OSError) as error:
        report = {"failed": str(error)}
    try:
        control.sendall(packed(report))
    except OSError:  # nobody is left to be told
        return


@dataclass
class _Output:
    """What the program has printed so far, up to a limit for both streams together."""

    room: int
    pieces: dict[int, bytearray] = field(default_factory=dict)

    def take(self, stream: int) -> bool:
        """Read what is there now; False when the stream has ended or the limit is passed."""
        kept = self.pieces.setdefault(stream, bytearray())
        while self.room >= 0:
            try:
                piece = os.read(stream, _PIECE)
            except BlockingIOError:
                return True
            if not piece:
                return False
            kept += piece[: self.room]
            self.room -= len(piece)
        return False

    def text(self, stream: int) -> str:
        return self.pieces.get(stream, bytearray()).decode(errors="replace")


def _watched(order: Order, started: Started, control: socket.socket, goodbye: float) -> Ran:
    """Watch a program until it ends or has to be ended."""
    begun = time.monotonic()
    output = _Output(order.limits.output_kb * 1024)
    stopped = _until_ended(order.limits, started, control, output, begun + order.limits.seconds, goodbye)
    seconds = time.monotonic() - begun
    # Who is killed takes with it what nobody has waited for; so that is looked up before.
    cpu = usage.tally(started.process).cpu_seconds if stopped not in ("", "killed") and proc_is_ours() else 0.0
    cpu = max(cpu, _bury(started))
    for stream in (started.stdout, started.stderr):
        output.take(stream)
    if output.room < 0:
        stopped = stopped or "output"
    stderr = output.text(started.stderr)
    ended = _exit_code(order, started, stderr) if not stopped else None
    code, reason = verdict.of(stopped, ended, stderr, cpu, order.limits)
    return Ran(output.text(started.stdout), stderr, code, reason, round(seconds, 4), round(cpu, 4))


def _until_ended(
    limits: Limits, started: Started, control: socket.socket, output: _Output, deadline: float, goodbye: float
) -> Reason:
    """Wait for the program's end; why it was ended, where it did not end by itself."""
    ending = os.pidfd_open(started.process)
    poll = select.poll()
    for source in (ending, started.stdout, started.stderr, control.fileno()):
        poll.register(source, select.POLLIN)
    adds_up = proc_is_ours()
    glance = time.monotonic() + _GLANCE
    alone = False
    try:
        while True:
            now = time.monotonic()
            if now >= deadline:
                return "killed" if alone else "time"
            if adds_up and now >= glance:
                glance = now + _GLANCE
                if too_much := verdict.too_much(usage.tally(started.process), limits, started.own_processes):
                    return too_much
            ready = {source for source, _ in poll.poll(1000 * max(0.0, min(deadline, glance) - now))}
            if control.fileno() in ready:  # nothing more is ever said to us, so this is the caller hanging up
                alone, deadline = True, min(deadline, time.monotonic() + goodbye)
                poll.unregister(control.fileno())
            for stream in ready & {started.stdout, started.stderr}:
                if not output.take(stream):
                    poll.unregister(stream)
            if output.room < 0:
                return "output"
            if ending in ready:
                return ""
    finally:
        os.close(ending)


def _bury(started: Started) -> float:
    """Let nothing of the run live on. The processor time that all of it used, as far as it was waited for."""
    used = 0.0
    begun = time.monotonic()
    walks = proc_is_ours()
    while time.monotonic() < begun + _GRACE:
        try:
            process, status, spent = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if process:
            used += spent.ru_utime + spent.ru_stime
            if process == started.process:
                started.status = status
            continue
        if started.status is None:
            _kill_group(started.process)
        if walks and time.monotonic() > begun + _PATIENCE:
            usage.kill_below(os.getpid())
        time.sleep(0.0005)
    return used


def _kill_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:  # all of it is dead
        return


def _exit_code(order: Order, started: Started, stderr: str) -> int:
    """The program's exit code, or minus the signal that ended it. Bubblewrap's own failures are raised."""
    assert started.status is not None
    direct = os.waitstatus_to_exitcode(started.status)
    if order.mode is Mode.UNSAFE:
        return direct
    told = [json.loads(line) for line in os.read(started.report, _PIECE).splitlines()]
    code = next((line["exit-code"] for line in told if "exit-code" in line), None)
    if code is None:
        raise SandboxFailed(stderr.strip().splitlines()[-1] if stderr.strip() else f"bubblewrap ended with {direct}")
    return verdict.unwrapped(int(code))
