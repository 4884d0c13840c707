"""Ways out of the sandbox through the kernel: every one is tried from inside, and refused.

Sockets are created and never connected. A call is made by its number, with arguments that would do no harm if it were let
through. Which calls are let through is a list in `sharpen.sandbox.system_calls`; it is compared with libseccomp's own table.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import json
import platform
import struct
import subprocess
import sys

import pytest

from sharpen.core.errors import SandboxFailed
from sharpen.sandbox import Ran, run_program
from sharpen.sandbox.seccomp import filter_bytes
from sharpen.sandbox.system_calls import ALLOWED, CHECKED, CLONE, REFUSED

COLUMN = {"x86_64": 0, "aarch64": 1}.get(platform.machine(), 0)
FAMILIES = {
    "UNIX": 1, "INET": 2, "AX25": 3, "INET6": 10, "NETLINK": 16, "PACKET": 17, "RDS": 21, "CAN": 29, "TIPC": 30,
    "BLUETOOTH": 31, "ALG": 38, "VSOCK": 40, "KCM": 41, "QIPCRTR": 42, "SMC": 43, "XDP": 44,
}  # fmt: skip
CALLS = {
    # name: (number on x86_64, on aarch64, arguments)
    "unshare a user namespace": (272, 97, (0x10000000,)),
    "unshare a time namespace": (272, 97, (0x80,)),
    "clone into a user namespace": (56, 220, (0x10000011, 0, 0, 0, 0)),
    "clone into a mount namespace": (56, 220, (0x00020011, 0, 0, 0, 0)),
    "clone3": (435, 435, (0, 0)),
    "setns": (308, 268, (0, 0)),
    "mount": (165, 40, (0, 0, 0, 0, 0)),
    "umount2": (166, 39, (0, 0)),
    "pivot_root": (155, 41, (0, 0)),
    "chroot": (161, 51, (0,)),
    "open_tree": (428, 428, (-100, 0, 0)),
    "move_mount": (429, 429, (0, 0, 0, 0, 0)),
    "fsopen": (430, 430, (0, 0)),
    "mount_setattr": (442, 442, (0, 0, 0, 0, 0)),
    "open_tree_attr": (467, 467, (0, 0, 0, 0, 0)),
    "ptrace": (101, 117, (0, 0, 0, 0)),
    "process_vm_readv": (310, 270, (1, 0, 0, 0, 0, 0)),
    "process_vm_writev": (311, 271, (1, 0, 0, 0, 0, 0)),
    "pidfd_open": (434, 434, (1, 0)),
    "pidfd_getfd": (438, 438, (0, 0, 0)),
    "pidfd_send_signal": (424, 424, (0, 0, 0, 0)),
    "process_madvise": (440, 440, (0, 0, 0, 0, 0)),
    "kcmp": (312, 272, (1, 1, 0, 0, 0)),
    "memfd_create": (319, 279, (0, 0)),
    "memfd_secret": (447, 447, (0,)),
    "execveat": (322, 281, (0, 0, 0, 0, 0)),
    "name_to_handle_at": (303, 264, (0, 0, 0, 0, 0)),
    "open_by_handle_at": (304, 265, (0, 0, 0)),
    "io_uring_setup": (425, 425, (1, 0)),
    "io_uring_enter": (426, 426, (0, 0, 0, 0, 0)),
    "bpf": (321, 280, (0, 0, 0)),
    "perf_event_open": (298, 241, (0, 0, 0, 0, 0)),
    "userfaultfd": (323, 282, (0,)),
    "keyctl": (250, 219, (0, -3, 0)),
    "add_key": (248, 217, (0, 0, 0, 0, 0)),
    "request_key": (249, 218, (0, 0, 0, 0)),
    "personality": (135, 92, (0x0040000,)),
    "seccomp": (317, 277, (1, 0, 0)),
    "landlock_create_ruleset": (444, 444, (0, 0, 1)),
    "shmget": (29, 194, (0, 4096, 0o1600)),
    "msgget": (68, 186, (0, 0o1600)),
    "semget": (64, 190, (0, 1, 0o1600)),
    "mq_open": (240, 180, (0, 0, 0, 0)),
    "inotify_init1": (294, 26, (0,)),
    "fanotify_init": (300, 262, (0, 0)),
    "flock": (73, 32, (0, 1)),
    "socket": (41, 198, (2, 1, 0)),
    "socketpair of another family": (53, 199, (30, 1, 0, 0)),
    "bind": (49, 200, (0, 0, 0)),
    "connect": (42, 203, (-1, 0, 0)),
    "init_module": (175, 105, (0, 0, 0)),
    "kexec_load": (246, 104, (0, 0, 0, 0)),
    "syslog": (103, 116, (10, 0, 0)),
    "quotactl": (179, 60, (0, 0, 0, 0)),
    "acct": (163, 89, (0,)),
    "swapoff": (168, 225, (0,)),
    "sethostname": (170, 161, (0, 0)),
    "clock_settime": (227, 112, (0, 0)),
    "setuid": (105, 146, (0,)),
    "setgroups": (116, 159, (0, 0)),
    "capset": (126, 91, (0, 0)),
    "mknodat": (259, 33, (-100, 0, 0o60600, 0)),
    "sched_setscheduler": (144, 119, (0, 1, 0)),
    "setpriority": (141, 140, (0, 0, -20)),
    "ioprio_set": (251, 30, (1, 0, 0)),
    "prlimit64 of process 1": (302, 261, (1, 0, 0, 0)),
    "vmsplice": (278, 75, (0, 0, 0, 0)),
    "mincore": (27, 232, (0, 0, 0)),
    "a call of the future": (600, 600, (0,)),
}
SMALLER = {
    # Calls that are let through for some of what they can do.
    "TIOCSTI": (16, 29, (0, 0x5412, 0)),
    "TIOCLINUX": (16, 29, (0, 0x541C, 0)),
    "TUNSETIFF": (16, 29, (0, 0x400454CA, 0)),
    "a lock on a file": (72, 25, (0, 6, 0)),
    "a lease": (72, 25, (0, 1024, 0)),
    "a notice": (72, 25, (0, 1026, 0)),
    "an owner for signals": (72, 25, (0, 8, 1)),
    "PR_SET_SECCOMP": (157, 167, (22, 0, 0, 0, 0)),
    "PR_SET_PTRACER": (157, 167, (0x59616D61, -1, 0, 0, 0)),
    "PR_SET_DUMPABLE": (157, 167, (4, 1, 0, 0, 0)),
    "PR_SET_MM": (157, 167, (35, 1, 0, 0, 0)),
    "PR_SET_CHILD_SUBREAPER": (157, 167, (36, 1, 0, 0, 0)),
}
PROBE = """
import ctypes, json, sys
libc = ctypes.CDLL(None, use_errno=True)
found = {}
for name, number, arguments in json.loads(sys.argv[1]):
    ctypes.set_errno(0)
    found[name] = [libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments)), ctypes.get_errno()]
