"""Looking for a regular expression in an answer, for a bounded time and with bounded memory.

A pattern such as `(a+)+b` takes time without end on some answers, and nothing can stop a search in the thread it runs in.
So it runs in a small Python process of its own, which is started for the first search and serves all that follow. The kernel
ends it when one search has used its CPU seconds, or when whoever asks has gone; the next search starts another one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence

from sharpen.core.errors import ScoringTimeout

SECONDS = 2.0
"""CPU seconds of one search. Ordinary patterns take microseconds."""
_MEMORY = 1 << 30
"""Bytes of address space of the process."""

_PROGRAM = """
import json, re, signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
seconds, memory = float(sys.argv[1]), int(sys.argv[2])
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
except (ImportError, ValueError, OSError):
    pass
limit = getattr(signal, "setitimer", None)
for line in sys.stdin.buffer:
    patterns, text = json.loads(line)
    if limit:
        limit(signal.ITIMER_PROF, seconds)
    answer = [False, None]
    for at, pattern in enumerate(patterns):
        try:
            compiled = re.compile(pattern)
            answer[0] = answer[0] or compiled.search(text) is not None
        except MemoryError:
            answer[1] = [at, "it takes too much memory"]
        except Exception as error:
            answer[1] = [at, str(error)]
    if limit:
        limit(signal.ITIMER_PROF, 0)
    sys.stdout.write(json.dumps(answer) + "\\n")
    sys.stdout.flush()
"""


class BadPattern(Exception):
    """A text that is no regular expression."""

    def __init__(self, pattern: str, problem: str) -> None:
        super().__init__(problem)
        self.pattern = pattern


class PatternSearcher:
    """Searches texts for patterns in a process of its own. Threads may share it; a forked process gets another one."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def finds_any(self, patterns: Sequence[str], text: str) -> bool:
        """Whether one of the patterns is found in the text. `BadPattern` where one is no pattern, `ScoringTimeout` where the
        limits end the search."""
        with self._lock:
            found, problem = self._ask([list(patterns), text])
        if problem is not None:
            raise BadPattern(patterns[problem[0]], problem[1])
        return bool(found)

    def _ask(self, question: list[object]) -> tuple[bool, tuple[int, str] | None]:
        process = self._running()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(question).encode() + b"\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = b""
        if not line:
            self._process = None
            _end(process, self._owner)
            code = process.returncode
            size = len(str(question[1]))
            why = f"took more than {self._seconds:g} s" if code < 0 else f"ended with code {code}"
            raise ScoringTimeout(
                f"the search for the expected pattern {why} in an answer of {size:,} characters; a pattern without a "
                "repetition inside a repetition, such as (a+)+, takes less"
            )
        found, problem = json.loads(line)
        return found, problem

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._owner != os.getpid():
            words = [sys.executable, "-I", "-S", "-c", _PROGRAM, str(self._seconds), str(_MEMORY)]
            self._process = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            self._owner = os.getpid()
            weakref.finalize(self, _end, self._process, self._owner)
        return self._process


def _end(process: subprocess.Popen[bytes], owner: int) -> None:
    """End a searcher's process, which ends when its input does."""
    if owner != os.getpid():
        return
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    process.wait()
