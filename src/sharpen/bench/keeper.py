"""The process that jobs are children of, one after another: it sees to it that nothing of a job outlives the job.

A keeper is a copy of the nursery and begins each job as a copy of itself, so a job costs one fork. Where that is allowed it
is process 1 of a PID namespace, in which every process that a job leaves behind can be found and killed, those that
detached themselves included; elsewhere it adopts them. It takes its next job when nothing is left of the last one. When
the nursery hangs up it kills what runs and ends; when the nursery dies, the kernel does the same.

Messages are JSON, one per packet. In: `{"start": key, "run": ..., "job": ..., "memory": ..., "limits": ...}` with the log's
descriptor, `{"stop": key}` (gently), `{"kill": key}`. Out: `{"ended": key, "code": ..., "signal": ..., "cpu": ...,
"memory": ..., "why": ...}`, where `why` is what the job said of its failure.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sharpen.bench.job_mounts import confine_writes

PACKET = 65_536
LAST_WORD = 2_000
_CLONE_NEWUSER, _CLONE_NEWPID = 0x10000000, 0x20000000
_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36
_MEGABYTE = 1 << 20
_AT_LEAST = 144 * _MEGABYTE
"""The address space a job needs beside what its process has when it begins: for threads, the ledger, what it reads."""

_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent() -> None:
    _libc.prctl(_SET_PDEATHSIG, signal.SIGKILL)


def serve(orders: socket.socket) -> None:
    """Be a keeper until the nursery hangs up."""
    die_with_parent()
    os.setsid()
    isolated = _new_pid_namespace()
    if isolated:
        keeper = os.fork()  # the first child is process 1; this process only waits for it
        if keeper:
            orders.close()
            os.waitpid(keeper, 0)
            return
        die_with_parent()
    else:
        _libc.prctl(_SET_CHILD_SUBREAPER, 1)
    _Keeper(orders, isolated).serve()


@dataclass
class _Keeper:
    orders: socket.socket
    isolated: bool
    key: str = ""
    job: int = 0
    """Its process; 0 where none is running."""
    why: int = -1
    """The end of a pipe that the job's last word comes through."""

    def serve(self) -> None:
        waker, woken = os.pipe()
        for end in (waker, woken):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        while True:
            ready, _, _ = select.select([self.orders.fileno(), waker], [], [])
            if waker in ready:
                os.read(waker, PACKET)
                self._bury()
            if self.orders.fileno() in ready:
                packet, handles, _, _ = socket.recv_fds(self.orders, PACKET, 1)
                if not packet:
                    break
                self._obey(json.loads(packet), handles)
        if self.job:
            os.kill(self.job, signal.SIGKILL)
        self._clear()

    def _obey(self, message: dict[str, Any], handles: list[int]) -> None:
        for word, number in (("kill", signal.SIGKILL), ("stop", signal.SIGTERM)):
            if message.get(word) == self.key and self.job:
                os.kill(self.job, number)
        if "start" not in message:
            return
        self.key = message["start"]
        self.why, last_word = os.pipe()
        os.set_blocking(self.why, False)  # what the job leaves behind may hold the other end
        self.job = os.fork()
        if self.job == 0:
            code = 70
            try:
                self.orders.close()
                os.close(self.why)
                code = _carry_out({**message, "last_word": last_word}, handles[0])
            finally:
                os._exit(code)
        os.close(last_word)
        os.close(handles[0])

    def _bury(self) -> None:
        """Take in whoever has died; once that is the job, what it left goes too, and its end is told."""
        while True:
            try:
                dead, status, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if dead == 0:
                return
            if dead != self.job:
                continue
            self.job = 0
            self._clear()
            told = {
                "ended": self.key,
                "code": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
                "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
                "cpu": used.ru_utime + used.ru_stime,
                "memory": used.ru_maxrss,
                "why": self._last_word(),
            }
            self.orders.send(json.dumps(told).encode())

    def _last_word(self) -> str:
        try:
            return os.read(self.why, LAST_WORD).decode(errors="replace")
        except BlockingIOError:
            return ""
        finally:
            os.close(self.why)

    def _clear(self) -> None:
        """Kill every process that is left, until there is none."""
        while True:
            if self.isolated:
                _kill(-1)  # everybody in the namespace but process 1
            else:
                for child in _children(os.getpid()):
                    for process in (*_below(child), child):
                        _kill(process)
            try:
                os.wait()
            except ChildProcessError:
                return


def _carry_out(message: dict[str, Any], log: int) -> int:
    """Be the job's own process."""
    die_with_parent()
    os.setsid()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.close(log)
    from sharpen.bench.job_process import UNFIT, Together, carry_out

    def tell(why: str) -> None:
        with suppress(OSError):  # somebody's code may have closed it
            os.write(message["last_word"], why.encode(errors="replace")[:LAST_WORD])

    if message.get("memory"):
        limit, needed = message["memory"] * _MEGABYTE, _mapped() + _AT_LEAST
        if limit < needed:
            tell(
                f"memory: {message['memory']} is too little: with what every job has in it when it begins, its process "
                f"needs {-(-needed // _MEGABYTE)} megabytes of address space at least"
            )
            return UNFIT
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    confine_writes(Path(message["run"]), message["job"])
    together = Together(message["jobs_at_once"], Path(message["limits"])) if "limits" in message else None
    pay_again = message.get("pay_again", False)
    code = carry_out(Path(message["run"]), message["job"], together=together, tell=tell, pay_again=pay_again)
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def _mapped() -> int:
    """The address space this process has; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except OSError:
        return 0


def _below(process: int) -> list[int]:
    found = []
    for child in _children(process):
        found += [*_below(child), child]
    return found


def _children(process: int) -> list[int]:
    try:
        threads = Path(f"/proc/{process}/task").iterdir()
        return [int(child) for thread in threads for child in (thread / "children").read_text().split()]
    except OSError:
        return []


def _kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except OSError:
        return


def _new_pid_namespace() -> bool:
    """Let the next child be process 1 of a namespace of its own; False where that is not allowed."""
    if os.geteuid() == 0:
        return bool(_libc.unshare(_CLONE_NEWPID) == 0)
    user, group = os.geteuid(), os.getegid()
    if _libc.unshare(_CLONE_NEWUSER | _CLONE_NEWPID) != 0:
        return False
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    return True
