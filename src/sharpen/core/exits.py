"""Code of others that leaves the process at once is an error of that code, not a silent end of the program.

`os._exit` and the `os.exec` family skip everything that would notice them; with `os._exit(0)` a command would even look as
if it had succeeded. Once code of others is loaded, they raise instead, in this process and for code that is not our own. A
process that such code forks off may leave as it likes. What leaves through C alone is not held.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

_OWN = "sharpen."
_process = 0


class LeftProcess(RuntimeError):
    """Somebody's code tried to end the whole process."""


def forbid_exits() -> None:
    """From now on, code that is not our own can't end this process at once."""
    global _process
    if _process == 0:
        import posix

        for name in ("_exit", "execv", "execve"):
            held = _hold(name, getattr(os, name))
            for module in (os, posix):
                setattr(module, name, held)
    _process = os.getpid()


def _hold(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def held(*arguments: Any, **more: Any) -> Any:
        caller = sys._getframe(1)
        if os.getpid() != _process or str(caller.f_globals.get("__name__", "")).startswith(_OWN):
            return real(*arguments, **more)
        given = repr(arguments[0]) if arguments else ""
        raise LeftProcess(
            f"os.{name}({given}) would end the whole program, unfinished and without a word; leave it out"
        )

    return held
