"""How many edits a step may make: constant, or falling linearly or along a cosine from `most` to `least`."""

from __future__ import annotations

import math


def edit_budget(schedule: str, step: int, steps: int, *, most: int, least: int) -> int:
    """The budget of `step` (counted from 1) of `steps`. The first step has the full budget, the last the least."""
    if schedule == "constant" or steps <= 1:
        return most
    progress = (min(step, steps) - 1) / (steps - 1)
    if schedule == "linear":
        exact = most + (least - most) * progress
    elif schedule == "cosine":
        exact = least + 0.5 * (most - least) * (1 + math.cos(math.pi * progress))
    else:
        raise ValueError(f"unknown schedule {schedule!r}")
    return max(least, math.floor(exact + 0.5))
