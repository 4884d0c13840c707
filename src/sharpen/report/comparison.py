"""A comparison for people: one sentence of verdict first, then what to mind, the table, items, cost, and the rest."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from rich.text import Text

from sharpen.bench.comparison.assembly import BOTH, Compared, Verdict
from sharpen.bench.comparison.differences import NOTHING
from sharpen.bench.comparison.joint import MAX_T
from sharpen.bench.comparison.pooling import BY_SEED, FLIPS, STUDENT, Pooled
from sharpen.bench.comparison.rows import ITEMS, MOST_MORE, Row
from sharpen.report import text
from sharpen.report.closing import Block, heading, table
from sharpen.report.diffs import CAME, WENT, printable
from sharpen.stats.exact import pairs_needed

_MOST_ITEMS = 6
_REPEATED = 4
_NAMED = re.compile(r"\S*\d\S*")
_MOST_SETTINGS = 20
_MOST_LINES = 40
_HUGE = 100.0
_STYLES = {Verdict.BETTER: "green", Verdict.WORSE: "red", Verdict.OPEN: "yellow"}


def blocks(found: Sequence[Compared], beside: Iterable[Block] = (), more: Iterable[Block] = ()) -> Iterator[Block]:
    """Everything there is to show; `beside` stands behind the verdicts, `more` behind the rows."""
    for one in found:
        yield Text(sentence(one), style="" if one.exploratory else _STYLES.get(one.verdict, ""))
    yield from beside
    warnings = counted_warnings(warning for one in found for warning in one.warnings)
    if warnings:
        yield heading("Mind")
        yield from (Text(f"  {warning}", style="yellow") for warning in warnings)
    yield heading(found[0].measure.words[:1].upper() + found[0].measure.words[1:])
    yield _rows(found)
    yield Text(family(found), style="dim")
    yield from more
    yield from _costs(found)
    for one in found:
        yield from _items(one)
        yield from _parting(one)
        yield from _settings(one)
        yield from _text(one)


def counted_warnings(warnings: Iterable[str]) -> list[str]:
    """Every warning once. Those that differ in nothing but names and numbers with digits are one line with their count."""
    alike: dict[str, list[str]] = {}
    for warning in dict.fromkeys(warnings):
        alike.setdefault(_NAMED.sub("#", warning), []).append(warning)
    shown = []
    for same in alike.values():
        if len(same) < _REPEATED:
            shown += same
        else:
            shown.append(f"{same[0]} (and {len(same) - 1} more like this; --json has them all)")
    return shown


def sentence(one: Compared) -> str:
    """The verdict in a line."""
    return f"Exploratory: {_sentence(one)}" if one.exploratory else _sentence(one)


def _held_to(one: Compared) -> str:
    """The interval that a margin is held to, which is not that of the effect: two one-sided tests are narrower."""
    if one.margin is None:
        return ""
    shown = text.interval(one.margin.low, one.margin.high, sign=True)
    return f"; held to its margin by {100 * one.margin.level:.3g} % interval {shown}"


def _sentence(one: Compared) -> str:
    row = one.rows[0]
    where = (
        f" on {row.task}"
        if len(one.rows) == 1 and row.task
        else ""
        if one.pooled is None
        else f" over {len(one.rows)} tasks"
    )
    if one.pooled is None and len(one.rows) > 1:
        return f"No verdict over {len(one.rows)} tasks: some have a single run of an arm."
    figures = _figures(one)
    margin = None if one.margin is None else one.margin.size
    if one.verdict in (Verdict.BETTER, Verdict.WORSE):
        within = f", but within the margin of {margin:g}" if one.margin is not None and one.margin.same else ""
        return f"{one.new} is {one.verdict} than {one.old}{where}: {figures}{within}."
    if one.verdict == Verdict.SAME:
        return f"{one.new} and {one.old} are the same within {margin:g}{where}: {figures}{_held_to(one)}."
    if one.verdict == Verdict.NOT_WORSE:
        return f"{one.new} is not worse than {one.old} by more than {margin:g}{where}: {figures}{_held_to(one)}."
    needed = _seeds_to_begin_with(one)
    if needed is not None:
        return (
            f"Too few {row.over} to say whether {one.new} is better than {one.old}{where}, whatever they show: {figures}. "
            f"It takes {needed} {row.over}"
            + (f" for {text.plural(one.tests, 'comparison')}, or fewer comparisons." if one.tests > 1 else ".")
        )
    return f"Can't tell whether {one.new} is better than {one.old}{where}: {figures}. {_outlook(one)}"


def _seeds_to_begin_with(one: Compared) -> int | None:
    """How many pairs the exact test needs before it can find anything, where there are fewer; else None."""
    row, over = one.rows[0], one.over_tasks
    if row.result is None or (over is None and not row.paired) or (over is not None and len(over.seeds) != 1):
        return None
    needed = pairs_needed((1 - row.result.effect.level) / max(1, one.tests))
    return needed if (row.n if over is None else over.seeds[0]) < needed else None


def _figures(one: Compared) -> str:
    row, over = one.rows[0], one.over_tasks
    effect = over.effect if over is not None else row.result.effect if row.result is not None else None
    if effect is None or one.p is None:
        return f"{number(row.effect, sign=True)}, no interval"
    adjusted = ""
    if one.tests > 1 and one.adjusted is not None:
        adjusted = f" ({p_value(one.adjusted)} adjusted for {one.tests} comparisons)"
    many = counted(row) if over is None else counted_seeds(over) or f"{counted_together(one.rows)} in all"
    scale = " normalised" if over is not None and over.normalised else ""
    if over is None and row.normalised is not None:
        told = row.normalised.effect
        scale = f" (normalised {number(told.value, sign=True)} {interval(told.low, told.high, sign=True)})"
    return (
        f"{number(effect.value, sign=True)} {interval(effect.low, effect.high, sign=True)}{scale}, "
        f"p {_is(p_value(one.p))}{'' if one.side == BOTH else ' one-sided'}{adjusted}, {many}"
    )


def _outlook(one: Compared) -> str:
    row, over = one.rows[0], one.over_tasks
    effect, more = (row.effect, row.more) if over is None else (over.effect.value, over.more)
    unit = (row.over if row.paired else "runs in each arm") + ("" if over is None else " on each task")
    if effect == 0.0:
        return "No difference was seen at all."
    if more is None:
        return f"An effect of this size would take more than {MOST_MORE:,} further {unit}: look for a larger one."
    if more == 0:
        return f"If the effect is of this size, as many {unit} again will probably show it."
    return f"If the effect is of this size, about {text.count(more)} more {unit} would show it."


def counted(row: Row) -> str:
    """How much evidence a row rests on."""
    if row.over == ITEMS:
        return text.plural(row.n, "item")
    if row.paired:
        return text.plural(row.n, "seed")
    return f"{row.n_old} against {row.n_new} runs"


def counted_seeds(over: Pooled) -> str:
    """The seeds that several tasks were averaged over; empty where none ran on more than one."""
    if len(over.seeds) == 1:
        return f"{text.plural(over.seeds[0], 'seed')}, each over its tasks"
    return f"{over.seeds[0]} against {over.seeds[1]} seeds, each over its tasks" if over.seeds else ""


def counted_together(rows: Sequence[Row]) -> str:
    """How much evidence several tasks rest on: a seed counts on each of them."""
    pairs = sum(row.n for row in rows if row.paired and row.over != ITEMS)
    items = sum(row.n for row in rows if row.paired and row.over == ITEMS)
    told = [text.plural(n, word) for n, word in ((pairs, "pair"), (items, "item")) if n]
    apart = [row for row in rows if not row.paired]
    if apart:
        told.append(f"{sum(row.n_old for row in apart)} against {sum(row.n_new for row in apart)} runs")
    return " and ".join(told)


def family(found: Sequence[Compared]) -> str:
    """Which tests were adjusted together."""
    one = found[0]
    if one.row_tests <= 1:
        return "One test; nothing to adjust for."
    if one.adjust == MAX_T:
        many = text.plural(len(found), "comparison")
        return f"Max-t of Westfall and Young over {many}; the intervals hold together."
    tasks, comparisons = {len(each.rows) for each in found}, text.plural(len(found), "comparison")
    each = max(tasks)
    # Arms that lack a task, and plans of a few tests, have another number of them than tasks times comparisons.
    whole = len(tasks) == 1 and each * len(found) == one.row_tests
    said = f"Holm's rule over {one.row_tests} tests"
    said += f": {text.plural(each, 'task')} x {comparisons}." if whole else f" in {comparisons}."
    tests = {each.over_tasks.test for each in found if each.over_tasks is not None}
    if not tests:
        return said
    words = {
        STUDENT: "a t test",
        FLIPS: "turning signs where no task has any spread",
        BY_SEED: "the tests of a single task, where a seed counts once: runs of one seed on several tasks are averaged",
    }
    how = ", or ".join(words[test] for test in (STUDENT, FLIPS, BY_SEED) if test in tests)
    scaled = " of normalised scores" if any(each.pooled_normalised is not None for each in found) else ""
    return f"{said} Over all tasks: the mean difference{scaled}, each task counting the same, by {how}."


def number(value: float | None, *, sign: bool = False) -> str:
    """A value of any size, in as many digits as say something."""
    if value is None:
        return NOTHING
    plus = "+" if sign else ""
    if value == 0.0 or 0.001 <= abs(value) < 10_000:
        shown = format(value, f"{plus}.3f")
        return "0.000" if float(shown) == 0.0 else shown
    return format(value, f"{plus}.3g")


def p_value(p: float | None) -> str:
    if p is None:
        return NOTHING
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _is(shown: str) -> str:
    return shown if shown.startswith("<") else f"= {shown}"


def _rows(found: Sequence[Compared]) -> Block:
    made = table(
        "task", "old", "new", "old\nmean", "new\nmean", "\neffect", f"\n{level(found)} interval", "\np", "\nadjusted",
        "p of\nt alone", "\nn",         "effect\nsize", "P(new\nhigher)", left=3,
    )  # fmt: skip
    for one in found:
        for row in one.rows:
            mark = " (exploratory)" if row.exploratory else ""
            made.add_row(f"{row.task or NOTHING}{mark}", one.old, one.new, *cells(row))
        if one.pooled is not None:
            made.add_row("all tasks", one.old, one.new, *over_tasks(one, one.pooled))
    return made


def over_tasks(one: Compared, over: Pooled) -> list[str]:
    """The figures of the mean difference over tasks; its p is adjusted where it decides."""
    effect = over.effect
    figures = ["", "", number(effect.value, sign=True), interval(effect.low, effect.high, sign=True), p_value(over.p)]
    return [*figures, p_value(one.adjusted if over is one.over_tasks else None), "", str(effect.n), "", ""]


def level(found: Sequence[Compared]) -> str:
    """The level of the intervals, which a planned look may have set."""
    known = (row.result.effect.level for one in found for row in one.rows if row.result is not None)
    return f"{100 * next(known, 0.95):.3g} %"


def cells(row: Row) -> list[str]:
    """A row's figures."""
    result = row.result
    many = str(row.n) if row.paired else f"{row.n_old}, {row.n_new}"
    if result is None:
        return ["", "", number(row.effect, sign=True), NOTHING, NOTHING, NOTHING, NOTHING, many, "", ""]
    size = result.d_z if row.paired else result.hedges_g
    name = "d_z" if row.paired else "g"
    return [
        number(result.old.value), number(result.new.value), number(result.effect.value, sign=True),
        interval(result.effect.low, result.effect.high, sign=True), p_value(row.p), p_value(row.adjusted),
        p_value(result.p_t), many,
        _size(name, size), f"{result.better:.3f}",
    ]  # fmt: skip