print(json.dumps(found))
"""
NOT_LET_THROUGH = {errno.EPERM, errno.ENOSYS, errno.EAFNOSUPPORT}


def inside(code: str, *arguments: str) -> Ran:
    return asyncio.run(run_program({"main.py": code}, ("python", "main.py", *arguments)))


def tried(calls: dict[str, tuple[int, int, tuple[int, ...]]]) -> dict[str, tuple[int, int]]:
    order = [(name, numbers[COLUMN], arguments) for name, (*numbers, arguments) in calls.items()]
    ran = inside(PROBE, json.dumps(order))
    assert ran.code == 0, ran
    found: dict[str, tuple[int, int]] = json.loads(ran.stdout)
    return found


@pytest.fixture(scope="module")
def results() -> dict[str, tuple[int, int]]:
    return tried(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_is_not_on_the_list_is_refused(name: str, results: dict[str, tuple[int, int]]) -> None:
    result, error = results[name]
    assert result == -1 and error in NOT_LET_THROUGH, (result, errno.errorcode.get(error))


def test_calls_are_let_through_for_what_programs_need_and_no_more() -> None:
    for name, (result, error) in tried(SMALLER).items():
        assert result == -1 and error in {errno.EPERM, errno.EINVAL, errno.ENOTTY}, name


SOCKETS = """
import socket, sys
for family in map(int, sys.argv[1:]):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
        try:
            socket.socket(family, kind).close()
            print(family, kind)
        except OSError:
            pass
