"""The shapes of the optimizer's answers. Every one is validated; what does not fit is asked for once more, then given up.

How changes are written depends on the update mode: as exact edits, as suggestions, or as rewritten documents. A reflection
is such an answer together with the patterns the reader saw; a merge is one without. `changes` turns either into what the
later stages work with.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from sharpen.skill.edits import Edit, Op
from sharpen.trainers.reflact.patches import Change, Rewriting, Suggestion


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
        return Edit(self.op, self.content, self.target, self.part, _bounded(self.support, most), source)


class SuggestionAnswer(_Answer):
    kind: Literal["add_rule", "remove_rule", "merge_rules", "reorganize", "compress", "clarify"] = "add_rule"
    title: str
    instruction: str
    motivation: str = ""
    support: int = Field(1, ge=0)


class Document(_Answer):
    part: str | None = None
    text: str

    @field_validator("text")
    @classmethod
    def _not_empty(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("a rewritten document must not be empty")
        return text


class Changes(_Answer):
    """Base of every answer that proposes changes."""

    summary: str = ""

    def changes(self, source: str, most: int) -> tuple[Change, ...]:
        raise NotImplementedError


class Edits(Changes):
    edits: list[EditAnswer]

    def changes(self, source: str, most: int) -> tuple[Change, ...]:
        return tuple(edit.edit(source, most=most) for edit in self.edits)


class Suggestions(Changes):
    suggestions: list[SuggestionAnswer]

    def changes(self, source: str, most: int) -> tuple[Change, ...]:
        return tuple(
            Suggestion(s.kind, s.title, s.instruction, s.motivation, _bounded(s.support, most), source)
            for s in self.suggestions
        )


class Rewritten(Changes):
    documents: list[Document]

    def changes(self, source: str, most: int) -> tuple[Change, ...]:
        texts = {document.part or "": document.text for document in self.documents}
        return (Rewriting(texts, self.summary, most, source),) if texts else ()


class Pattern(_Answer):
    pattern: str
    items: list[str] = []


class Reflection(Changes):
    patterns: list[Pattern] = []
    notes: list[str] = []
    """Reminders for rules that the document has and the agent did not follow (skill-aware reflection)."""


class EditReflection(Edits, Reflection):
    pass


class SuggestionReflection(Suggestions, Reflection):
    pass


class RewriteReflection(Rewritten, Reflection):
    pass


class Ranked(_Answer):
    order: list[int]


class BudgetAnswer(_Answer):
    """How many changes the step should make, by the optimizer's own judgement."""

    budget: int = Field(ge=0)
    reasons: str = ""
    confidence: str = ""
    risks: str = ""

    @field_validator("confidence", mode="before")
    @classmethod
    def _in_words(cls, value: object) -> object:
        return str(value) if isinstance(value, int | float) else value


class GuidanceAnswer(_Answer):
    """What the slow update or the meta skill should say from now on."""

    reasons: str = ""
    content: str


class NotesAnswer(_Answer):
    notes: list[str]


def _bounded(support: int, most: int | None) -> int:
    return max(support if most is None else min(support, most), 1)
