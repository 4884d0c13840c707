"""One number, which should be 3 and starts at 0: the smallest training there is.

The items differ in how far off the number may be before nothing is left of the score.
"""

from __future__ import annotations

from collections.abc import Mapping

from sharpen.core.item import Item
from sharpen.core.task import Brief
from sharpen.skill.kinds import Number
from sharpen.tasks.internal.numbers import NumbersTask, Verdict, closeness

TARGET = 3.0


class NumericParam(NumbersTask):
    name = "numeric-param"
    brief = Brief("Find the one number that every item is satisfied with.")
    starts: Mapping[str, Number] = {"value": Number(0.0, -10.0, 10.0)}

    def items(self) -> list[Item]:
        return [Item(f"width-{n}", {"width": round(4 + n / 40, 3)}) for n in range(sum(self.sizes))]

    def judge(self, item: Item, values: Mapping[str, float]) -> Verdict:
        off = values["value"] - TARGET
        feedback = f"{abs(off):g} too {'high' if off > 0 else 'low'}" if off else ""
        return Verdict(closeness(off, float(item.inputs["width"])), feedback, {"distance": abs(off)})
