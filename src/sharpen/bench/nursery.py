"""The process that jobs are forked from: everything heavy is imported once, and each job begins as a copy of it.

Run as `python -m sharpen.bench.nursery FD`, with a socket to the parent as FD. It is single-threaded and does nothing else,
so that forking is safe. Every job gets a *keeper*, a process of its own that sees to it that nothing outlives the job: the
keeper puts the job into a PID namespace where that is allowed, else it adopts whatever the job leaves behind; and when the
job ends, or is to be killed, all of it goes, children that detached themselves included. If the parent dies, everything
dies.

Messages are JSON, one per packet. In: `{"start": key, "run": ..., "job": ..., "memory": ...}` with the log's descriptor,
`{"stop": key}` (gently), `{"kill": key}`. Out: `{"ready": true}`, and `{"ended": key, "code": ..., "signal": ...,
"cpu": ..., "memory": ...}`.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import resource
import select
import signal
import socket
import sys
from pathlib import Path
from typing import Any

PACKET = 65_536
_CLONE_NEWUSER, _CLONE_NEWPID = 0x10000000, 0x20000000
_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36
_MEGABYTE = 1 << 20
_SIGNALLED = 160
"""Process 1 of a namespace ends with this and the number of the signal that ended the job."""

_libc = ctypes.CDLL(None, use_errno=True)


def main(handle: int) -> None:
    """Serve until the parent hangs up."""
    _libc.prctl(_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's Ctrl-C is the parent's business
    _warm_up()
    gc.freeze()  # so that collecting garbage in a job does not copy every page it shares with this process
    parent = socket.socket(fileno=handle)
    waker, woken = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(waker, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    keepers: dict[int, tuple[str, int]] = {}
    parent.send(json.dumps({"ready": True}).encode())
    while True:
        ready, _, _ = select.select([parent.fileno(), waker], [], [])
        if waker in ready:
            os.read(waker, PACKET)
            _report_ended(parent, keepers)
        if parent.fileno() in ready:
            packet, handles, _, _ = socket.recv_fds(parent, PACKET, 1)
            if not packet:
                break
            _obey(json.loads(packet), handles, parent, keepers)
    for keeper in keepers:
        os.kill(keeper, signal.SIGTERM)
    for keeper in keepers:
        os.waitpid(keeper, 0)


def _warm_up() -> None:
    """Import what every job needs."""
    import sharpen.bench.job_process
    import sharpen.engine.comparing
    import sharpen.gates.sequential
    import sharpen.models.schema
    import sharpen.models.scripted
    import sharpen.tasks.datatask
    import sharpen.trainers.reflact.loop  # noqa: F401


def _obey(
    message: dict[str, Any], handles: list[int], parent: socket.socket, keepers: dict[int, tuple[str, int]]
) -> None:
    for word, number in (("kill", signal.SIGTERM), ("stop", signal.SIGUSR1)):
        if word in message:
            for keeper in [keeper for keeper, (key, _) in keepers.items() if key == message[word]]:
                os.kill(keeper, number)
            return
    read, write = os.pipe()
    keeper = os.fork()
    if keeper == 0:
        try:
            parent.close()
            os.close(read)
            _keep(message, handles[0], write)
        finally:
            os._exit(70)
    os.close(write)
    os.close(handles[0])
    keepers[keeper] = (message["start"], read)


def _report_ended(parent: socket.socket, keepers: dict[int, tuple[str, int]]) -> None:
    """Tell of every keeper that has ended; what it wrote before says how the job did."""
    while keepers:
        try:
            keeper, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if keeper == 0:
            return
        if keeper not in keepers:
            continue
        key, report = keepers.pop(keeper)
        told = os.read(report, PACKET)
        os.close(report)
        ended = (
            json.loads(told)
            if told
            else {"code": None, "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None}
        )
        parent.send(json.dumps({"ended": key, **ended}).encode())


def _keep(message: dict[str, Any], log: int, report: int) -> None:
    """Be the keeper of one job: start it, wait for it, and let nothing of it live on."""
    os.setsid()
    _libc.prctl(_SET_PDEATHSIG, signal.SIGKILL)
    _libc.prctl(_SET_CHILD_SUBREAPER, 1)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for stream in (1, 2):
        os.dup2(log, stream)
    isolated = _new_pid_namespace()
    job = os.fork()
    if job == 0:
        os.close(report)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        _libc.prctl(_SET_PDEATHSIG, signal.SIGKILL)
        os._exit(_as_init(message) if isolated else _carry_out(message))
    killed = False

    def kill(*_: object) -> None:
        nonlocal killed
        killed = True
        os.kill(job, signal.SIGKILL)

    signal.signal(signal.SIGTERM, kill)
    signal.signal(signal.SIGUSR1, lambda *_: os.kill(job, signal.SIGUSR1 if isolated else signal.SIGTERM))
    status, used = _wait_for(job)
    _kill_descendants()
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
    fatal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    if isolated and code is not None and code > _SIGNALLED:
        fatal = code - _SIGNALLED
        code = None
    told = {
        "code": code,
        "signal": fatal,
        "killed": killed,
        "cpu": used.ru_utime + used.ru_stime,
        "memory": used.ru_maxrss,
    }
    os.write(report, json.dumps(told).encode())
    os._exit(0)


def _as_init(message: dict[str, Any]) -> int:
    """Be process 1 of a PID namespace: start the job, take in orphans, and end when the job does; then all others go."""
    job = os.fork()
    if job == 0:
        os._exit(_carry_out(message))
    signal.signal(signal.SIGUSR1, lambda *_: os.kill(job, signal.SIGTERM))
    while True:
        try:
            child, status = os.wait()
        except InterruptedError:
            continue
        if child == job:
            return os.WEXITSTATUS(status) if os.WIFEXITED(status) else _SIGNALLED + os.WTERMSIG(status)


def _carry_out(message: dict[str, Any]) -> int:
    os.setsid()
    if message.get("memory"):
        limit = message["memory"] * _MEGABYTE
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    from sharpen.bench.job_process import carry_out

    code = carry_out(Path(message["run"]), message["job"], more_budget=bool(message.get("more_budget")))
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def _wait_for(process: int) -> tuple[int, resource.struct_rusage]:
    """Wait for one child, taking in orphans meanwhile."""
    while True:
        try:
            child, status, used = os.wait4(-1, 0)
        except InterruptedError:
            continue
        if child == process:
            return status, used


def _kill_descendants() -> None:
    """Kill every process this one has become the parent of, until there is none."""
    while True:
        for child in _children(os.getpid()):
            for process in (*_below(child), child):
                _kill(process)
        try:
            os.wait()
        except ChildProcessError:
            return


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


if __name__ == "__main__":
    main(int(sys.argv[1]))
