"""Work in processes of its own, for tests of what happens when one is killed, or when several do the same at once."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable


def start_child(work: Callable[[], object]) -> int:
    """Begin `work` in a copy of this process and return the child's number."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:  # whatever it is must not reach the parent's code that follows
            traceback.print_exc()
        finally:
            os._exit(code)
    return child


def end_of(child: int) -> int:
    """Wait for a child: its exit code, or minus the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def in_child(work: Callable[[], object]) -> int:
    """Carry out `work` in a child and tell how that ended."""
    return end_of(start_child(work))
