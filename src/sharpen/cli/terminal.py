"""The one way to the terminal: nothing that is known to be a secret, and nothing that a terminal would obey.

Every command prints with `echo` and `echo_json`, or through the console of `console.py`. A task of the user's runs in this
process too and may print what a model answered; a traceback may quote it. So the two standard streams themselves blank every
secret known by value and make every control character visible. Only the console, which has cleaned the text it lays out, may
write escape sequences of its own: it writes through `escapes`.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
from typing import Any, TextIO, cast

from sharpen.core.printable import printable, printable_json
from sharpen.core.redact import redact_known


def echo(text: str = "", *, err: bool = False) -> None:
    """Print a line for people: on standard output, or beside the output proper."""
    stream = sys.stderr if err else sys.stdout
    stream.write(f"{printable(text)}\n")
    stream.flush()


def echo_json(value: Any, *, allow_nan: bool = True) -> None:
    """Print a value as one line of JSON on standard output."""
    echo(printable_json(value, allow_nan=allow_nan))


def say(text: str) -> None:
    """Print a line for people, beside the output proper."""
    echo(text, err=True)


def keep_clean() -> None:
    """Let nothing secret and no control character pass through the standard streams from now on."""
    sys.stdout, sys.stderr = _cleaned(sys.stdout), _cleaned(sys.stderr)


def escapes(stream: TextIO) -> TextIO:
    """Where a console writes what goes to `stream`: past the cleaning of control characters, not past that of secrets."""
    below = getattr(stream, "rich_proxied_file", stream)  # a live area has taken the stream's place
    return cast(TextIO, _Escapes(below)) if isinstance(below, CleanStream) else below


class CleanStream(io.TextIOWrapper):
    """A standard stream without secrets and without control characters."""

    def write(self, text: str, /) -> int:
        self.write_escapes(printable(text))
        return len(text)

    def write_escapes(self, text: str) -> None:
        try:
            super().write(redact_known(text))
        except OSError as error:
            self._leave_terminal(error)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            self._leave_terminal(error)

    def _leave_terminal(self, error: OSError) -> None:
        """Write to nowhere from now on where the terminal is gone: what is under way must still end in order."""
        if error.errno != errno.EIO:
            raise error
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())


class _Escapes:
    def __init__(self, stream: CleanStream) -> None:
        self._stream = stream
        self.encoding = stream.encoding

    def write(self, text: str) -> int:
        self._stream.write_escapes(text)
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()


def _cleaned(stream: TextIO) -> TextIO:
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    stream.flush()
    return CleanStream(
        stream.buffer,
        # What ASCII has no letter for would end the program, or take another way out than this one.
        encoding="utf-8" if codecs.lookup(stream.encoding).name == "ascii" else stream.encoding,
        errors="backslashreplace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
