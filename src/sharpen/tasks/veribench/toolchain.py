"""Where Lean is, and running it: in the sandbox, which shows a program /usr and nothing of the user's.

Lean runs code while it checks a file (tactics, evaluation), so the file of a model is a program nobody has read. A Lean
outside of /usr, such as one that elan put into the home folder, can't be seen in there; the task then says what to do.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from sharpen.core.errors import SandboxFailed
from sharpen.sandbox import Limits, Mode, Ran, missing, run_program

_MEMORY_MB = 4096
_PROCESSES = 64
_NOT_STARTED = (126, 127)
"""What is said of a program that could not be executed, or lacks a library. Lean itself ends with 0 or 1."""


@dataclass(frozen=True, slots=True)
class Lean:
    program: str
    version: str


@functools.cache
def find(path: str | None = None) -> Lean | None:
    """The Lean of the search path (the environment's where None): the compiler itself, not elan's stand-in for it."""
    found = shutil.which("lean", path=path)
    if found is None:
        return None
    try:
        prefix, version = (
            subprocess.run([found, option], capture_output=True, text=True, timeout=120, check=True).stdout.strip()
            for option in ("--print-prefix", "--version")
        )
    except (OSError, subprocess.SubprocessError):
        return None
    program = Path(prefix) / "bin" / "lean"
    return Lean(str(program if program.exists() else Path(found).resolve()), version)


def lacking(mode: Mode) -> str | None:
    """What keeps a file from being checked here, as something that is needed; None where nothing does."""
    lean = find()
    if lean is None:
        return "Lean 4 on the path (a release of github.com/leanprover/lean4, unpacked in /usr/local, with bin/lean linked)"
    if mode is Mode.UNSAFE:
        return None
    if not Path(lean.program).is_relative_to("/usr"):
        return (
            f"Lean below /usr, where the sandbox shows it (this one is {lean.program}); "
            "or task.params.sandbox=unsafe, which lets what a model writes run with your rights"
        )
    return missing()


async def run(lean: Lean, file: str, text: str, seconds: float, mode: Mode) -> Ran:
    limits = Limits(
        seconds=seconds,
        cpu_seconds=max(1, round(4 * seconds)),
        memory_mb=_MEMORY_MB,
        processes=_PROCESSES,
        output_kb=1024,
    )
    ran = await run_program({file: text}, (lean.program, "--json", file), limits=limits, mode=mode)
    if ran.code in _NOT_STARTED:
        raise SandboxFailed(f"{lean.program} does not start in the sandbox: {ran.stderr.strip() or f'code {ran.code}'}")
    return ran
