"""What a program may use, met and passed; alone and with children; in the sandbox and without it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import pytest

from sharpen.sandbox import Limits, Mode, Ran, run_program

USUAL = Limits()
pytestmark = pytest.mark.parametrize("mode", list(Mode))


def run(code: str, mode: Mode, limits: Limits = USUAL, *arguments: str) -> Ran:
    return asyncio.run(run_program({"main.py": code}, ("python", "main.py", *arguments), limits=limits, mode=mode))


def is_running(mark: str) -> bool:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in path.read_bytes():
                return True
        except OSError:
            continue
    return False


def wait_until(mark: str, *, running: bool) -> None:
    until = time.monotonic() + 20
    while is_running(mark) is not running:
        assert time.monotonic() < until, f"running should be {running}"
        time.sleep(0.02)


def test_a_program_that_sleeps_past_its_time_is_stopped_and_what_it_said_is_kept(mode: Mode) -> None:
    ran = run("import time\nprint('here', flush=True)\ntime.sleep(60)", mode, Limits(seconds=0.6))
    assert (ran.code, ran.reason, ran.stdout) == (None, "time", "here\n")
    assert 0.6 <= ran.seconds < 5


def test_memory_is_refused_at_the_limit_and_given_below_it(mode: Mode) -> None:
    code = "import sys\nprint(len(bytearray(int(sys.argv[1]) << 20)) >> 20)"
    small = run(code, mode, Limits(memory_mb=256), "100")
    assert (small.code, small.reason, small.stdout) == (0, "", "100\n")
    large = run(code, mode, Limits(memory_mb=256), "300")
    assert (large.code, large.reason, large.stdout) == (1, "memory", "")


def test_memory_of_several_processes_is_added_up(mode: Mode) -> None:
    code = """
import os, time
for _ in range(3):
    if os.fork() == 0:
        held = bytearray(b"x") * (60 << 20)
        time.sleep(30)
os.wait()
"""
    ran = run(code, mode, Limits(memory_mb=128, seconds=20))
    assert (ran.code, ran.reason) == (None, "memory")


def test_processor_time_ends_a_program_that_will_not_listen(mode: Mode) -> None:
    code = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True:\n    pass"
    ran = run(code, mode, Limits(cpu_seconds=1, seconds=30))
    assert (ran.code, ran.reason) == (None, "cpu")
    assert 0.9 <= ran.cpu_seconds < 3


def test_more_processes_than_allowed_are_refused_and_no_fewer(mode: Mode) -> None:
    code = """
import os, time
count = 1
try:
    while count < 40:
        if os.fork() == 0:
            time.sleep(30)
            os._exit(0)
        count += 1
except OSError:
    pass
print(count)
"""
    # Without namespaces an ordinary user's other processes come and go, so the count is only about right.
    slack = 0 if mode is Mode.BUBBLEWRAP or os.geteuid() == 0 else 3
    assert abs(int(run(code, mode, Limits(processes=6)).stdout) - 6) <= slack
    assert int(run(code, mode, Limits(processes=60)).stdout) == 40


def test_a_program_that_prints_without_end_is_stopped_and_its_output_cut(mode: Mode) -> None:
    ran = run("import sys\nwhile True:\n    sys.stdout.write('x' * 1000)", mode, Limits(output_kb=64, seconds=20))
    assert (ran.code, ran.reason) == (None, "output")
    assert set(ran.stdout) == {"x"}
    assert len(ran.stdout) == 64 * 1024


def test_a_file_can_not_grow_past_its_limit(mode: Mode) -> None:
    ran = run("with open('f', 'wb') as f:\n    while True:\n        f.write(bytes(1 << 20))", mode, Limits(file_mb=4))
    assert (ran.code, ran.reason) == (1, "files")


def test_cancelling_kills_the_program(mode: Mode) -> None:
    mark = str(uuid4())

    async def cancel() -> None:
        argv = ("python", "-c", "import time\ntime.sleep(60)", mark)
        running = asyncio.create_task(run_program({}, argv, mode=mode, limits=Limits(seconds=60)))
        await asyncio.to_thread(wait_until, mark, running=True)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await asyncio.to_thread(wait_until, mark, running=False)

    asyncio.run(cancel())


def test_a_program_dies_with_the_one_who_asked_for_it(mode: Mode) -> None:
    mark = str(uuid4())
    code = (
        "import asyncio\nfrom sharpen.sandbox import *\n"
        f"argv = ('python', '-c', 'import time; time.sleep(60)', {mark!r} + 'x')\n"
        f"asyncio.run(run_program({{}}, argv, mode=Mode({mode.value!r}), limits=Limits(seconds=60)))"
    )
    caller = subprocess.Popen([sys.executable, "-c", code])
    wait_until(f"{mark}x", running=True)
    os.kill(caller.pid, signal.SIGKILL)
    caller.wait()
    wait_until(f"{mark}x", running=False)
