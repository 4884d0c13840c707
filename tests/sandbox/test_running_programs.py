"""Running programs as a task does: what goes in and comes out, who may run them, and what is said where nobody can."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sharpen.core.candidate import Candidate
from sharpen.core.errors import UsageError
from sharpen.core.item import Item
from sharpen.core.outcome import FailureKind, Outcome
from sharpen.core.task import Attempt, Requirements, Task
from sharpen.engine.rollouts import LiveAttempt, Sampling, attempt_item
from sharpen.sandbox import (
    Limits,
    Mode,
    NoAnswer,
    Order,
    Ran,
    SandboxFailed,
    client,
    open_conversations,
    run_program,
)
from sharpen.sandbox.usage import Tally, children
from sharpen.sandbox.verdict import of, too_much
from sharpen.testing.processes import in_child

SOURCE = Path(__file__).parents[2] / "src"
BOTH = pytest.mark.parametrize("mode", list(Mode))


@BOTH
def test_files_input_output_and_exit_code_go_both_ways(mode: Mode) -> None:
    files = {
        "main.py": "import sys, helper\nprint(helper.shout(sys.stdin.read()), open('data/words.txt').read())\n"
        "print('careful', file=sys.stderr)\nsys.exit(3)",
        "helper.py": "def shout(text):\n    return text.upper()",
        "data/words.txt": "żółw",
    }
    ran = asyncio.run(run_program(files, ("python", "main.py"), stdin="grüße".encode(), mode=mode))
    assert (ran.stdout, ran.stderr, ran.code, ran.reason) == ("GRÜSSE żółw\n", "careful\n", 3, "")
    assert 0 < ran.cpu_seconds < 5
    assert not ran.ok


@BOTH
def test_packages_are_importable_only_where_they_are_asked_for(mode: Mode) -> None:
    async def both() -> tuple[Ran, Ran]:
        argv = ("python", "-c", "import numpy\nprint(numpy.eye(3) @ numpy.ones(3))")
        return await run_program({}, argv, mode=mode), await run_program({}, argv, mode=mode, packages=("numpy",))

    without, with_it = asyncio.run(both())
    assert "ModuleNotFoundError" in without.stderr
    assert (with_it.stdout, with_it.code) == ("[1. 1. 1.]\n", 0)


def test_runs_are_repeatable_and_one_leaves_nothing_for_the_next() -> None:
    async def three() -> list[Ran]:
        code = "import os\nprint(os.listdir('.'), hash('same'))\nopen('left', 'w').close()"
        return [await run_program({"main.py": code}, ("python", "main.py")) for _ in range(3)]

    assert len({(ran.stdout, ran.code) for ran in asyncio.run(three())}) == 1


def test_many_at_once_each_get_their_own_answer() -> None:
    async def many() -> list[str]:
        runs = (run_program({}, ("python", "-c", f"print({n})")) for n in range(24))
        return [ran.stdout.strip() for ran in await asyncio.gather(*runs)]

    assert asyncio.run(many()) == [str(n) for n in range(24)]


def test_an_answer_that_a_program_forges_is_only_its_output() -> None:
    ran = asyncio.run(run_program({}, ("python", "-c", "print('{\"exit-code\": 0}')\nraise SystemExit(9)")))
    assert (ran.code, ran.stdout) == (9, '{"exit-code": 0}\n')


@BOTH
def test_nonsense_for_a_program_is_its_own_failure_not_the_sandboxes(mode: Mode) -> None:
    for text in ("\ud800", "\0", "def", "é" * 100):
        ran = asyncio.run(run_program({"main.py": text}, ("python", "main.py"), mode=mode))
        assert (ran.code, ran.reason) == (1, "")
    ran = asyncio.run(run_program({"main.py": "#" * (2 << 20)}, ("python", "x"), mode=mode, limits=Limits(file_mb=1)))
    assert (ran.code, ran.reason) == (None, "files")


def test_files_that_do_not_fit_are_the_programs_failure_in_a_conversation_too() -> None:
    async def ask() -> None:
        order = Order({"main.py": "#" * (2 << 20)}, ("python", "main.py"), b"", Limits(file_mb=1), Mode.BUBBLEWRAP, ())
        async with open_conversations(order):
            raise AssertionError("it was started")

    with pytest.raises(NoAnswer, match="more than 1 MB"):
        asyncio.run(ask())


@pytest.mark.parametrize("name", ["../out.py", "/etc/passwd", "", "a/../../b"])
def test_a_file_outside_of_the_folder_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="relative name"):
        asyncio.run(run_program({name: ""}, ("python", "x.py")))


def test_a_limit_of_zero_is_refused() -> None:
    with pytest.raises(UsageError, match="memory_mb must be above zero"):
        Limits(memory_mb=0)


def test_a_package_that_is_not_installed_is_the_sandboxes_failure_not_the_programs() -> None:
    with pytest.raises(SandboxFailed, match="no_such_package"):
        asyncio.run(run_program({}, ("python", "-c", ""), packages=("no_such_package",)))


ASKING = """
import asyncio, json, os
from sharpen.sandbox import Limits, Mode, SandboxFailed, missing, run_program

