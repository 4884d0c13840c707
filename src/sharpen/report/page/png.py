"""Pictures as PNG, drawn mark by mark with matplotlib (extra `plots`), which is imported when one is drawn."""

from __future__ import annotations

import io

from sharpen.core.errors import UsageError
from sharpen.report.page.marks import Area, Line, Picture
from sharpen.report.page.svg import LIGHT

_PER_INCH = 96.0
_SHARPNESS = 2.0
_POINTS = 72 / _PER_INCH


def as_file(picture: Picture) -> bytes:
    """The picture at twice its size, on light paper."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.patches import Polygon
    except ImportError:
        raise UsageError("drawing to PNG needs matplotlib: `pip install 'sharpen[plots]'`") from None
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
                mark.x, mark.y, mark.text.replace("$", r"\$"), color=colour, zorder=order,
                fontsize=mark.size * _POINTS * 0.94,
                ha=sides[mark.anchor], va="baseline", fontweight="bold" if mark.bold else "normal",
            )  # fmt: skip
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=_PER_INCH * _SHARPNESS)
    return out.getvalue()
