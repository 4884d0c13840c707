"""Where a picture becomes a file: by the ending of its name as SVG, which needs nothing, or painted as PNG or PDF."""

from __future__ import annotations

from pathlib import Path

from sharpen.core.errors import UsageError
from sharpen.files import write_atomic
from sharpen.report.page import painted, svg
from sharpen.report.page.marks import Picture
from sharpen.report.page.panels import on_paper

_KINDS = (".png", ".svg", ".pdf")


def check(path: Path) -> None:
    """Complain of a name that no picture can have; for commands, before they compute anything."""
    if path.suffix.lower() not in _KINDS:
        raise UsageError(f"can't draw to {path}; the name must end in {', '.join(_KINDS)}")


def save(picture: Picture, path: Path) -> None:
    """Write a picture under its title."""
    check(path)
    paper, kind = on_paper(picture), path.suffix.lower()
    write_atomic(path, svg.as_file(paper) if kind == ".svg" else painted.as_file(paper, kind[1:]))