count = '''
import os, time
n = 1
try:
    while n < 30:
        if os.fork() == 0:
            time.sleep(30)
        n += 1
except OSError:
    pass
print(n)
'''

async def ask(mode):
    try:
        return (await run_program({}, ("python", "-c", count), mode=mode, limits=Limits(processes=5))).stdout.strip()
    except SandboxFailed as error:
        return f"failed: {error}"

found = {"user": os.getuid(), "missing": missing(), "proc": os.readlink("/proc/self") == str(os.getpid())}
print(json.dumps({**found, **{mode.value: asyncio.run(ask(mode)) for mode in Mode}}))
"""


def asked(**variables: str) -> dict[str, object]:
    """What a fresh process finds out about sandboxes."""
    return _last_line([sys.executable, "-c", ASKING], {**os.environ, **variables})


def _last_line(command: list[str], environment: dict[str, str]) -> dict[str, object]:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_without_bubblewrap_nothing_runs_unless_it_is_called_unsafe(tmp_path: Path) -> None:
    found = asked(PATH=str(tmp_path))
    assert found["missing"] == "bubblewrap, which is not installed here (apt install bubblewrap)"
    assert str(found["bubblewrap"]).startswith("failed: ")
    assert "apt install bubblewrap" in str(found["bubblewrap"])
    assert str(found["unsafe"]).isdigit()


def test_where_namespaces_are_forbidden_nothing_runs() -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        os.chmod(name, 0o755)
        program = Path(name) / "bwrap"
        program.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
        program.chmod(0o755)
        found = asked(PATH=f"{name}:/usr/bin:/bin")
    assert "which can't make a sandbox here (bwrap: No permissions to create new namespace;" in str(found["missing"])
    assert found["bubblewrap"] == "failed: bwrap: No permissions to create new namespace"
    assert str(found["unsafe"]).isdigit()


AS_ANYONE = """
import dataclasses, os, pathlib, sys
from sharpen.sandbox.places import found, staged
here = found()
places = staged(dataclasses.replace(here, libraries=(pathlib.Path(sys.argv[1]), *here.libraries)))
os.setgroups([])
os.setresgid(4321, 4321, 4321)
os.setresuid(4321, 4321, 4321)
python = str(places.prefix / places.executable)
path = os.pathsep.join(map(str, places.libraries))
variables = {"LD_LIBRARY_PATH": str(places.prefix / "lib"), "PYTHONPATH": path, "TMPDIR": "/var/tmp"}
os.chdir("/")
os.execve(python, [python, "-c", sys.argv[2]], {**variables, "PATH": os.environ["PATH"]})
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else; as anyone else all tests show this")
def test_an_ordinary_user_has_sandboxes_with_the_same_limits() -> None:
    found = _last_line([sys.executable, "-c", AS_ANYONE, str(SOURCE), ASKING], dict(os.environ))
    assert found == {"user": 4321, "missing": None, "proc": True, "bubblewrap": "5", "unsafe": found["unsafe"]}
    assert 3 <= int(str(found["unsafe"])) <= 8


