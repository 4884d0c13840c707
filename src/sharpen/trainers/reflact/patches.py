"""What the stages hand each other: patches (edits that belong together), and the two kinds of attempts they rest on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sharpen.core.digest import Json
from sharpen.skill.edits import Edit


@dataclass(frozen=True)
class Patch:
    """Edits that were proposed together. `support` counts the attempts that speak for it."""

    edits: tuple[Edit, ...]
    source: str
    reason: str = ""
    support: int = 1

    @property
    def key(self) -> tuple[str, ...]:
        """Identity by effect."""
        return tuple(edit.key for edit in self.edits)

    def record(self) -> dict[str, Json]:
        return {
            "source": self.source,
            "reason": self.reason,
            "support": self.support,
            "edits": [edit.record() for edit in self.edits],
        }


def unite(edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """Edits that do the same become one with the support of all, in order of first appearance."""
    united: dict[str, Edit] = {}
    for edit in edits:
        same = united.get(edit.key)
        if same is None:
            united[edit.key] = edit
        else:
            items = tuple(dict.fromkeys([*same.items, *edit.items]))
            united[edit.key] = replace(same, support=same.support + edit.support, items=items)
    return tuple(united.values())
