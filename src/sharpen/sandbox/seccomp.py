"""The system calls a sandboxed program is refused, as a filter the kernel runs: bytes for bubblewrap's --seccomp.

Namespaces and limits leave ways around them, and these are closed here: a namespace of one's own, in which a file system
without a size could be mounted; memory that belongs to no process (System V, memfd) and so escapes every limit on memory;
and doors into the kernel that no program of this kind needs, through which most escapes have come. A refused call fails
with "operation not permitted"; `clone3` with "no such call", so that the C library falls back on `clone`, whose flags a
filter can read.
"""

from __future__ import annotations

import errno
import platform
import struct
from functools import cache

from sharpen.core.errors import SandboxFailed

_NEW_NAMESPACES = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET

# name: number on x86_64, number on aarch64
_REFUSED = {
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "mount_setattr": (442, 442),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "msgget": (68, 186),
    "semget": (64, 190),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
}
_CLONE, _CLONE3 = (56, 220), (435, 435)
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_X32 = 0x40000000

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _MACHINE, _FIRST_ARGUMENT = 0, 4, 16
_ALLOW, _KILL, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000


@cache
def filter_bytes(machine: str | None = None) -> bytes:
    """The filter for this kind of machine. One for which there are no numbers has no sandbox."""
    machine = platform.machine() if machine is None else machine
    if machine not in _MACHINES:
        raise SandboxFailed(f"the sandbox knows no system calls of {machine}, only of {', '.join(_MACHINES)}")
    column, audit = _MACHINES[machine]
    lines = [
        (_LOAD, 0, 0, _MACHINE),
        (_EQUAL, 1, 0, audit),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _KILL),
        (_EQUAL, 0, 1, _CLONE3[column]),
        (_RETURN, 0, 0, _FAIL | errno.ENOSYS),
    ]
    for numbers in _REFUSED.values():
        lines += [(_EQUAL, 0, 1, numbers[column]), (_RETURN, 0, 0, _FAIL | errno.EPERM)]
    lines += [
        (_EQUAL, 0, 3, _CLONE[column]),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_ANY_BIT, 0, 1, _NEW_NAMESPACES),
        (_RETURN, 0, 0, _FAIL | errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("<HBBI", *line) for line in lines)
