"""The report of `sharpen eval`: scores with intervals, by task type, and the paired difference."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from sharpen.bench.evaluate import Evaluated, Report
from sharpen.engine.events import Gained
from sharpen.report import closing, text


def blocks(report: Report) -> Iterator[closing.Block]:
    if report.gain is not None:
        yield _difference(report.gain)
    yield _table(report.evaluated)
    by_type = _by_type(report.evaluated)
    if by_type is not None:
        yield by_type
    yield Text(
        f"{text.plural(report.used.calls, 'call')}, {text.plural(report.used.tokens, 'token')}; "
        f"{text.plural(report.paid_calls, 'call')} made now, the rest was known"
    )


def sentence(report: Report) -> str:
    """The result in a line."""
    if report.gain is not None:
        return str(_difference(report.gain))
    mean, low, high, n, failed = report.evaluated[0].score
    return f"{text.score(mean)} {text.interval(low, high)} on {text.plural(n, 'item')}, {failed} failed"


def _difference(gain: Gained) -> Text:
    low, high = gain.low, gain.high
    if low is None or high is None:
        return Text(f"{gain.new} against {gain.old}: no item was scored for both", style="yellow")
    word, style = (
        ("better", "green") if low > 0 else ("worse", "red") if high < 0 else ("no difference shown", "yellow")
    )
    return Text(
        f"{gain.new} against {gain.old}: {text.signed(gain.mean)}, 95 % interval {text.interval(low, high, sign=True)}, "
        f"paired over {text.plural(gain.items, 'item')}: {word}",
        style=style,
    )


def _table(rows: tuple[Evaluated, ...]) -> Table:
    made = closing.table(f"on {rows[0].split}", "score", "95 % interval", "items", "attempts each", "failed")
    for row in rows:
        mean, low, high, n, failed = row.score
        made.add_row(
            row.which, text.score(mean), text.interval(low, high), text.count(n), str(row.samples), text.count(failed)
        )
    return made


def _by_type(rows: tuple[Evaluated, ...]) -> Table | None:
    kinds = list(rows[0].by_type)
    if len(kinds) < 2:
        return None
    made = closing.table("\nby type", "\nitems", *(f"\n{row.which}" for row in rows))
    for kind in sorted(kinds):
        cells = [row.by_type[kind] for row in rows]
        made.add_row(kind, text.count(cells[0][3]), *(text.score(cell[0]) for cell in cells))
    return made
