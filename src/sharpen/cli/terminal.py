"""What reaches the terminal: nothing that is known to be a secret, whoever prints it.

A task of the user's runs in this process and may print what it was given; a traceback may quote it. So the two standard
streams blank every secret known by value as it passes.
"""

from __future__ import annotations

import io
import sys
from typing import TextIO

from sharpen.core.redact import redact_known


class _Clean(io.TextIOWrapper):
    def write(self, text: str, /) -> int:
        super().write(redact_known(text))
        return len(text)


def keep_clean() -> None:
    """Let nothing secret pass through the standard streams from now on."""
    sys.stdout, sys.stderr = _cleaned(sys.stdout), _cleaned(sys.stderr)


def _cleaned(stream: TextIO) -> TextIO:
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    stream.flush()
    return _Clean(
        stream.buffer,
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
