"""Tables, colours and displays that are redrawn in place: rich, with foreign text made inert.

No markup is read, and every text is made printable both before it is laid out and as it leaves.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, TextIO, cast

from rich.console import Console, ConsoleOptions, RenderableType
from rich.file_proxy import FileProxy
from rich.live import Live
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from sharpen.cli.terminal import escapes
from sharpen.core.printable import printable
from sharpen.core.redact import redact_known

_WIDTH = 120
"""Columns of output that goes to a file or a pipe."""


class CleanConsole(Console):
    """A console whose every text is printable. Control codes are rich's own."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        if isinstance(renderable, Text) and (clean := printable(renderable.plain)) != renderable.plain:
            renderable = renderable.copy()
            renderable.plain = clean
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


def console(*, err: bool = False) -> CleanConsole:
    """A console that keeps text as it is: no markup, no guessed colours."""
    stream = sys.stderr if err else sys.stdout
    width = None if stream.isatty() else _WIDTH
    return CleanConsole(file=escapes(stream), markup=False, highlight=False, emoji=False, width=width)


def show(out: Console, blocks: Iterable[Text | Table]) -> None:
    """Print texts and tables, without the spaces that fill up a table's rows."""
    for block in blocks:
        with out.capture() as captured:
            out.print(block, soft_wrap=isinstance(block, Text))
        out.file.write("\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n")
        out.file.flush()


class LiveArea:
    """A few lines at the bottom of a terminal that are redrawn in place. What anybody prints meanwhile stands above."""

    def __init__(self, out: Console) -> None:
        self._live = Live(console=out, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False)
        self._streams = sys.stdout, sys.stderr
        self._live.start()
        sys.stdout, sys.stderr = (_above(out, stream) for stream in self._streams)

    def update(self, renderable: RenderableType) -> None:
        self._live.update(renderable, refresh=True)

    def close(self) -> None:
        """Clear the area and give the streams back; a second time changes nothing."""
        if sys.stdout is not self._streams[0]:
            sys.stdout.flush()
        if sys.stderr is not self._streams[1]:
            sys.stderr.flush()
        sys.stdout, sys.stderr = self._streams
        self._live.stop()


class _Above(FileProxy):
    """A stream whose lines are printed above a live area. rich would read escape sequences in them as styles and links."""

    def write(self, text: str) -> int:
        return super().write(printable(redact_known(text)))


def _above(out: Console, stream: TextIO) -> TextIO:
    return cast(TextIO, _Above(out, stream)) if stream.isatty() else stream