"""


@pytest.mark.parametrize("name", FAMILIES)
def test_no_socket_of_any_family_can_be_created(name: str) -> None:
    assert inside(SOCKETS, str(FAMILIES[name])).stdout == ""


def test_the_probe_of_sockets_creates_some_outside() -> None:
    done = subprocess.run([sys.executable, "-c", SOCKETS, "1", "2"], capture_output=True, text=True, check=True)
    assert {line.split()[0] for line in done.stdout.splitlines()} == {"1", "2"}


MACHINE_CODE = """
import ctypes, mmap
code = bytes.fromhex(__import__("sys").argv[1])
room = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
room.write(code)
call = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(room)))
print("before", flush=True)
print("answered", call())
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="machine code of x86_64")
@pytest.mark.parametrize(
    "code",
    [
        pytest.param("b814000000cd80c3", id="getpid by the numbers of 32 bit"),
        pytest.param("b8270000400f05c3", id="getpid by the numbers of x32"),
    ],
)
def test_calls_by_the_numbers_of_another_machine_end_the_program(code: str) -> None:
    ran = inside(MACHINE_CODE, code)
    assert "before" in ran.stdout and "answered" not in ran.stdout
    assert ran.code is None and ran.reason == "killed"
    right = inside(MACHINE_CODE, "b8270000000f05c3")
    assert "answered" in right.stdout


FORGED_CODES = {
    "takes bubblewrap's descriptors": """
import ctypes, os
libc = ctypes.CDLL(None)
process = libc.syscall(434, 1, 0)
for number in range(64):
    taken = libc.syscall(438, process, number, 0)
    if taken >= 0:
        os.write(taken, (1).to_bytes(8, "little"))
        os.write(taken, b'{"exit-code": 0}\\n')
os._exit(7)
""",
    "kills process 1": "import os\nfor s in (9, 15, 19, 2, 6):\n    os.kill(1, s)\nos._exit(7)",
    "writes a report to every descriptor": (
        "import os\nfor n in range(3, 64):\n    try:\n        os.write(n, b'{\"exit-code\": 0}\\n')\n    except OSError:\n"
        "        pass\nos._exit(7)"
    ),
    "has a child end well": "import os\nif os.fork() == 0:\n    os._exit(0)\nos.wait()\nos._exit(7)",
    "takes its parent's time": """
import os, resource
try:
    resource.prlimit(1, resource.RLIMIT_CPU, (0, 0))
except OSError:
    pass
os._exit(7)
""",
}


@pytest.mark.parametrize("name", FORGED_CODES)
def test_an_exit_code_can_not_be_forged(name: str) -> None:
    ran = inside(FORGED_CODES[name])
    assert (ran.code, ran.reason, ran.stdout) == (7, "", "")


NEEDED = """
import asyncio, concurrent.futures, decimal, os, shutil, signal, sqlite3, subprocess, tempfile, threading, time, zlib
with concurrent.futures.ThreadPoolExecutor(3) as pool:
    assert list(pool.map(abs, [-1, 2])) == [1, 2]
assert asyncio.run(asyncio.sleep(0, 5)) == 5
assert subprocess.run(["/bin/sh", "-c", "echo $((1 + 1)); exit 3"], capture_output=True).stdout == b"2\\n"
if os.fork() == 0:
    os._exit(4)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 4
with tempfile.TemporaryDirectory() as folder:
    with open(f"{folder}/a", "w") as file:
        file.write("text")
    shutil.copy2(f"{folder}/a", f"{folder}/b")
    os.rename(f"{folder}/b", f"{folder}/c")
    assert sorted(os.listdir(folder)) == ["a", "c"]
assert sqlite3.connect(":memory:").execute("select 1 + 1").fetchone() == (2,)
signal.setitimer(signal.ITIMER_REAL, 0)
time.sleep(0.001)
print("all of it", len(os.urandom(4)), threading.active_count())
"""


