"""The update modes: how changes are asked for, and how they become a new candidate.

`patch` asks for exact edits and applies them. `rewrite_from_suggestions` asks for suggestions and has one rewriting written
from those that were selected. `full_rewrite_minibatch` asks each reader for a whole rewriting; nothing is clipped there.
"""

from __future__ import annotations

from dataclasses import dataclass

from sharpen.trainers.reflact import answers


@dataclass(frozen=True)
class Mode:
    name: str
    reflection: type[answers.Reflection]
    merge: type[answers.Changes]
    how_to_answer: str
    """The prompt that says how changes are written."""
    clipped: bool = True
    """Whether the edit budget limits how many changes are made."""


MODES = {
    mode.name: mode
    for mode in (
        Mode("patch", answers.EditReflection, answers.Edits, "answer_edits"),
        Mode("rewrite_from_suggestions", answers.SuggestionReflection, answers.Suggestions, "answer_suggestions"),
        Mode("full_rewrite_minibatch", answers.RewriteReflection, answers.Rewritten, "answer_rewrite", clipped=False),
    )
}
