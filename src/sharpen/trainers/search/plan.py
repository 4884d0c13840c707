"""What makes a search: its policies and numbers, as a value. The loop carries any such plan out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sharpen.core.digest import Json
from sharpen.core.item import Item
from sharpen.engine.metric import Metric
from sharpen.trainers.search.acceptance import ALWAYS, MINIBATCH, Acceptance, Always, ByGate, Minibatch
from sharpen.trainers.search.retention import Retention
from sharpen.trainers.search.selection import Selection
from sharpen.trainers.search.yardstick import Yardstick


@dataclass(frozen=True)
class Plan:
    """Whom to explore, on which val items to measure, who stays, and who is let in (`acceptance`, with the `gate_params` of
    a gate and the `threshold` of a minibatch)."""

    steps: int
    selection: Selection
    yardstick: Yardstick
    retention: Retention
    acceptance: str = ALWAYS
    gate_params: Mapping[str, Json] = field(default_factory=dict)
    threshold: float = 0.0
    batches: int = 1
    """Batches of train items each parent attempts in a step."""
    proposals: int = 1
    """Children of a parent for each batch."""
    share: int | None = None
    """The children of so many parents are dealt out over those there are; None: every parent has its own."""
    merge_every: int = 0
    epsilon: float | None = None
    """How far a child must be from all members; None: it need not."""
    finalists: int = 1
    walk: bool = False
    """Whether training ends with the newest member, rather than with the best one."""

    @property
    def by_gate(self) -> bool:
        """Whether a gate decides who is let in."""
        return self.acceptance not in (ALWAYS, MINIBATCH)

    def admitting(self, metric: Metric, deciding: Sequence[Item]) -> Acceptance:
        """Who is let in, by which score and on which val items."""
        if self.acceptance == ALWAYS:
            return Always()
        if self.acceptance == MINIBATCH:
            return Minibatch(metric, self.threshold)
        planned = self.steps * self.batches * self.proposals * (self.share or 1)
        return ByGate(self.acceptance, self.gate_params, metric, deciding, planned)
