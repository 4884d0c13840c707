"""A comparison as files: everything as JSON, the rows as CSV, and one page of HTML that needs nothing else."""

from __future__ import annotations

import csv
import dataclasses
import html
import io
import math
from collections.abc import Iterable, Sequence
from typing import Any

from sharpen.bench.comparison.assembly import Compared
from sharpen.bench.comparison.differences import ArmCost
from sharpen.core.digest import Json
from sharpen.core.redact import redact
from sharpen.report.comparison import cells, family, level, money, number, p_value, sentence
from sharpen.report.text import NOTHING, count, signed

SCHEMA_VERSION = 1

_COLUMNS = (
    "task", "old", "new", "measure", "over", "paired", "n_old", "n_new", "mean_old", "mean_new", "effect", "low", "high",
    "interval", "p", "test", "p_adjusted", "p_t", "d", "hedges_g", "d_z", "cliffs_delta", "win_share", "prob_higher",
    "correlation", "verdict", "exploratory",
)  # fmt: skip

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


def as_json(found: Sequence[Compared]) -> dict[str, Json]:
    """All there is, with infinite numbers as null."""
    comparisons = [{**finite(dataclasses.asdict(one)), "sentence": sentence(one)} for one in found]
    return {"schema_version": SCHEMA_VERSION, "family": family(found), "comparisons": comparisons}


def as_csv(found: Sequence[Compared]) -> str:
    """A row per task and pair of arms, and one for all tasks."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for one in found:
        start = (one.old, one.new, one.measure.words)
        for row in one.rows:
            said: list[Any] = [row.task, *start, row.over, row.paired, row.n_old, row.n_new]
            if row.result is None:
                writer.writerow([*said, "", "", row.effect])
                continue
            result = row.result
            said += [result.old.value, result.new.value, result.effect.value, result.effect.low, result.effect.high]
            said += [result.effect.method, result.test.p, result.test.method, row.adjusted, result.p_t, result.d]
            said += [
                result.hedges_g,
                result.d_z,
                result.cliffs_delta,
                result.win_share,
                result.better,
                result.correlation,
            ]
            writer.writerow(["" if cell is None else cell for cell in (*said, one.verdict, row.exploratory)])
        if one.pooled is not None:
            effect = one.pooled.effect
            said = [
                "all tasks",
                *start,
                "tasks",
                "",
                "",
                "",
                "",
                "",
                effect.value,
                effect.low,
                effect.high,
                effect.method,
            ]
            writer.writerow([*said, one.pooled.p, "t", one.adjusted, *[""] * 8, one.verdict, one.exploratory])
    return redact(out.getvalue())


def as_page(found: Sequence[Compared], picture: str = "") -> str:
    """One page, self-contained. `picture` is an SVG."""
    parts = ["<h1>Comparison</h1>"]
    parts += [f'<p class="verdict {one.verdict}">{_safe(sentence(one))}</p>' for one in found]
    warnings = dict.fromkeys(warning for one in found for warning in one.warnings)
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
            effect = one.pooled.effect
            low, high = number(effect.low, sign=True), number(effect.high, sign=True)
            figures = [
                number(effect.value, sign=True),
                f"[{low}, {high}]",
                p_value(one.pooled.p),
                p_value(one.adjusted),
            ]
            rows.append(["all tasks", one.old, one.new, "", "", *figures, str(effect.n), "", ""])
    parts += [
        f"<h2>{_safe(found[0].measure.words)}</h2>",
        _table(head, rows),
        f"<p>{_safe(family(found))}</p>",
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
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
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
    return html.escape(str(words))


def finite(value: Any) -> Any:
    """A value for JSON, which knows no infinite numbers."""
    if isinstance(value, dict):
        return {key: finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
