"""Judging how a program ended: which limit it met, if any. Pure.

A program that meets a limit of the kernel is mostly told so by a failing call, and then says so in its last line before it
gives up. That line is believed: whoever forges it gains nothing, since the run has failed either way.
"""

from __future__ import annotations

import signal

from sharpen.sandbox.contract import Limits, Reason
from sharpen.sandbox.usage import Tally

_LAST_WORDS: tuple[tuple[str, Reason], ...] = (
    ("MemoryError", "memory"),
    ("Cannot allocate memory", "memory"),
    ("can't start new thread", "processes"),
    ("Resource temporarily unavailable", "processes"),
    ("No space left on device", "files"),
    ("File too large", "files"),
)
_SIGNAL = 128


def unwrapped(code: int) -> int:
    """The code as it was before a shell's convention, under which 128 and more is a signal: minus that signal."""
    known = code > _SIGNAL and code - _SIGNAL in set(signal.Signals)
    return _SIGNAL - code if known else code


def too_much(used: Tally, limits: Limits, own_processes: int) -> Reason:
    """Which limit all processes of a run pass together, where one does."""
    if used.cpu_seconds > limits.cpu_seconds:
        return "cpu"
    if used.memory_kb > limits.memory_mb * 1024:
        return "memory"
    if used.processes - own_processes > limits.processes:
        return "processes"
    return ""


def of(stopped: Reason, code: int | None, stderr: str, cpu: float, limits: Limits) -> tuple[int | None, Reason]:
    """Exit code and reason of a run. `stopped` is why the keeper ended it; `code` is negative for a signal."""
    if stopped or code is None:
        return None, stopped or "killed"
    if cpu > limits.cpu_seconds or code == -signal.SIGXCPU:
        return None, "cpu"
    if code < 0:
        return None, "files" if code == -signal.SIGXFSZ else "killed"
    if code == 0:
        return 0, ""
    last = stderr.rstrip().rpartition("\n")[2]
    return code, next((reason for words, reason in _LAST_WORDS if words in last), "")
