"""Three numbers of one curve, none of which can be judged without the others: `height + slope * x + bend * x * x`.

An item is a place on the curve. The curve that is wanted has height 2, slope -1.5 and bend 0.5; all three start at 1.
"""

from __future__ import annotations

from collections.abc import Mapping

from sharpen.core.item import Item
from sharpen.core.task import Brief
from sharpen.skill.kinds import Number
from sharpen.tasks.internal.numbers import NumbersTask, Verdict, closeness

WANTED: Mapping[str, float] = {"height": 2.0, "slope": -1.5, "bend": 0.5}
_WIDTH = 8.0
"""So far off the curve, a point scores nothing."""


class MultiParam(NumbersTask):
    name = "multi-param"
    brief = Brief("Find the height, slope and bend of the curve that goes through every item.")
    starts: Mapping[str, Number] = dict.fromkeys(WANTED, Number(1.0, -5.0, 5.0))

    def items(self) -> list[Item]:
        many = sum(self.sizes)
        return [Item(f"x-{n}", {"x": round(-3 + 6 * n / (many - 1), 3)}) for n in range(many)]

    def judge(self, item: Item, values: Mapping[str, float]) -> Verdict:
        x = float(item.inputs["x"])
        off = curve(values, x) - curve(WANTED, x)
        feedback = f"at x = {x:g} the curve is {abs(off):.3g} too {'high' if off > 0 else 'low'}" if off else ""
        return Verdict(closeness(off, _WIDTH), feedback, {"distance": abs(off)})


def curve(values: Mapping[str, float], x: float) -> float:
    return values["height"] + values["slope"] * x + values["bend"] * x * x
