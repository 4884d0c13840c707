"""Several aims side by side: what each came to before and after, and the candidates between which only taste can choose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from sharpen.report import text

_MOST_ROWS = 12
_NAMES = {"initial": "before", "best": "after (best)", "final": "after (last)"}
_BETTER = {"max": "higher is better", "min": "lower is better"}


def tested(found: Mapping[str, Any] | None) -> Table | None:
    """The mean of each objective on test, for each candidate that was tested."""
    if found is None or not found["test"]:
        return None
    made = _table([""], found["stated"])
    for which, means in found["test"].items():
        made.add_row(_NAMES.get(which, which), *_cells(means, found["stated"]))
    return made


def front(found: Mapping[str, Any] | None) -> Iterator[Text | Table]:
    """Those whom nobody beats on val, the best in the first objective first."""
    if found is None or not found["front"]:
        return
    stated, rows = found["stated"], list(found["front"])
    first, sign = next(iter(stated)), -1 if next(iter(stated.values()))[0] == "max" else 1
    rows.sort(key=lambda row: sign * row["means"][first])
    yield Text(f"\n{_sentence(found)}")
    whose = ["arm", "seed"] if "arm" in rows[0] else []
    made = _table(["candidate", *whose, "step"], stated, "items")
    for row in rows[:_MOST_ROWS]:
        about = (row["candidate"][:12], *(str(row[name]) for name in whose), str(row["step"]))
        made.add_row(*about, *_cells(row["means"], stated), text.count(row["n"]))
    if len(rows) > _MOST_ROWS:
        made.add_row(f"… and {len(rows) - _MOST_ROWS} more", style="dim")
    yield made


def _sentence(found: Mapping[str, Any]) -> str:
    size, volume = len(found["front"]), found["hypervolume"]
    covered = "" if volume is None else f"; hypervolume {volume:.3f}"
    return f"Pareto front on val: {size} of {text.plural(found['compared'], 'candidate')} that were compared{covered}."


def _table(left: list[str], stated: Mapping[str, Any], *right: str) -> Table:
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in left:
        made.add_column(f"\n{name}")
    for name, (direction, *_) in stated.items():
        made.add_column(f"{name}\n{_BETTER[direction]}", justify="right")
    for name in right:
        made.add_column(f"\n{name}", justify="right")
    return made


def _cells(means: Mapping[str, float], stated: Mapping[str, Any]) -> list[str]:
    return [f"{means[name]:.4g}" if name in means else text.NOTHING for name in stated]
