"""How numbers, times and long texts are written for people. One way for every command."""

from __future__ import annotations

NOTHING = "–"


def score(value: float | None) -> str:
    """A score in 0..1."""
    return NOTHING if value is None else f"{value:.3f}"


def signed(value: float | None) -> str:
    """A difference of scores. What rounds to zero has no sign."""
    if value is None:
        return NOTHING
    text = f"{value:+.3f}"
    return "0.000" if float(text) == 0 else text


def interval(low: float | None, high: float | None, *, sign: bool = False) -> str:
    if low is None or high is None:
        return NOTHING
    if not sign:
        return f"[{score(low)}, {score(high)}]"
    # An interval that leaves 0 out is not written as one that begins there.
    ends = (
        f"{low:+.1g}" if 0.0 < low < 0.0005 else signed(low),
        f"{high:+.1g}" if -0.0005 < high < 0.0 else signed(high),
    )
    return f"[{ends[0]}, {ends[1]}]"


def p_value(p: float | None) -> str:
    """`p = 0.031` or `p < 0.001`; nothing where it is not known."""
    return "" if p is None else "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def count(number: int | float | None) -> str:
    return NOTHING if number is None else f"{number:,.0f}"


def plural(number: int, one: str, many: str = "") -> str:
    """`1 call`, `2 calls`."""
    return f"{count(number)} {one if number == 1 else many or one + 's'}"


def clock(seconds: float | None) -> str:
    """A duration as m:ss or h:mm:ss."""
    if seconds is None:
        return NOTHING
    whole = max(0, round(seconds))
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours}:{minutes:02d}:{left:02d}" if hours else f"{minutes}:{left:02d}"


def seconds(value: float | None) -> str:
    """A duration in seconds, with a decimal where it matters."""
    if value is None:
        return NOTHING
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def age(seconds_ago: float | None) -> str:
    """How long ago something was."""
    if seconds_ago is None:
        return NOTHING
    for size, name in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds_ago >= size:
            return f"{seconds_ago / size:.0f} {name} ago"
    return f"{max(0.0, seconds_ago):.0f} s ago"


def short(text: str, most: int = 60) -> str:
    """A text as one line of at most `most` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
