"""How long a training still takes, from what it has done so far. Pure arithmetic; the clock is the caller's."""

from __future__ import annotations

from dataclasses import dataclass, field

CLOSING = frozenset({"confirm", "test"})
"""The stages after the last step."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What is known at one moment. `paid` counts calls that were really made, `calls` also those found in the ledger."""

    step: int
    steps: int
    stage: str
    calls: int
    paid: int
    elapsed: float
    open_items: int
    """Rollouts of the measurement under way that are still to come."""
    done: int = 0
    """What is done of it; where a policy is trained, its steps so far."""


@dataclass
class Pace:
    """Remembers at how many calls each step began, and turns that into seconds left."""

    closing_calls: int
    cap: int | None = None
    """The most calls the budget allows."""
    _began: dict[int, int] = field(default_factory=dict)

    def left(self, now: Reading) -> float | None:
        """Seconds left, or None while there is nothing to go by."""
        self._began.setdefault(now.step, now.calls)
        if now.paid == 0:
            return None
        calls = self._calls_left(now)
        if calls is None:
            return None
        if self.cap is not None:
            calls = min(calls, max(0, self.cap - now.calls))
        return calls * now.elapsed / now.paid

    def _calls_left(self, now: Reading) -> int | None:
        if now.stage == "test":
            return now.open_items
        if now.stage == "confirm":
            return max(now.open_items, self.closing_calls)
        finished = now.step - 1
        if finished < 1 or now.step not in self._began:
            return None
        per_step = self._began[now.step] / finished
        rest_of_step = max(0.0, per_step - (now.calls - self._began[now.step]))
        return round(rest_of_step + per_step * max(0, now.steps - now.step) + self.closing_calls)
