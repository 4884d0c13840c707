"""Ways out of the sandbox, each really tried. Every probe is also run outside, where it must find what it looks for."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from sharpen.sandbox import Limits, Ran, missing, run_program

REPOSITORY = Path(__file__).parents[2]
USUAL = Limits()


def inside(code: str, *arguments: str, limits: Limits = USUAL) -> Ran:
    ran = asyncio.run(run_program({"main.py": code}, ("python", "main.py", *arguments), limits=limits))
    assert ran.stderr == "", ran.stderr
    return ran


def outside(code: str, *arguments: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, timeout=30
    ).stdout


def alive(mark: str) -> list[int]:
    """The processes that have `mark` in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that anyone may read, and that is not in /tmp, which is another one for the sandbox's launcher."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        os.chmod(name, 0o755)
        yield Path(name)


def test_sandboxes_work_on_this_machine() -> None:
    assert missing() is None, f"these tests need {missing()}"


CONNECT = """
import socket, sys
for family, address in ((socket.AF_INET, ("127.0.0.1", int(sys.argv[1]))), (socket.AF_UNIX, "\\0" + sys.argv[2])):
    try:
        with socket.socket(family) as s:
            s.settimeout(2)
            s.connect(address)
        print("reached")
    except OSError as error:
        print("refused")
"""


def test_no_network_is_reached_and_no_abstract_socket() -> None:
    name = f"sharpen-{uuid4()}"
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(f"\0{name}")
        unix.listen()
        where = (str(tcp.getsockname()[1]), name)
        assert outside(CONNECT, *where).split() == ["reached", "reached"]
        assert inside(CONNECT, *where).stdout.split() == ["refused", "refused"]


LOOK = "import os, sys\nprint(*(os.path.exists(path) and bool(os.stat(path)) for path in sys.argv[1:]))"


def test_files_of_the_machine_are_not_there(public_folder: Path) -> None:
    secret = public_folder / "secret"
    secret.write_text("hush")
    paths = [str(secret), str(Path.home()), str(REPOSITORY / "pyproject.toml"), "/etc/passwd", "/proc/self", "/var/tmp"]
    assert set(outside(LOOK, *paths).split()) == {"True"}
    assert set(inside(LOOK, *paths).stdout.split()) == {"False"}


def test_a_secret_is_not_readable_through_links_and_dots(public_folder: Path) -> None:
    secret = public_folder / "secret"
    secret.write_text("hush")
    code = """
import os, sys
os.symlink(sys.argv[1], f"{sys.argv[2]}/link")
for path in (f"{sys.argv[2]}/link", "../" * 20 + sys.argv[1], f"/proc/self/root{sys.argv[1]}"):
    try:
        print(open(path).read())
    except OSError:
        print("no")
"""
    assert outside(code, str(secret), str(public_folder)).count("hush") == 3
    assert inside(code, str(secret), "/work").stdout.split() == ["no", "no", "no"]


def test_the_environment_is_empty_but_for_what_the_sandbox_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARPEN_TEST_SECRET", "hush")
    code = "import os\nprint(*sorted(os.environ))"
    assert "SHARPEN_TEST_SECRET" in outside(code).split()
    allowed = "HOME LANG LD_LIBRARY_PATH OMP_NUM_THREADS OPENBLAS_NUM_THREADS PATH PWD PYTHONHASHSEED TMPDIR LC_CTYPE"
    assert set(inside(code).stdout.split()) <= set(allowed.split())


def test_nothing_can_be_written_but_the_working_folder() -> None:
    code = """
import os
for folder in ("/", "/usr", "/usr/bin", "/python", "/dev", "/etc", "/packages", "/work", "/tmp"):
    try:
        with open(f"{folder}/probe", "w") as file:
            file.write("x")
        print(folder)
    except OSError:
        pass
"""
    assert inside(code).stdout.split() == ["/work", "/tmp"]
    assert not Path("/usr/probe").exists()
    assert not Path("/tmp/probe").exists()


def test_no_descriptor_is_inherited_but_the_three() -> None:
    code = """
import os
for number in range(1000):
    try:
        os.fstat(number)
        print(number)
    except OSError:
        pass
"""
    assert inside(code).stdout.split() == ["0", "1", "2"]


def test_who_runs_is_nobody_in_particular_and_has_no_powers() -> None:
    code = """
import os
print(os.getuid(), os.getgid(), os.geteuid(), os.getgroups())
for attempt in (lambda: os.setuid(0), lambda: os.chroot("/work"), lambda: os.mknod("/work/device", 0o60600, 0)):
    try:
        attempt()
        print("done")
    except OSError:
        print("refused")
"""
    who, *attempts = inside(code).stdout.splitlines()
    assert who in ("65534 65534 65534 []", "65534 65534 65534 [65534]")
    assert attempts == ["refused"] * 3


REFUSED = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print("namespace", libc.unshare(0x10000000))
print("shared", libc.shmget(0, 1 << 20, 0o1600))
print("memfd", libc.memfd_create(b"x", 0))
print("mount", libc.mount(b"none", b"/work", b"tmpfs", 0, None))
print("trace", libc.ptrace(0, 0, 0, 0))
"""


def test_ways_around_the_limits_are_refused_by_the_kernel() -> None:
    found = dict(line.split() for line in outside(REFUSED).splitlines())
    assert {found["shared"], found["memfd"]}.isdisjoint({"-1"}), "the probe does not work"
    assert {line.split()[1] for line in inside(REFUSED).stdout.splitlines()} == {"-1"}


def test_processes_outside_are_neither_seen_nor_reached() -> None:
    code = """
import os, sys
reached = []
for number in range(2, 40000):
    try:
        os.kill(number, 0)
        reached.append(number)
    except OSError:
        pass
print(len(reached), sys.argv[1])
"""
    mine, _ = inside(code, str(os.getpid())).stdout.split()
    assert int(mine) == 1


DETACH = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(60)
    os._exit(0)
os.wait()
print("bye", flush=True)
"""


def test_a_detached_grandchild_dies_with_the_run_and_does_not_hold_it_up() -> None:
    mark = str(uuid4())
    begun = time.monotonic()
    assert inside(DETACH, mark).stdout == "bye\n"
    assert time.monotonic() - begun < 20
    assert alive(mark) == []
    outsider = subprocess.Popen([sys.executable, "-c", DETACH, mark], stdout=subprocess.DEVNULL)
    outsider.wait()
    survivors = alive(mark)
    for process in survivors:
        os.kill(process, 9)
    assert len(survivors) == 1, "outside, the same grandchild lives on"


def test_a_fork_bomb_is_over_with_its_time() -> None:
    mark = str(uuid4())
    bomb = "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass"
    ran = asyncio.run(
        run_program({"main.py": bomb}, ("python", "main.py", mark), limits=Limits(seconds=1.0, processes=8))
    )
    assert ran.code is None
    assert ran.reason in {"time", "cpu", "processes"}
    assert alive(mark) == []


def test_filling_the_disk_ends_at_the_size_of_the_working_folder() -> None:
    code = """
import os
written = 0
try:
    for number in range(64):
        with open(f"/tmp/{number}", "wb", buffering=0) as file:
            written += file.write(bytes(1 << 20))
except OSError:
    pass
print(written >> 20)
"""
    limits = Limits(file_mb=8)
    assert 1 <= int(inside(code, limits=limits).stdout) <= 8
