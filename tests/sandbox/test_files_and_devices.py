"""Ways out of the sandbox through files, devices, programs of the machine and other sandboxes, each tried from inside."""

from __future__ import annotations

import asyncio

import pytest

from sharpen.sandbox import Limits, Ran, run_program


def inside(code: str, *arguments: str) -> Ran:
    return asyncio.run(run_program({"main.py": code}, ("python", "main.py", *arguments), limits=Limits(processes=32)))


GET_OUT = {
    "a path of the machine": """
for path in "/proc /sys /run /var /boot /root /home /mnt /srv /opt /etc/passwd /etc/shadow".split():
    if os.path.exists(path):
        print(path)
""",
    "a device": "print(*set(os.listdir('/dev')) - {'null', 'zero', 'random', 'urandom'}, end='')",
    "the folder above the root": """
handle = os.open("/", os.O_RDONLY)
for _ in range(50):
    above = os.open("..", os.O_RDONLY, dir_fd=handle)
    os.close(handle)
    handle = above
if sorted(os.listdir(handle)) != sorted(os.listdir("/")):
    print(os.listdir(handle))
""",
    "a file of the system, changed": """
for doing in (
    lambda: os.chmod("/usr/bin/env", 0o777), lambda: os.utime("/usr/bin/env"), lambda: os.truncate("/usr/bin/env", 0),
    lambda: os.rename("/usr/bin/env", "/usr/bin/env2"), lambda: os.unlink("/usr/bin/env"), lambda: os.mkdir("/usr/new"),
    lambda: os.symlink("/work", "/usr/new"), lambda: os.setxattr("/usr/bin/env", "user.x", b"y"),
    lambda: os.open("/usr", os.O_TMPFILE | os.O_RDWR), lambda: os.open("/usr/bin/env", os.O_RDWR),
    lambda: os.mkdir("/new"), lambda: os.rename("/work", "/new"), lambda: os.open("/dev/new", os.O_CREAT),
):
    attempt(doing)
""",
    "a hard link to a file of the system": "attempt(lambda: os.link('/usr/bin/env', '/work/env'))",
    "a device of its own": """
import stat
for kind in (stat.S_IFBLK, stat.S_IFCHR):
    attempt(lambda: os.mknod("/work/device", kind | 0o600, os.makedev(1, 1)))
""",
    "memory shared with a file of the system": """
import mmap
handle = os.open("/usr/bin/env", os.O_RDONLY)
attempt(lambda: mmap.mmap(handle, 0, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE))
""",
    "a lock that others see": """
import fcntl
handle = os.open("/usr/bin/env", os.O_RDONLY)
for doing in (
    lambda: fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB), lambda: fcntl.lockf(handle, fcntl.LOCK_SH | fcntl.LOCK_NB),
    lambda: fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_RDLCK), lambda: fcntl.fcntl(handle, fcntl.F_NOTIFY, 1),
):
    attempt(doing)
""",
    "a program that runs as root": """
import glob, stat, subprocess
for path in glob.glob("/usr/bin/*") + glob.glob("/usr/sbin/*"):
    if os.lstat(path).st_mode & (stat.S_ISUID | stat.S_ISGID):
        for words in ([path, "-c", "id"], [path, "root", "-c", "id"]):
            try:
                done = subprocess.run(words, capture_output=True, text=True, timeout=5, stdin=subprocess.DEVNULL)
                if "uid=0" in done.stdout:
                    print(path)
            except (OSError, subprocess.TimeoutExpired):
                pass
""",
    "another process": """
for number in range(2, 5000):
    if number != os.getpid():
        attempt(lambda: os.kill(number, 0))
""",
    "a higher limit": """
import resource
for name in ("CPU", "AS", "NPROC", "FSIZE", "NOFILE", "CORE"):
    kind = getattr(resource, f"RLIMIT_{name}")
    _, most = resource.getrlimit(kind)
    attempt(lambda: resource.setrlimit(kind, (most + 1, most + 1)))
""",
    "a better place in the queue": """
for doing in (
    lambda: os.nice(-5), lambda: os.setpriority(0, 0, -5), lambda: os.sched_setaffinity(0, {0}),
    lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)),
):
    attempt(doing)
""",
    "an installed package": """
import glob
for top in ("/python", "/usr", "/usr/local"):
    for folder in glob.glob(f"{top}/lib/python3*/*-packages"):
        print(*os.listdir(folder), end="")
""",
    "an open descriptor": """
for number in range(3, 1024):
    attempt(lambda: os.fstat(number))
""",
    "a terminal": """
import fcntl, termios
for number in range(3):
    attempt(lambda: fcntl.ioctl(number, termios.TIOCSTI, b"x"))
attempt(lambda: os.open("/dev/tty", os.O_RDWR))
attempt(lambda: os.openpty())
""",
    "a name for the machine": "import socket\nattempt(lambda: socket.sethostname('other'))",
    "a capability": """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
head, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
libc.capget(head, sets)
if any(sets):
    print(list(sets))
""",
}
ATTEMPT = """
import os
def attempt(doing):
    try:
        print("done", doing())
    except (OSError, ValueError):
        pass
"""


@pytest.mark.parametrize("name", GET_OUT)
def test_there_is_no_way_to(name: str) -> None:
    ran = inside(f"{ATTEMPT}{GET_OUT[name]}")
    assert (ran.stdout, ran.stderr, ran.code) == ("", "", 0)


NOTE = """
import os, sys, time
for folder in ("/work", "/dev", "/usr", "/python", "/var/tmp", "/dev/shm"):
    path = f"{folder}/note-{sys.argv[1]}"
    if os.path.exists(path):
        print("met", path)
    try:
        open(path, "w").close()
    except OSError:
        pass
time.sleep(0.3)
"""


def test_two_sandboxes_at_one_time_do_not_meet() -> None:
    async def both() -> list[Ran]:
        return await asyncio.gather(*(run_program({}, ("python", "-c", NOTE, "same")) for _ in range(2)))

    assert [ran.stdout for ran in asyncio.run(both())] == ["", ""]