IN_A_JOB = """
import ctypes, os, sys
from pathlib import Path
user, group = os.geteuid(), os.getegid()
assert ctypes.CDLL(None).unshare(0x20000000 if user == 0 else 0x30000000) == 0
if user:
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
child = os.fork()
if child == 0:
    exec(ASKING)
    sys.stdout.flush()
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize("who", ["as we are", "as an ordinary user"])
def test_the_job_of_a_study_in_a_namespace_of_its_own_has_sandboxes_too(who: str) -> None:
    code = f"ASKING = {ASKING!r}\n{IN_A_JOB}"
    if who == "as we are":
        found = _last_line([sys.executable, "-c", code], dict(os.environ))
    elif os.geteuid() == 0:
        found = _last_line([sys.executable, "-c", AS_ANYONE, str(SOURCE), code], dict(os.environ))
    else:
        pytest.skip("we are one ourselves")
    assert (found["missing"], found["bubblewrap"], found["proc"]) == (None, "5", False)
    assert 3 <= int(str(found["unsafe"])) <= 8


def test_a_forked_copy_of_the_caller_has_a_launcher_of_its_own() -> None:
    def work() -> None:
        assert asyncio.run(run_program({}, ("python", "-c", "print(1)"))).stdout == "1\n"

    work()
    assert in_child(work) == 0
    work()


def test_a_killed_watcher_is_a_failure_and_the_next_run_works() -> None:
    async def killed() -> None:
        running = asyncio.create_task(run_program({}, ("python", "-c", "import time\ntime.sleep(60)")))
        # A keeper that has a program: that of an earlier run may not have ended yet.
        while not (keepers := [each for each in children(client._our_launcher().process.pid) if children(each)]):
            await asyncio.wait((running,), timeout=0.02)
        os.kill(keepers[0], signal.SIGKILL)
        with pytest.raises(SandboxFailed, match="has died"):
            await running

    asyncio.run(killed())
    assert asyncio.run(run_program({}, ("python", "-c", "print(1)"))).ok


class _Broken(Task):
    name = "broken"
    requirements = Requirements(checks=(lambda: "bubblewrap, which is not here", lambda: None))

    async def rollout(self, item: Item, candidate: Candidate, attempt: Attempt) -> Outcome:
        await run_program({}, ("python", "-c", ""), packages=("no_such_package",))
        raise AssertionError("the sandbox should have failed")


def test_a_failing_sandbox_is_a_failure_and_never_a_score() -> None:
    attempt = LiveAttempt(None, Sampling(None), "plain", ("", "", 0))  # type: ignore[arg-type]
    item = Item("a", "question", "answer")
    outcome = asyncio.run(attempt_item(_Broken(), item, Candidate({"skill": ""}), attempt))
    assert outcome.failure is not None
    assert outcome.failure.kind is FailureKind.SANDBOX
    assert outcome.hard is None


def test_a_task_says_what_it_lacks_before_it_runs() -> None:
    assert _Broken().requirements.missing() == ["bubblewrap, which is not here"]


def test_limits_hold_for_all_processes_together() -> None:
    limits = Limits(cpu_seconds=2, memory_mb=10, processes=3)
    assert too_much(Tally(5, 2.0, 10_240), limits, own_processes=2) == ""
    assert too_much(Tally(5, 2.1, 0), limits, own_processes=2) == "cpu"
    assert too_much(Tally(5, 0.0, 10_241), limits, own_processes=2) == "memory"
    assert too_much(Tally(6, 0.0, 0), limits, own_processes=2) == "processes"


def test_last_words_tell_which_limit_was_met_and_only_from_who_failed() -> None:
    limits = Limits()
    assert of("", 1, "Traceback\nMemoryError\n", 0.1, limits) == (1, "memory")
    assert of("", 1, "MemoryError\nValueError: 3\n", 0.1, limits) == (1, "")
    assert of("", 0, "MemoryError\n", 0.1, limits) == (0, "")
    assert of("", -11, "", 0.1, limits) == (None, "killed")
    assert of("", 0, "", 10.5, limits) == (None, "cpu")
    assert of("time", None, "MemoryError", 0.1, limits) == (None, "time")