def test_what_programs_ordinarily_do_is_let_through() -> None:
    ran = inside(NEEDED)
    assert (ran.stdout, ran.code) == ("all of it 4 1\n", 0), ran.stderr


def test_numpy_computes_with_threads() -> None:
    code = (
        "import numpy, threading\na = numpy.random.default_rng(0).random((200, 200))\nout = []\n"
        "t = [threading.Thread(target=lambda: out.append(numpy.linalg.svd(a)[1].sum())) for _ in range(2)]\n"
        "[x.start() for x in t]; [x.join() for x in t]\nprint(len(set(out)))"
    )
    ran = asyncio.run(run_program({}, ("python", "-c", code), packages=("numpy",)))
    assert (ran.stdout, ran.code) == ("1\n", 0), ran.stderr


def test_the_numbers_are_those_that_libseccomp_has() -> None:
    try:
        library = ctypes.CDLL("libseccomp.so.2")
    except OSError:
        pytest.skip("libseccomp is not installed here")
    tables = {name: numbers for name, (numbers, _) in REFUSED.items()} | {
        name: c.numbers for name, c in CHECKED.items()
    }
    for column, machine in enumerate((0xC000003E, 0xC00000B7)):
        for name, numbers in {**ALLOWED, **tables, "clone": CLONE}.items():
            known = library.seccomp_syscall_resolve_name_arch(ctypes.c_uint32(machine), name.encode())
            if numbers[column] is not None:
                assert known == numbers[column], (name, hex(machine))
            else:
                assert known < 0, (name, hex(machine))


def decision(machine: str, audit: int, number: int, arguments: tuple[int, ...]) -> int:
    """What a filter decides, run as the kernel would run it."""
    data = struct.pack("<IIQ6Q", number, audit, 0, *arguments, *[0] * (6 - len(arguments)))
    lines = list(struct.iter_unpack("<HBBI", filter_bytes(machine)))
    at = value = 0
    while True:
        code, yes, no, operand = lines[at]
        at += 1
        if code == 0x20:
            (value,) = struct.unpack_from("<I", data, operand)
        elif code == 0x06:
            return int(operand)
        else:
            holds = {0x15: value == operand, 0x25: value > operand, 0x35: value >= operand, 0x45: bool(value & operand)}
            at += yes if holds[code] else no


@pytest.mark.parametrize(("machine", "audit", "column"), [("x86_64", 0xC000003E, 0), ("aarch64", 0xC00000B7, 1)])
def test_the_filter_lets_through_what_is_listed_and_nothing_else(machine: str, audit: int, column: int) -> None:
    allow, kill = 0x7FFF0000, 0x80000000
    listed = {numbers[column] for numbers in ALLOWED.values()} | {CLONE[column]}
    checked = {check.numbers[column]: check for check in CHECKED.values()}
    for number in range(1024):
        if number in checked:
            check = checked[number]
            for value in (*range(64), *check.values, 0xFFFFFFFF):
                arguments = tuple(value if place == check.place else 0 for place in range(6))
                assert (decision(machine, audit, number, arguments) == allow) == (value in check.values), number
        else:
            assert (decision(machine, audit, number, ()) == allow) == (number in listed), number
        assert decision(machine, audit, number | 0x40000000, ()) == kill
        assert decision(machine, audit ^ 1, number, ()) == kill
    for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert decision(machine, audit, CLONE[column] or 0, (flag | 17,)) != allow


def test_every_machine_has_a_filter_of_its_own_and_an_unknown_one_has_no_sandbox() -> None:
    assert filter_bytes("x86_64") != filter_bytes("aarch64")
    assert all(len(filter_bytes(machine)) // 8 < 4096 for machine in ("x86_64", "aarch64"))
    with pytest.raises(SandboxFailed, match="no system calls of riscv64"):
        filter_bytes("riscv64")
