"""A comparison as files: everything as JSON, the rows as CSV, and one page of HTML that needs nothing else."""

from __future__ import annotations

import csv
import dataclasses
import io
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sharpen.bench.comparison.aggregated import Aggregated, mean_rank
from sharpen.bench.comparison.assembly import Compared
from sharpen.bench.comparison.differences import ArmCost
from sharpen.bench.comparison.rows import Row
from sharpen.core.digest import Json
from sharpen.core.printable import csv_cells
from sharpen.core.redact import redact
from sharpen.report.comparison import cells, counted_warnings, family, level, money, over_tasks, sentence
from sharpen.report.comparison_arms import sections
from sharpen.report.page.html import POLICY, safe
from sharpen.report.text import NOTHING, count, signed

SCHEMA_VERSION = 1

_COLUMNS = (
    "task", "old", "new", "measure", "over", "paired", "n_old", "n_new", "mean_old", "mean_new", "effect", "low", "high",
    "interval", "p", "test", "p_adjusted", "p_t", "d", "hedges_g", "d_z", "cliffs_delta", "win_share", "prob_higher",
    "correlation", "verdict", "exploratory", "low_old", "high_old", "low_new", "high_new", "normalised_old",
    "normalised_new", "normalised_effect", "normalised_low", "normalised_high", "protocol", "reached_old",
    "reached_new", "median_step_old", "median_step_new", "until_step",
)  # fmt: skip
"""Rows of aggregates have the statistic in `over`; the probability of improvement is in `effect`."""

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}
.verdict{font-size:1.1rem;border-left:4px solid #888;padding-left:.8rem}
.better{border-color:#0072b2}.worse{border-color:#d55e00}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}th,td{padding:.2rem .8rem .2rem 0;text-align:right;
border-bottom:1px solid #ddd}th:first-child,td:first-child{text-align:left}th{font-weight:600;color:#555}
li.warning{color:#8a5a00}pre{background:#f6f6f6;padding:.8rem;overflow:auto}ins{background:#d9ecf7;text-decoration:none}
del{background:#fbe3d6;text-decoration:none}svg{max-width:100%;height:auto}
"""


def as_json(found: Sequence[Compared], whole: Aggregated | None = None) -> dict[str, Json]:
    """All there is, with infinite numbers as null."""
    comparisons = [{**finite(dataclasses.asdict(one)), "sentence": sentence(one)} for one in found]
    made: dict[str, Json] = {"schema_version": SCHEMA_VERSION, "family": family(found), "comparisons": comparisons}
    return made if whole is None else {**made, "aggregates": finite(dataclasses.asdict(whole))}


def as_csv(found: Sequence[Compared], whole: Aggregated | None = None) -> str:
    """A row per task and pair of arms, one for all tasks, and one for each aggregate of the two."""
    out = io.StringIO()
    writer = csv.DictWriter(out, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    for one in found:
        start = {"old": one.old, "new": one.new, "measure": one.measure.words}
        for row in one.rows:
            writer.writerow(csv_cells({**start, **_row_cells(row)}))
        for over, name in ((one.pooled, "tasks"), (one.pooled_normalised, "tasks, normalised")):
            if over is not None:
                adjusted = one.adjusted if over is one.over_tasks else None
                effect = {"effect": over.effect.value, "low": over.effect.low, "high": over.effect.high}
                decides = one.verdict if over is one.over_tasks else ""
                about = {"interval": over.effect.method, "p": over.p, "test": over.method, "p_adjusted": adjusted}
                about |= {"verdict": decides}
                named = {"task": "all tasks", "over": name, "exploratory": one.exploratory}
                writer.writerow(csv_cells({**start, **named, **effect, **about}))
    if whole is not None:
        measure = found[0].measure.words
        for cells in _aggregate_cells(whole):
            task = "all tasks" if len(whole.tasks) > 1 else whole.tasks[0]
            writer.writerow(csv_cells({"task": task, "measure": measure, **cells}))
    return redact(out.getvalue())


def _row_cells(row: Row) -> dict[str, Any]:
    made: dict[str, Any] = {
        "task": row.task, "over": row.over, "paired": row.paired, "n_old": row.n_old, "n_new": row.n_new,
        "effect": row.effect, "exploratory": row.exploratory, "verdict": row.verdict,
    }  # fmt: skip
    result, normal, times = row.result, row.normalised, row.times
    if result is not None:
        made |= {
            "mean_old": result.old.value, "mean_new": result.new.value, "effect": result.effect.value,
            "low": result.effect.low, "high": result.effect.high, "interval": result.effect.method, "p": result.test.p,
            "test": result.test.method, "p_adjusted": row.adjusted, "p_t": result.p_t, "d": result.d,
            "hedges_g": result.hedges_g, "d_z": result.d_z, "cliffs_delta": result.cliffs_delta,
            "win_share": result.win_share, "prob_higher": result.better, "correlation": result.correlation,
            "low_old": result.old.low, "high_old": result.old.high, "low_new": result.new.low, "high_new": result.new.high,
        }  # fmt: skip
    if normal is not None:
        made |= {
            "normalised_old": normal.old.value, "normalised_new": normal.new.value,
            "normalised_effect": normal.effect.value, "normalised_low": normal.effect.low,
            "normalised_high": normal.effect.high, "protocol": normal.reference.protocol,
        }  # fmt: skip
    if times is not None:
        made |= {
            "reached_old": times.old.reached, "reached_new": times.new.reached, "median_step_old": times.old.median,
            "median_step_new": times.new.median, "until_step": times.until,
        }  # fmt: skip
    return made


def _aggregate_cells(whole: Aggregated) -> Iterator[dict[str, Any]]:
    """The two arms of each comparison in one statistic after another."""
    for win in whole.wins:
        arms = {"old": win.old, "new": win.new, "n_old": whole.runs[win.old], "n_new": whole.runs[win.new]}
        for kind, members in (("", whole.raw), (", normalised", whole.normalised)):
            by_name = {one.arm: one.statistics for one in members}
            for name, old in by_name.get(win.old, {}).items():
                new = by_name[win.new][name]
                yield {
                    **arms, "over": f"{name}{kind}", "interval": old.method, "mean_old": old.value, "low_old": old.low,
                    "high_old": old.high, "mean_new": new.value, "low_new": new.low, "high_new": new.high,
                }  # fmt: skip
        chance = win.probability
        yield {**arms, "over": "improvement", "interval": chance.method, "effect": chance.value, "low": chance.low,
               "high": chance.high}  # fmt: skip
        if whole.ranks:
            old_rank, new_rank = mean_rank(whole.ranks[win.old]), mean_rank(whole.ranks[win.new])
            yield {**arms, "over": "mean rank", "mean_old": old_rank, "mean_new": new_rank}


def as_page(found: Sequence[Compared], picture: str = "", whole: Aggregated | None = None) -> str:
    """One page, self-contained. `picture` is an SVG."""
    parts = ["<h1>Comparison</h1>"]
    parts += [f'<p class="verdict {one.verdict}">{_safe(sentence(one))}</p>' for one in found]
    warnings = counted_warnings(warning for one in found for warning in one.warnings)
    if warnings:
        parts.append("<h2>Mind</h2><ul>" + "".join(f'<li class="warning">{_safe(w)}</li>' for w in warnings) + "</ul>")
    head = (
        "task",
        "old",
        "new",
        "old mean",
        "new mean",
        "effect",
        f"{level(found)} interval",
        "p",
        "adjusted",
        "p of t alone",
        "n",
        "size",
        "P(new higher)",
    )
    rows = [
        [f"{row.task}{' (exploratory)' if row.exploratory else ''}", one.old, one.new, *cells(row)]
        for one in found
        for row in one.rows
    ]
    for one in found:
        if one.pooled is not None:
            rows.append(["all tasks", one.old, one.new, *over_tasks(one, one.pooled)])
    parts += [
        f"<h2>{_safe(found[0].measure.words)}</h2>",
        _table(head, rows),
        f"<p>{_safe(family(found))}</p>",
        *(
            f"<h2>{_safe(title)}</h2>{_table([' '.join(name.split()) for name in head], rows)}<p>{_safe(foot)}</p>"
            for title, (head, rows), foot in sections(found, whole, raw_too=True)
        ),
        picture,
    ]
    costs = {cost.arm: cost for one in found for cost in one.costs}
    parts.append("<h2>Cost of a run</h2>")
    columns = ("arm", "calls", "tokens", "money", "gain on test", "tokens per point", "money per point")
    parts.append(_table(columns, [_cost_cells(cost) for cost in costs.values()]))
    for one in found:
        parts += _details(one)
    body = "\n".join(part for part in parts if part)
    return redact(
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8">{POLICY}<meta name="viewport" content="width=device-width">'
        f"<title>Comparison</title><style>{_STYLE}</style>\n<body>\n{body}\n</body></html>\n"
    )


def _cost_cells(cost: ArmCost) -> list[str]:
    mean, per = cost.mean, cost.per_point
    spent = [cost.arm, count(mean.calls), count(mean.tokens), money(mean.money), signed(cost.gain)]
    return spent + ([NOTHING, NOTHING] if per is None else [count(per.tokens), money(per.money)])


def _details(one: Compared) -> Iterable[str]:
    for flips in one.flips:
        yield f"<h2>Items {_safe(flips.task)}: {_safe(one.new)} against {_safe(one.old)}</h2>"
        yield f"<p>{len(flips.better)} better, {len(flips.worse)} worse, {flips.same} the same.</p>"
        moved = [(*flip, "better") for flip in flips.better] + [(*flip, "worse") for flip in flips.worse]
        yield _table(("item", "old", "new", ""), [[item, f"{a:.3g}", f"{b:.3g}", word] for item, a, b, word in moved])
    if one.settings:
        yield f"<h2>Settings that differ: {_safe(one.old)} and {_safe(one.new)}</h2>"
        yield _table(("setting", one.old, one.new), [[row.name, row.old, row.new] for row in one.settings])
    if one.text:
        marked = []
        for line in one.text.splitlines():
            tag = "ins" if line.startswith("+") else "del" if line.startswith("-") else ""
            marked.append(f"<{tag}>{_safe(line)}</{tag}>" if tag else _safe(line))
        yield "<h2>Trained text</h2><pre>" + "\n".join(marked) + "</pre>"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    top = "".join(f"<th>{_safe(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{_safe(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{top}</tr>{body}</table>"


def _safe(words: str) -> str:
    return safe(str(words))


def finite(value: Any) -> Any:
    """A value for JSON, which knows no infinite numbers."""
    if isinstance(value, dict):
        return {key: finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
