"""Two numbers and two losses that pull apart: the six-hump camel function, and the distance from the origin.

The camel function of x and y is lowest, -1.0316, at (0.0898, -0.7126) and at (-0.0898, 0.7126). The second loss, x² + y², is
least at the origin, where the first is 0. So there is a front of points between which only taste can choose. An item is a
place close to the point that is asked for, so what counts is how the losses are around it.
"""

from __future__ import annotations

from collections.abc import Mapping

from sharpen.core.item import Item
from sharpen.core.objective import Objective, weighted
from sharpen.core.rng import Stream
from sharpen.core.task import Brief
from sharpen.skill.kinds import Number
from sharpen.tasks.internal.numbers import NumbersTask, Verdict

LOWEST = -1.0316
_NEARBY = 0.05


class Camel(NumbersTask):
    name = "camel"
    brief = Brief("Find a point with a low value of the six-hump camel function that is not far from the origin.")
    starts: Mapping[str, Number] = {"x": Number(1.6, -2.0, 2.0), "y": Number(1.2, -2.0, 2.0)}
    objectives: Mapping[str, Objective] = {
        "base_loss": Objective("min", 1.0, (LOWEST, 5.0), "the six-hump camel function"),
        "reg_loss": Objective("min", 0.25, (0.0, 8.0), "x² + y²"),
    }

    def items(self) -> list[Item]:
        stream = Stream(0, "camel")
        shifts = ([round((2 * stream.random() - 1) * _NEARBY, 6) for _ in "xy"] for _ in range(sum(self.sizes)))
        return [Item(f"near-{n}", {"dx": dx, "dy": dy}) for n, (dx, dy) in enumerate(shifts)]

    def judge(self, item: Item, values: Mapping[str, float]) -> Verdict:
        x, y = values["x"] + float(item.inputs["dx"]), values["y"] + float(item.inputs["dy"])
        losses = {"base_loss": camel(x, y), "reg_loss": x * x + y * y}
        feedback = ", ".join(f"{name} is {loss:.3g}" for name, loss in losses.items())
        return Verdict(weighted(self.objectives, losses), feedback, losses)


def camel(x: float, y: float) -> float:
    """The six-hump camel function."""
    return (4 - 2.1 * x**2 + x**4 / 3) * x**2 + x * y + (4 * y**2 - 4) * y**2
