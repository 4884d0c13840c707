"""How much evidence each look may ask for, so that all looks of a decision together err with probability alpha.

Under the null hypothesis the signs of the differences are no better than fair coins. `FairWalk` follows such a walk of
coins exactly, from look to look, without the paths that ended: those that were accepted, and those that were given up as
futile. At each look it gives the level at which a plain test may accept. What a look could not spend, because the number of
heads is a whole number, is left to the next ones.
"""

from __future__ import annotations

import math
from typing import Any

from sharpen.gates.bounded_mean import binomial_tail, fair_coins

_WITHIN = (0.05, 0.95)
"""A level lies strictly between the p-values of two neighbouring numbers of heads, so that it takes in one and not both."""


class FairWalk:
    """A walk of fair coins over the looks of one decision."""

    def __init__(self) -> None:
        import numpy as np

        self._alive: Any = np.ones(1)
        """By number of heads, the probability to have come here without an end."""
        self._steps = 0
        self._spent = 0.0

    def look(self, steps: int, allowed: float, futile_below: float | None, *, unit: bool) -> float:
        """The level of a look after so many coins in all. `allowed` is the probability that this and earlier looks may spend
        together. Paths whose heads less tails come to under `futile_below` square roots of the steps end here. `unit`: the
        data are coins too; otherwise the level is that of a test without steps, which spends all it is allowed."""
        import numpy as np

        added = steps - self._steps
        alive = np.convolve(self._alive, fair_coins(added)) if added else self._alive.copy()
        self._steps = steps
        tail = np.cumsum(alive[::-1])[::-1]
        room = max(0.0, allowed - self._spent)
        critical = max(int(np.searchsorted(-tail, -room - 1e-15)), steps // 2 + 1)
        above = float(tail[critical]) if critical <= steps else 0.0
        between = float(tail[critical - 1]) - above if critical <= steps + 1 else 0.0
        share = 0.0 if between <= 0.0 else min(_WITHIN[1], (room - above) / between)
        low, high = binomial_tail(steps, critical), binomial_tail(steps, critical - 1)
        level = low + (max(_WITHIN[0], share) if unit else share) * (high - low)
        alive[critical:] = 0.0
        self._spent += above
        if not unit:
            self._spent += share * float(alive[critical - 1])
            alive[critical - 1] *= 1.0 - share
        if futile_below is not None:
            alive[: max(0, math.ceil((steps + futile_below * math.sqrt(steps)) / 2))] = 0.0
        self._alive = alive
        return level if critical <= steps or not unit else 0.0
