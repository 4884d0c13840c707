"""A job of a study can write into its own folder, and not into those of the study's other jobs.

On Linux each job's process has a mount namespace of its own, in which `jobs/` and what was laid out for all (`meta/`,
`tasks/`) are read-only, but for the job's own folder. The ledger, which all share, stays writable. Where the system allows
no such namespace (in many containers), jobs run without, and `sharpen run` says so.

Without root's rights, a job can't undo this: its process gives up the rights that its namespace gave it. A job that runs as
root could, if it meant to.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

_CLONE_NEWNS, _CLONE_NEWUSER = 0x20000, 0x10000000
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000
_SYS_MOUNT_SETATTR, _READ_ONLY = 442, 1
_AT_FDCWD = -100
_CAPABILITY_VERSION = 0x20080522
_SHARED = ("meta", "tasks")

_libc = ctypes.CDLL(None, use_errno=True)


class _Attributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns")]


def confine_writes(run: Path, job: str) -> bool:
    """Make everything of a run that is not this job's read-only for this process; False where that is not allowed."""
    try:
        _check(_libc.unshare(_CLONE_NEWNS))
        _check(_libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None))
        jobs = run / "jobs"
        _bind(jobs)
        _bind(jobs / job)
        _make_read_only(jobs)
        for shared in (run / name for name in _SHARED if (run / name).is_dir()):
            _bind(shared)
            _make_read_only(shared)
        os.chdir(Path.cwd())  # the way there may lead through what is mounted now
    except OSError:
        return False
    if os.geteuid() != 0:
        _drop_capabilities()
    return True


def are_mounts_allowed(folder: Path) -> bool:
    """Whether jobs can be confined to their folders here: tried in a process of its own."""
    child = os.fork()
    if child == 0:
        allowed = False
        try:
            _check(_libc.unshare(_CLONE_NEWNS if os.geteuid() == 0 else _CLONE_NEWNS | _CLONE_NEWUSER))
            _check(_libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None))
            _bind(folder)
            _make_read_only(folder)
            allowed = True
        finally:
            os._exit(0 if allowed else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _bind(folder: Path) -> None:
    path = os.fsencode(folder)
    _check(_libc.mount(path, path, None, _MS_BIND | _MS_REC, None))


def _make_read_only(folder: Path) -> None:
    attributes = _Attributes(set=_READ_ONLY)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    _check(_libc.syscall(_SYS_MOUNT_SETATTR, _AT_FDCWD, os.fsencode(folder), 0, ctypes.byref(attributes), size))


def _drop_capabilities() -> None:
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    nothing = (ctypes.c_uint32 * 6)()
    _libc.capset(header, nothing)


def _check(result: int) -> None:
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
