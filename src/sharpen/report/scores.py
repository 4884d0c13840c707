"""The report of `sharpen eval`: scores with intervals, by task type, and the paired difference."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from sharpen.bench import benchmark
from sharpen.bench.evaluate import Evaluated, Report
from sharpen.engine.events import Gained
from sharpen.report import closing, text
from sharpen.stats.normalise import Reference


def blocks(report: Report) -> Iterator[closing.Block]:
    if report.gain is not None:
        yield _difference(report.gain, report.scale)
    yield _table(report.evaluated, report.scale)
    by_type = _by_type(report.evaluated)
    if by_type is not None:
        yield by_type
    if report.scale is not None:
        yield Text(benchmark.meaning(report.scale), style="dim")
    if report.used.calls:
        yield Text(
            f"{text.plural(report.used.calls, 'call')}, {text.plural(report.used.tokens, 'token')}; "
            f"{text.plural(report.paid_calls, 'call')} made now, the rest was known"
        )


def sentence(report: Report) -> str:
    """The result in a line."""
    if report.gain is not None:
        return str(_difference(report.gain, report.scale))
    mean, low, high, n, failed = report.evaluated[0].score
    more = ""
    if report.scale is not None:
        more = " (normalised {} {})".format(*_normalised(report.evaluated[0], report.scale))
    return f"{text.score(mean)} {text.interval(low, high)}{more} on {text.plural(n, 'item')}, {failed} failed"


def _normalised(row: Evaluated, scale: Reference) -> tuple[str, str]:
    told = dict(zip(("mean", "low", "high"), row.score, strict=False))
    found = benchmark.with_normalised(told, tuple(told), scale)["normalised"]
    return text.score(found["mean"]), text.interval(found["low"], found["high"])


def _difference(gain: Gained, scale: Reference | None) -> Text:
    low, high = gain.low, gain.high
    if low is None or high is None:
        return Text(f"{gain.new} against {gain.old}: no item was scored for both", style="yellow")
    words = {1: ("better", "green"), -1: ("worse", "red"), 0: ("no difference shown", "yellow")}
    word, style = words[benchmark.verdict(low, high, scale)]
    more = ""
    if scale is not None:
        told = benchmark.with_normalised(gain.fields(), ("mean", "low", "high"), scale, differences=True)["normalised"]
        more = f" (normalised {text.signed(told['mean'])} {text.interval(told['low'], told['high'], sign=True)})"
    p = "" if gain.p is None else f", {text.p_value(gain.p)}"
    return Text(
        f"{gain.new} against {gain.old}: {text.signed(gain.mean)}, 95 % interval {text.interval(low, high, sign=True)}"
        f"{p}{more}, paired over {text.plural(gain.items, 'item')}: {word}",
        style=style,
    )


def _table(rows: tuple[Evaluated, ...], scale: Reference | None) -> Table:
    more = [] if scale is None else ["normalised", "95 % interval"]
    made = closing.table(f"on {rows[0].split}", "score", "95 % interval", *more, "items", "attempts each", "failed")
    for row in rows:
        mean, low, high, n, failed = row.score
        told = () if scale is None else _normalised(row, scale)
        cells = (text.score(mean), text.interval(low, high), *told, text.count(n), str(row.samples), text.count(failed))
        made.add_row(row.which, *cells)
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
