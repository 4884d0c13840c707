"""Pictures as PNG and PDF, painted mark by mark with matplotlib (extra `plots`), which is imported when one is painted."""

from __future__ import annotations

import importlib.util
import io

from sharpen.core.errors import UsageError
from sharpen.core.redact import redact
from sharpen.report.page.marks import Area, Line, Picture
from sharpen.report.page.svg import LIGHT

_PER_INCH = 96.0
_SHARPNESS = 2.0
_POINTS = 72 / _PER_INCH


def can_paint() -> bool:
    return importlib.util.find_spec("matplotlib") is not None


def as_file(picture: Picture, kind: str) -> bytes:
    """The picture on light paper, where it is made of dots at twice its size. `kind` is png or pdf."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.patches import Polygon
    except ImportError:
        raise UsageError(
            f"drawing to .{kind} needs matplotlib: `pip install 'sharpen[plots]'`; .svg needs nothing"
        ) from None
    figure = Figure(figsize=(picture.width / _PER_INCH, picture.height / _PER_INCH), facecolor=LIGHT["paper"])
    FigureCanvasAgg(figure)
    panel = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    panel.set_axis_off()
    panel.set_xlim(0, picture.width)
    panel.set_ylim(picture.height, 0)
    sides = {"start": "left", "middle": "center", "end": "right"}
    for order, mark in enumerate(picture.marks):
        colour = LIGHT[mark.colour]
        if isinstance(mark, Line):
            across, down = zip(*mark.points, strict=True)
            parts = [float(part) * _POINTS for part in mark.dash.split()]
            style = (0, tuple(parts)) if parts else "-"
            panel.plot(across, down, color=colour, linewidth=mark.width * _POINTS, linestyle=style, zorder=order)
        elif isinstance(mark, Area):
            shape = Polygon(mark.points, closed=True, facecolor=colour, alpha=mark.opacity, linewidth=0, zorder=order)
            panel.add_patch(shape)
        else:
            panel.text(
                mark.x, mark.y, redact(mark.text).replace("$", r"\$"), color=colour, zorder=order,
                fontsize=mark.size * _POINTS * 0.94,
                ha=sides[mark.anchor], va="baseline", fontweight="bold" if mark.bold else "normal",
            )  # fmt: skip
    out = io.BytesIO()
    figure.savefig(out, format=kind, dpi=_PER_INCH * _SHARPNESS)
    return out.getvalue()