def _size(name: str, size: float | None) -> str:
    if size is None:
        return NOTHING
    return f"{name} {size:+.2f}" if abs(size) < _HUGE else f"{name} huge"


def interval(low: float, high: float, *, sign: bool = False) -> str:
    return f"[{number(low, sign=sign)}, {number(high, sign=sign)}]"


def _costs(found: Sequence[Compared]) -> Iterator[Block]:
    arms = {cost.arm: cost for one in found for cost in one.costs}
    known = [
        cost
        for cost in arms.values()
        if any(v is not None for v in (cost.mean.calls, cost.mean.tokens, cost.mean.money))
    ]
    if not known:
        return
    yield heading("Cost of a run")
    if not any(cost.mean.calls for cost in known):  # nothing was asked of a model: time is all it took
        timed = table("arm", "seconds", "gain on test")
        for cost in known:
            timed.add_row(cost.arm, text.seconds(cost.mean.seconds), text.signed(cost.gain))
        yield timed
        return
    made = table(
        "arm",
        "calls",
        "tokens",
        "money",
        "seconds",
        "gain on test",
        "calls per point",
        "tokens per point",
        "money per point",
    )
    for cost in known:
        per = cost.per_point
        made.add_row(
            cost.arm, text.count(cost.mean.calls), text.count(cost.mean.tokens), money(cost.mean.money),
            text.seconds(cost.mean.seconds), text.signed(cost.gain), *(
                (NOTHING,) * 3 if per is None else (text.count(per.calls), text.count(per.tokens), money(per.money))
            ),
        )  # fmt: skip
    yield made
    yield Text("A point is 0.01 of test score gained over the run's own start.", style="dim")


