"""Several arms against one baseline at once: Westfall and Young's max-t, and intervals that hold together.

Arms that meet the same baseline on the same seeds go together, which Holm's rule can't use. Here the signs of a seed
are turned for all arms at once. It takes the same pairs in every comparison, on one task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sharpen.bench.comparison.rows import Row
from sharpen.core.errors import UsageError
from sharpen.stats.multiple import max_t

HOLM, MAX_T = ADJUSTMENTS = ("holm", "max-t")


def adjust_together(rows: Sequence[Row], level: float, alpha: float, resamples: int) -> list[Row]:
    """The rows with their p adjusted for all of them, and intervals that hold together, which leave 0 out exactly where the
    adjusted p is at most alpha."""
    names = [tuple(value.name for value in row.values) for row in rows]
    if any(row.result is None or not row.paired for row in rows) or len(set(names)) > 1:
        raise UsageError(
            "--adjust max-t takes arms that are paired with one baseline on the same seeds or items of one task; leave it "
            "out, or leave out the runs that only some arms have"
        )
    differences = [[value.new - value.old for value in row.values if value.old is not None and value.new is not None]
                   for row in rows]  # fmt: skip
    found = max_t(differences, level, resamples=resamples)
    made = []
    for row, p, low, high in zip(rows, found.p, found.low, found.high, strict=True):
        assert row.result is not None and row.p is not None
        adjusted = max(p, row.p)
        if adjusted > alpha:
            low, high = min(low, 0.0), max(high, 0.0)
        elif low <= 0.0 <= high:
            adjusted = min(1.0, alpha * (1 + 1e-9))
        effect = replace(row.result.effect, low=low, high=high, method="simultaneous, max-t")
        made.append(replace(row, adjusted=adjusted, result=replace(row.result, effect=effect)))
    return made
