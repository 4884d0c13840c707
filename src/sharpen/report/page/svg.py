"""Pictures as SVG: inside a page, where the page's style colours them, or as files that carry their own."""

from __future__ import annotations

import html
from collections.abc import Iterator

from sharpen.core.redact import redact
from sharpen.report.page.marks import Area, Line, Mark, Picture, Point

LIGHT = {
    "ink": "#222222", "dim": "#5f6368", "grid": "#dddddd", "paper": "#ffffff",
    "c0": "#0072b2", "c1": "#d55e00", "c2": "#009e73", "c3": "#cc79a7", "c4": "#e69f00", "c5": "#56b4e9",
}  # fmt: skip
DARK = {
    "ink": "#e8e8e8", "dim": "#a8adb3", "grid": "#3c4043", "paper": "#16181a",
    "c0": "#56b4e9", "c1": "#e8772e", "c2": "#1fbf92", "c3": "#e09cc2", "c4": "#f0b429", "c5": "#f0e442",
}  # fmt: skip
"""Okabe and Ito's colours, those that are too dark for dark paper made lighter."""

_NAMESPACE = "http://www.w3.org/2000/svg"


def variables() -> str:
    """The colours as a style sheet knows them, for light paper and for dark."""
    light = "".join(f"--{name}:{value};" for name, value in LIGHT.items())
    dark = "".join(f"--{name}:{value};" for name, value in DARK.items())
    return f":root{{color-scheme:light dark;{light}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}"


def inline(picture: Picture) -> str:
    """For a page."""
    return _drawn(picture, "")


def on_light(picture: Picture) -> str:
    """For a page that knows nothing of these colours: the picture brings them along, those for light paper."""
    return _drawn(picture, "", "".join(f"--{name}:{value};" for name, value in LIGHT.items()))


def as_file(picture: Picture) -> str:
    """For a file of its own, on light paper whoever looks at it."""
    light = "".join(f"--{name}:{value};" for name, value in LIGHT.items())
    drawn = _drawn(picture, f' xmlns="{_NAMESPACE}" width="{picture.width:g}" height="{picture.height:g}"')
    paper = f'<style>svg{{{light}}}</style><rect width="100%" height="100%" fill="{LIGHT["paper"]}"/>'
    head, mark, rest = drawn.partition("</title>")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}{mark}{paper}{rest}\n'


def _drawn(picture: Picture, more: str, style: str = "") -> str:
    shapes = "".join(piece for mark in picture.marks for piece in _shape(mark))
    style += f"max-width:{picture.width:g}px"
    return (
        f'<svg{more} viewBox="0 0 {picture.width:g} {picture.height:g}" style="{style}" role="img" '
        f'font-family="system-ui,sans-serif"><title>{_safe(picture.title)}</title>{shapes}</svg>'
    )


def _shape(mark: Mark) -> Iterator[str]:
    if isinstance(mark, Line):
        dash = f' stroke-dasharray="{mark.dash}"' if mark.dash else ""
        yield (
            f'<polyline points="{_points(mark.points)}" fill="none" style="stroke:var(--{mark.colour})" '
            f'stroke-width="{mark.width:g}"{dash}/>'
        )
    elif isinstance(mark, Area):
        opacity = f' fill-opacity="{mark.opacity:.3g}"' if mark.opacity < 1 else ""
        start = f'<polygon points="{_points(mark.points)}" style="fill:var(--{mark.colour})"{opacity}'
        yield f"{start}><title>{_safe(mark.title)}</title></polygon>" if mark.title else f"{start}/>"
    else:
        bold = ' font-weight="600"' if mark.bold else ""
        whole = f"<title>{_safe(mark.whole)}</title>" if mark.whole else ""
        yield (
            f'<text x="{mark.x:.1f}" y="{mark.y:.1f}" text-anchor="{mark.anchor}" font-size="{mark.size:g}" '
            f'style="fill:var(--{mark.colour})"{bold}>{whole}{_safe(mark.text)}</text>'
        )


def _points(points: tuple[Point, ...]) -> str:
    return " ".join(f"{round(x, 1):g},{round(y, 1):g}" for x, y in points)


def _safe(text: str) -> str:
    """Without secrets, without what XML has no place for, and escaped."""
    return html.escape("".join(c if c.isprintable() else " " for c in redact(text)))
