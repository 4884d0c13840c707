"""What the stages hand each other: changes, and patches of changes that belong together.

A change is an exact edit, a suggestion for whoever rewrites the document, or a whole rewriting; which of them, the update
mode says. All three know what they come to (`key`), how many attempts speak for them, and the form they are kept in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from sharpen.core.digest import Json, digest
from sharpen.skill.edits import Edit


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What a rewriting of the document should do."""

    kind: str
    title: str
    instruction: str
    motivation: str = ""
    support: int = 1
    source: str = ""
    items: tuple[str, ...] = field(default=())

    @property
    def key(self) -> str:
        return digest([self.kind, self.title, self.instruction])

    def record(self) -> dict[str, Json]:
        return {
            "kind": self.kind,
            "title": self.title,
            "instruction": self.instruction,
            "motivation": self.motivation,
            "support": self.support,
            "source": self.source,
        }


@dataclass(frozen=True, slots=True)
class Rewriting:
    """New texts of whole parts (`""`: the main part), as the optimizer wrote them: signs stand for protected regions."""

    texts: Mapping[str, str]
    summary: str = ""
    support: int = 1
    source: str = ""
    items: tuple[str, ...] = field(default=())

    @property
    def key(self) -> str:
        return digest(dict(self.texts))

    def record(self) -> dict[str, Json]:
        return {
            "texts": dict(self.texts),
            "summary": self.summary,
            "support": self.support,
            "source": self.source,
        }


Change: TypeAlias = Edit | Suggestion | Rewriting


@dataclass(frozen=True)
class Patch:
    """Changes that were proposed together. `support` counts the attempts that speak for it."""

    edits: tuple[Change, ...]
    source: str
    reason: str = ""
    support: int = 1

    @property
    def key(self) -> tuple[str, ...]:
        """Identity by effect."""
        return tuple(edit.key for edit in self.edits)

    @property
    def exact(self) -> tuple[Edit, ...]:
        """Its edits in the narrow sense: what can be applied as it stands."""
        return tuple(edit for edit in self.edits if isinstance(edit, Edit))

    def record(self) -> dict[str, Json]:
        return {
            "source": self.source,
            "reason": self.reason,
            "support": self.support,
            "edits": [edit.record() for edit in self.edits],
        }


def unite(edits: Sequence[Change]) -> tuple[Change, ...]:
    """Changes that do the same become one with the support of all, in order of first appearance."""
    united: dict[str, Change] = {}
    for edit in edits:
        same = united.get(edit.key)
        if same is None:
            united[edit.key] = edit
        else:
            items = tuple(dict.fromkeys([*same.items, *edit.items]))
            united[edit.key] = replace(same, support=same.support + edit.support, items=items)
    return tuple(united.values())
