"""`sharpen variance` for people: one sentence for each arm, then what each number of runs can say."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence

from rich.text import Text

from sharpen.bench.comparison.measure import Measure
from sharpen.bench.comparison.spread import Spread
from sharpen.core.digest import Json
from sharpen.report.closing import Block, heading, table
from sharpen.report.comparison import number
from sharpen.report.comparison_files import finite
from sharpen.report.text import NOTHING
from sharpen.stats.enough import Band

SCHEMA_VERSION = 1
_SHOWN = (2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 50, 100, 200, 500, 1000)


def blocks(found: Sequence[Spread], measure: Measure, paired: bool) -> Iterator[Block]:
    for one in found:
        yield Text(sentence(one, measure))
        yield from (Text(f"  {note}", style="yellow") for note in one.notes)
    dashed = any(row.detectable is None for one in found for row in one.enough.rows)
    for one in found:
        yield heading(f"{one.name}: what n runs can say, in per cent of the mean")
        yield _table(one, paired)
    yield Text(
        "Each is followed by a 95 % band from drawing the runs at hand again. The coefficient of variation describes the "
        "data and does not shrink with n: it says nothing about how many runs are enough."
        + (" A dash: so few show nothing in an exact test, whatever they show." if dashed else ""),
        style="dim",
    )


def sentence(one: Spread, measure: Measure) -> str:
    """What there is, and what it would take."""
    told = one.enough
    n, share = len(one.values), told.threshold
    there = next((row for row in told.rows if row.runs == n), None)
    now = "" if there is None else f", known to ±{_per_cent(there.half_width.value)}"
    most = told.rows[-1].runs
    width = f"{told.runs_needed} runs" if told.runs_needed else f"more than {most} runs"
    shown = f"{told.detectable_needed} in each arm" if told.detectable_needed else f"more than {most} in each arm"
    return (
        f"{one.name}: {n} runs of {measure.words}: mean {number(told.mean)}, spread {number(told.spread)}{now}. "
        f"A mean to ±{_per_cent(share)} takes {width}; to show a difference of {_per_cent(share)} takes {shown}."
    )


def as_json(found: Sequence[Spread]) -> dict[str, Json]:
    return {"schema_version": SCHEMA_VERSION, "arms": [finite(dataclasses.asdict(one)) for one in found]}


def _table(one: Spread, paired: bool) -> Block:
    made = table("n", "half-width of the mean", "smallest effect, power 0.8", "variation of the first n", left=0)
    last = one.enough.rows[-1].runs
    for row in one.enough.rows:
        if row.runs in _SHOWN or row.runs in (last, len(one.values)):
            variation = _per_cent(row.variation) if row.runs <= len(one.values) else ""
            made.add_row(str(row.runs), _band(row.half_width), _band(row.detectable), variation)
    made.columns[2].header = f"smallest effect, power 0.8, n {'pairs' if paired else 'in each arm'}"
    return made


def _band(band: Band | None) -> str:
    if band is None:
        return NOTHING
    return f"{_per_cent(band.value)} [{_per_cent(band.low)}, {_per_cent(band.high)}]"


def _per_cent(share: float) -> str:
    return "∞" if not math.isfinite(share) else f"{100 * share:.3g} %"
