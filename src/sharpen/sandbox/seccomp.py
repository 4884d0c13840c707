"""The filter that the kernel runs before each system call of a sandboxed program: bytes for bubblewrap's --seccomp.

It is an allow list (`system_calls.py`): whatever is not on it fails with "operation not permitted", or with "no such call"
where the C library then falls back on a call that is. Calls made by the numbers of another machine (32 bit, x32) end the
program. The filter stands for every process a program starts, and can't be taken off.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Iterator
from functools import cache

from sharpen.core.errors import SandboxFailed
from sharpen.sandbox.system_calls import ALLOWED, CHECKED, CLONE, NEW_NAMESPACES, NEWEST, REFUSED, Check

_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_X32 = 0x40000000

_LOAD, _EQUAL, _ABOVE, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x25, 0x35, 0x45, 0x06
_NUMBER, _MACHINE, _ARGUMENTS = 0, 4, 16
_ALLOW, _KILL, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000
Line = tuple[int, int, int, int]


@cache
def filter_bytes(machine: str | None = None) -> bytes:
    """The filter for this kind of machine. One for which there are no numbers has no sandbox."""
    machine = platform.machine() if machine is None else machine
    if machine not in _MACHINES:
        raise SandboxFailed(f"the sandbox knows no system calls of {machine}, only of {', '.join(_MACHINES)}")
    return b"".join(struct.pack("<HBBI", *line) for line in _lines(*_MACHINES[machine]))


def _lines(column: int, audit: int) -> Iterator[Line]:
    yield _LOAD, 0, 0, _MACHINE
    yield _EQUAL, 1, 0, audit
    yield _RETURN, 0, 0, _KILL
    yield _LOAD, 0, 0, _NUMBER
    yield _AT_LEAST, 0, 1, _X32
    yield _RETURN, 0, 0, _KILL
    for numbers, refusal in REFUSED.values():
        yield _EQUAL, 0, 1, numbers[column] or 0
        yield _RETURN, 0, 0, _FAIL | getattr(errno, refusal)
    for numbers in ALLOWED.values():
        number = numbers[column]
        if number is not None:
            yield _EQUAL, 0, 1, number
            yield _RETURN, 0, 0, _ALLOW
    for check in CHECKED.values():
        yield from _check(check, column)
    yield _EQUAL, 0, 4, CLONE[column] or 0
    yield _LOAD, 0, 0, _ARGUMENTS
    yield _ANY_BIT, 0, 1, NEW_NAMESPACES
    yield _RETURN, 0, 0, _FAIL | errno.EPERM
    yield _RETURN, 0, 0, _ALLOW
    yield _ABOVE, 0, 1, NEWEST
    yield _RETURN, 0, 0, _FAIL | errno.ENOSYS
    yield _RETURN, 0, 0, _FAIL | errno.EPERM


def _check(check: Check, column: int) -> Iterator[Line]:
    """Compare the lower half of an argument, which is all that the kernel takes of those listed."""
    number = check.numbers[column]
    if number is None:
        return
    count = len(check.values)
    yield _EQUAL, 0, count + 3, number
    yield _LOAD, 0, 0, _ARGUMENTS + 8 * check.place
    for place, value in enumerate(check.values):
        yield _EQUAL, count - place, 0, value
    yield _RETURN, 0, 0, _FAIL | getattr(errno, check.refusal)
    yield _RETURN, 0, 0, _ALLOW
