"""The shapes of the optimizer's answers. Every one is validated; what does not fit is asked for once more, then given up."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from sharpen.skill.edits import Edit, Op


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore")


class EditAnswer(_Answer):
    op: Op
    target: str = ""
    content: str = ""
    part: str | None = None
    support: int = Field(1, ge=0)

    def edit(self, source: str, *, most: int | None = None) -> Edit:
        """The edit meant. Support can't exceed the number of attempts that were read."""
        support = self.support if most is None else min(self.support, most)
        return Edit(self.op, self.content, self.target, self.part, max(support, 1), source)


class Pattern(_Answer):
    pattern: str
    items: list[str] = []


class Reflection(_Answer):
    summary: str = ""
    patterns: list[Pattern] = []
    edits: list[EditAnswer]


class Merged(_Answer):
    summary: str = ""
    edits: list[EditAnswer]


class Ranked(_Answer):
    order: list[int]
