"""An agent that is fixed: it can be evaluated, and every training of it is refused with its reason."""

from __future__ import annotations

from collections.abc import Mapping

from sharpen.core.item import Item
from sharpen.core.task import Brief
from sharpen.skill.kinds import Number
from sharpen.tasks.internal.numbers import NumbersTask, Verdict, closeness


class NonTrainable(NumbersTask):
    name = "non-trainable"
    brief = Brief("Nothing can be trained here: the one number there is stays as it is.")
    untrainable = (
        "its agent is fixed, and no part of it may change; `sharpen eval initial --task non-trainable` scores it"
    )
    starts: Mapping[str, Number] = {"fixed": Number(1.0, 1.0, 1.0)}

    def items(self) -> list[Item]:
        return [Item(f"width-{n}", {"width": 2 + n}) for n in range(sum(self.sizes))]

    def judge(self, item: Item, values: Mapping[str, float]) -> Verdict:
        return Verdict(closeness(values["fixed"] - 2.0, float(item.inputs["width"])), "1 too low")
