"""Starting one program: its files, its pipes, a user id of its own where we are root, and the jump into another program.

Everything a child does between being forked and becoming bubblewrap is here. What goes wrong in between is written to a
pipe that a successful jump closes, so that a program that could not be started is never taken for one that failed.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import signal
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sharpen.core.errors import SandboxFailed
from sharpen.sandbox import command, seccomp, usage
from sharpen.sandbox.contract import Mode, Order, encoded
from sharpen.sandbox.places import Places, proc_is_ours

_UNUSED_IDS = (1_000_000_000, 61_184)
"""Where ids begin that belong to nobody; the second for containers that have only a few."""
_FEW = 4_000
_NO_MORE_PROCESSES = 1 << 16
_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36
_ADD_SEALS, _SEALS = 1033, 0xF  # F_ADD_SEALS; against sealing, shrinking, growing, writing

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass
class Started:
    """A program under way. `status` is how it ended, once it was waited for."""

    process: int
    stdout: int
    stderr: int
    report: int
    """What bubblewrap says about itself."""
    own_processes: int
    """How many of the processes are not the program's: bubblewrap outside, and process 1 of the namespace."""
    folder: Path | None = None
    status: int | None = None

    def clean_up(self) -> None:
        for descriptor in (self.stdout, self.stderr, self.report):
            os.close(descriptor)
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


Channel = tuple[int, int] | None
"""The ends of pipes that become a program's standard input and output, where it has a conversation with its caller."""


def start(order: Order, places: Places, channel: Channel) -> Started:
    """Start what is ordered."""
    packages = _packages(order, places)
    user = spare_id() if os.geteuid() == 0 else None
    how = _start_unsafe if order.mode is Mode.UNSAFE else _start_sandboxed
    return how(order, places, packages, user, channel)


def warm_up() -> None:
    """Find out before the first fork what is the same for every run; what is amiss is told by the run that meets it."""
    with suppress(SandboxFailed):
        _bwrap()
        seccomp.filter_bytes()


@cache
def _bwrap() -> str:
    found = shutil.which("bwrap")
    if found is None:
        raise SandboxFailed("bubblewrap is not installed here (apt install bubblewrap)")
    return found


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when `parent` dies; at once if it is dead already."""
    _libc.prctl(_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of every descendant that loses its own, instead of process 1."""
    _libc.prctl(_SET_CHILD_SUBREAPER, 1)


def spare_id() -> int:
    """A user id that nobody else has: ours to count processes by. The number of this process makes it unique."""
    process = os.getpid()
    for line in Path("/proc/self/uid_map").read_text().splitlines():
        first, _, count = map(int, line.split())
        if first + count > _UNUSED_IDS[0] + process:
            return _UNUSED_IDS[0] + process
        if first <= _UNUSED_IDS[1] and first + count > _UNUSED_IDS[1] + _FEW:
            return _UNUSED_IDS[1] + process % _FEW
    raise SandboxFailed("started as root where there is no other user id to run a program under")


def _packages(order: Order, places: Places) -> list[Path]:
    found = []
    for name in order.packages:
        paths = places.package(name)
        if not paths:
            raise SandboxFailed(f"package {name} is to be importable in the sandbox, and is not installed")
        found += paths
    return found


def _start_sandboxed(
    order: Order, places: Places, packages: Sequence[Path], user: int | None, channel: Channel
) -> Started:
    if places.unfit:
        raise SandboxFailed(places.unfit)
    bwrap, rules = _bwrap(), _held(seccomp.filter_bytes())
    report, status = os.pipe()
    files = {name: _held(encoded(text)) for name, text in order.files.items()}
    argv = command.bubblewrap(
        bwrap, order.argv, order.limits, places, packages, files=files, status=status, filter=rules
    )
    given = [status, rules, *files.values()]
    process, stdout, stderr = _launch(argv, {}, order.stdin, given, user, "/", channel)
    for descriptor in given:
        os.close(descriptor)
    os.set_blocking(report, False)
    return Started(process, stdout, stderr, report, own_processes=2)


def _start_unsafe(
    order: Order, places: Places, packages: Sequence[Path], user: int | None, channel: Channel
) -> Started:
    folder = Path(tempfile.mkdtemp(prefix="sharpen-unsafe-"))
    library = folder / ".packages"
    library.mkdir()
    for path in packages:
        (library / path.name).symlink_to(path)
    for name, text in order.files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(encoded(text))
    if user is not None:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, user, user, follow_symlinks=False)
    variables = command.environment(
        str(folder),
        library_path="" if places.in_usr else str(places.prefix / "lib"),
        packages=str(library) if packages else "",
    )
    argv = command.limited(
        command.program(order.argv, str(places.prefix / places.executable)),
        order.limits,
        process_limit=order.limits.processes + (_threads_already() if user is None else 0),
    )
    report, unused = os.pipe()
    os.close(unused)
    try:
        process, stdout, stderr = _launch(argv, variables, order.stdin, [], user, str(folder), channel)
    except SandboxFailed:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return Started(process, stdout, stderr, report, own_processes=0, folder=folder)


def _threads_already() -> int:
    """What the kernel counts against a user before the program has begun."""
    return usage.threads_of(os.getuid()) if proc_is_ours() else _NO_MORE_PROCESSES


def _held(data: bytes) -> int:
    """A descriptor that gives `data` to be read from its beginning, and can't be written to any more."""
    held = os.memfd_create("sharpen", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with open(held, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(held, 0, os.SEEK_SET)
    fcntl.fcntl(held, _ADD_SEALS, _SEALS)
    return held


def _keep_only(kept: Sequence[int]) -> None:
    """Close every descriptor but the standard ones and these: one left open would be a door out of the sandbox."""
    begin = 3
    for descriptor in sorted(kept):
        os.closerange(begin, descriptor)
        begin = descriptor + 1
    os.closerange(begin, os.sysconf("SC_OPEN_MAX"))


def _launch(
    argv: Sequence[str],
    variables: dict[str, str],
    stdin: bytes,
    given: Sequence[int],
    user: int | None,
    folder: str,
    channel: Channel,
) -> tuple[int, int, int]:
    """Fork, and become `argv` in a session of its own: the process, and the ends to read its output from."""
    (stdout, out), (stderr, err), (trouble, tell) = os.pipe(), os.pipe(), os.pipe()
    source = _held(stdin) if channel is None else os.dup(channel[0])
    if channel is not None:
        os.dup2(channel[1], out, inheritable=False)
    keeper = os.getpid()
    process = os.fork()
    if process == 0:
        try:
            os.setsid()
            for number, descriptor in enumerate((source, out, err)):
                os.dup2(descriptor, number)
            _keep_only((tell, *given))
            for descriptor in given:
                os.set_inheritable(descriptor, True)
            os.chdir(folder)
            if user is not None:
                os.setgroups([])
                os.setresgid(user, user, user)
                os.setresuid(user, user, user)
            die_with_parent(keeper)  # only now, since a change of id makes the kernel forget it
            os.execve(argv[0], [*argv], variables)
        except BaseException as error:  # whatever it is must not return into the keeper's code
            os.write(tell, str(error).encode(errors="replace"))
        finally:
            os._exit(1)
    for descriptor in (source, out, err, tell):
        os.close(descriptor)
    with open(trouble, "rb") as said:
        message = said.read().decode(errors="replace")
    if message:
        os.close(stdout)
        os.close(stderr)
        raise SandboxFailed(message)
    for descriptor in (stdout, stderr):
        os.set_blocking(descriptor, False)
    return process, stdout, stderr