def money(value: float | None) -> str:
    return NOTHING if value is None else "free" if value == 0 else f"{value:.3g} $"


def _items(one: Compared) -> Iterator[Block]:
    for flips in one.flips:
        task = f" on {flips.task}" if flips.task else ""
        yield heading(f"Items{task}: {one.new} against {one.old}")
        yield Text(f"{len(flips.better)} better, {len(flips.worse)} worse, {flips.same} the same")
        for word, moved in (("better", flips.better), ("worse", flips.worse)):
            for item, before, after in moved[:_MOST_ITEMS]:
                yield Text(
                    f"  {word}  {printable(item)}  {before:.3g} → {after:.3g}", style=CAME if word == "better" else WENT
                )
            if len(moved) > _MOST_ITEMS:
                yield Text(f"  ... and {len(moved) - _MOST_ITEMS} more {word}", style="dim")


def _parting(one: Compared) -> Iterator[Block]:
    for task, step in one.diverged:
        if step is not None:
            where = f" on {task}" if task else ""
            yield Text(f"\nThe curves part at step {step:g}{where} and stay apart (95 % bands of the means; no test).")


def _settings(one: Compared) -> Iterator[Block]:
    if not one.settings:
        return
    yield heading(f"Settings that differ: {one.old} and {one.new}")
    made = table("setting", one.old, one.new, left=3)
    both = [setting for setting in one.settings if NOTHING not in (setting.old, setting.new)]
    shown = (both or list(one.settings))[:_MOST_SETTINGS]
    for setting in shown:
        made.add_row(setting.name, text.short(setting.old), text.short(setting.new))
    yield made
    if len(one.settings) > len(shown):
        yield Text(
            f"... and {len(one.settings) - len(shown)} more, most of which only one of them has (--json)", style="dim"
        )


def _text(one: Compared) -> Iterator[Block]:
    lines = one.text.splitlines()
    if not lines:
        return
    yield heading("Trained text")
    shown = Text()
    for line in lines[:_MOST_LINES]:
        style = (
            "dim"
            if line.startswith(("---", "+++", "@@"))
            else CAME
            if line[:1] == "+"
            else WENT
            if line[:1] == "-"
            else ""
        )
        shown.append(f"{printable(line)}\n", style=style)
    if len(lines) > _MOST_LINES:
        shown.append(f"... and {len(lines) - _MOST_LINES} more lines\n", style="dim")
    yield shown
