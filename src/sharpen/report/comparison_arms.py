"""What a comparison tells of its arms beside the rows of effects: scores on a scale from random to reference, how the arms
get to a threshold, and aggregates over all runs and tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.text import Text

from sharpen.bench.comparison.aggregated import Aggregated, ArmAggregate, mean_rank
from sharpen.bench.comparison.assembly import Compared
from sharpen.bench.comparison.references import protocols
from sharpen.report.closing import Block, heading, table
from sharpen.report.comparison import interval, number, over_tasks, p_value
from sharpen.report.text import NOTHING
from sharpen.stats.means import Estimate

_MANY_DIGITS = 10.0
_FEW = 15
_WORDS = ("task", "old", "new", "arm", "scores")
STATISTICS = {"mean": "mean", "median": "median", "iqm": "IQM", "gap": "gap to 1"}

Rows = tuple[tuple[str, ...], list[list[str]]]
"""The heads of columns, and cells."""


def blocks(found: Sequence[Compared], whole: Aggregated | None) -> Iterator[Block]:
    """Each as a table with its heading, where there is something to tell."""
    for title, made, foot in sections(found, whole):
        yield heading(title)
        shown = table(*made[0], left=sum(name.strip() in _WORDS for name in made[0]))
        for row in made[1]:
            shown.add_row(*row)
        yield shown
        yield Text(foot, style="dim")


def sections(
    found: Sequence[Compared], whole: Aggregated | None, *, raw_too: bool = False
) -> Iterator[tuple[str, Rows, str]]:
    """Title, table and a sentence below it. Raw scores of several tasks seldom add up to something, so that where normalised
    ones are known, raw aggregates are left out unless `raw_too`."""
    normal = _normalised(found)
    if normal[1]:
        known = {row.task: row.normalised.reference for one in found for row in one.rows if row.normalised is not None}
        scale = next(iter(known.values())).scale
        told = "; ".join(name for name in protocols(known) if name)
        yield "Normalised", normal, f"0 is the random score, {scale:g} the reference{': ' + told if told else ''}."
    times = _times(found)
    if times[1]:
        yield (
            "On the way",
            times,
            "Median: the step by which half of the runs are there. Means count steps up to the last one that both arms were "
            "watched to.",
        )
    if whole is not None:
        title = "Over all runs" if len(whole.tasks) == 1 else f"Over {len(whole.tasks)} tasks"
        normal_only = bool(whole.normalised) and len(whole.tasks) > 1 and not raw_too
        shown = replace(whole, raw=()) if normal_only else whole
        yield f"{title}, normalised" if normal_only else title, _aggregates(shown), _foot(whole)


def _normalised(found: Sequence[Compared]) -> Rows:
    head = ("task", "old", "new", "old\nmean", "new\nmean", "\neffect", "\ninterval", "\np", "\nadjusted")
    rows = []
    for one in found:
        for row in one.rows:
            if row.normalised is not None:
                effect = row.normalised.effect
                means = number(row.normalised.old.value), number(row.normalised.new.value)
                rows.append(
                    [
                        row.task or NOTHING,
                        one.old,
                        one.new,
                        *means,
                        *_effect(effect),
                        p_value(row.p),
                        p_value(row.adjusted),
                    ]
                )
        if one.pooled_normalised is not None:
            rows.append(["all tasks", one.old, one.new, *over_tasks(one, one.pooled_normalised)[:6]])
    return head, rows


def _effect(effect: Estimate) -> tuple[str, str]:
    return number(effect.value, sign=True), interval(effect.low, effect.high, sign=True)


def _times(found: Sequence[Compared]) -> Rows:
    head = ("task", "arm", "got\nthere", "median\nstep", "\nmean", "\ninterval", "up to\nstep")
    rows: dict[tuple[str, ...], None] = {}
    for one in found:
        for row in one.rows:
            if row.times is None:
                continue
            for arm, times in ((one.old, row.times.old), (one.new, row.times.new)):
                mean = times.restricted_mean
                figures = (NOTHING,) * 2 if mean is None else (number(mean.value), interval(mean.low, mean.high))
                median = NOTHING if times.median is None else f"{times.median:g}"
                there = f"{times.reached} of {times.n}"
                rows[(row.task or NOTHING, arm, there, median, *figures, f"{row.times.until:g}")] = None
    return head, [list(row) for row in rows]


def _aggregates(whole: Aggregated) -> Rows:
    both = bool(whole.normalised and whole.raw)
    names = [name for name in STATISTICS if any(name in one.statistics for one in (*whole.raw, *whole.normalised))]
    head = ("arm", *(("scores",) if both else ()), "runs", *(STATISTICS[name] for name in names))
    rows = [
        [one.arm, *([kind] if both else []), str(whole.runs[one.arm]), *(_cell(one, name) for name in names)]
        for kind, arms in (("raw", whole.raw), ("normalised", whole.normalised))
        for one in arms
    ]
    return head, rows


def _cell(one: ArmAggregate, name: str) -> str:
    return _estimate(one.statistics[name]) if name in one.statistics else NOTHING


def _estimate(one: Estimate) -> str:
    return f"{_short(one.value)} [{_short(one.low)}, {_short(one.high)}]"


def _short(value: float) -> str:
    """Few digits, and as many for small and large scores: these columns stand side by side."""
    size = abs(value)
    return number(value) if size < _MANY_DIGITS else f"{value:.1f}" if size < 100 * _MANY_DIGITS else f"{value:.4g}"


def _foot(whole: Aggregated) -> str:
    wins = [f"P({win.new} better than {win.old}) {_estimate(win.probability)}" for win in whole.wins]
    places = sorted((mean_rank(shares), arm) for arm, shares in whole.ranks.items())
    standing = [f"Mean rank: {', '.join(f'{arm} {place:.2f}' for place, arm in places)}."] if places else []
    several = len(whole.tasks) > 1
    level = next(iter(whole.raw[0].statistics.values())).level
    few = (
        ", which for median, IQM and gap of a few runs comes out too narrow" if min(whole.runs.values()) < _FEW else ""
    )
    about = (
        f"IQM: the mean of the middle half of all runs.{' Mean and median are over task means.' if several else ''} "
        f"{100 * level:.3g} % intervals by {'stratified ' if several else ''}bootstrap{'' if several else few}; all runs of "
        "an arm count, paired or not."
    )
    return "\n".join([f"{', '.join(wins)}.", *standing, about])
