"""Stage 5, update: make the chosen changes; refuse what changes nothing, gives val or test items away, or was tried.

Edits are applied as they are. From suggestions the optimizer writes a new document, and a rewriting is one already; in both
the protected regions are put back by us, so they survive whatever was written.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace

from sharpen.core.candidate import Candidate
from sharpen.core.digest import Json
from sharpen.skill import kinds
from sharpen.skill.edits import Limits, Revision, Status, apply
from sharpen.skill.leaks import Leak, LeakIndex
from sharpen.skill.protected import restored
from sharpen.trainers.reflact.answers import Rewritten
from sharpen.trainers.reflact.desk import Desk
from sharpen.trainers.reflact.patches import Change, Patch, Rewriting, Suggestion


@dataclass(frozen=True)
class Update:
    """A patch applied. `refusal` names why it may not go to the gate: no_change, no_rewrite, leak or tried; None when it
    may."""

    patch: Patch
    revision: Revision
    leaks: tuple[Leak, ...] = ()
    tried: bool = False
    """Whether an earlier step put the same candidate forward."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """The parts that were rewritten as a whole."""
    problem: str = ""
    """Why a rewriting could not be used."""

    @property
    def candidate(self) -> Candidate:
        return self.revision.after

    @property
    def refusal(self) -> str | None:
        if self.problem:
            return "no_rewrite"
        if not self.revision.changed:
            return "no_change"
        if self.leaks:
            return "leak"
        return "tried" if self.tried else None

    @property
    def applied(self) -> tuple[Change, ...]:
        """The changes that were made."""
        left_out = {id(edit) for edit, _ in self.not_applied}
        return tuple(change for change in self.patch.edits if id(change) not in left_out)

    @property
    def not_applied(self) -> list[tuple[Change, str]]:
        """The edits that could not be made, each with the reason."""
        rows = [row for row in self.revision.rows if row.status is not Status.APPLIED]
        return [(self.patch.exact[row.index], row.message) for row in rows]

    @property
    def why(self) -> str:
        """The refusal in words."""
        if self.leaks:
            return f"holds the answer of an item of {self.leaks[0].split}"
        if self.tried:
            return "an earlier step put the same text forward"
        return self.problem or "; ".join(dict.fromkeys(why for _, why in self.not_applied)) or "changes nothing"


def update(current: Candidate, patch: Patch, limits: Limits, leaks: LeakIndex, seen: Set[str]) -> Update:
    """Make a patch's changes within the limits, and check the result for leaks and for having been `seen` (by digest)."""
    rewriting = next((change for change in patch.edits if isinstance(change, Rewriting)), None)
    if rewriting is not None:
        return _rewritten(current, patch, rewriting, limits, leaks, seen)
    revision = apply(current, patch.exact, limits)
    if not revision.changed:
        return Update(patch, revision)
    return Update(patch, revision, tuple(leaks.find(current, revision.after)), revision.after.digest in seen)


def _rewritten(
    current: Candidate, patch: Patch, rewriting: Rewriting, limits: Limits, leaks: LeakIndex, seen: Set[str]
) -> Update:
    unchanged = Revision(current, current, ())
    texts: dict[str, str] = {}
    for name, text in rewriting.texts.items():
        part = name or current.main
        if part not in current.parts:
            return Update(patch, unchanged, problem=f"there is no part {part!r}")
        texts[part] = restored(text, current[part])
        broken = kinds.problem(part, texts[part])
        if broken is not None:
            return Update(patch, unchanged, problem=broken)
    after = Candidate({**current.parts, **texts})
    if limits.max_length is not None and after.length > max(limits.max_length, current.length):
        return Update(patch, unchanged, problem=f"{after.length} characters are more than {limits.max_length}")
    changed = {part: text for part, text in texts.items() if text != current[part]}
    found = tuple(leaks.find(current, after)) if changed else ()
    return Update(patch, Revision(current, after, ()), found, after.digest in seen, changed)


async def write_from_suggestions(desk: Desk, step: int, number: int, patch: Patch, shown: dict[str, Json]) -> Patch:
    """The patch with its suggestions carried out: one rewriting in their place, or nothing where none was written."""
    suggestions = [change for change in patch.edits if isinstance(change, Suggestion)]
    if not suggestions:
        return patch
    data = {"stage": "rewrite", **shown, "suggestions": [suggestion.record() for suggestion in suggestions]}
    answer = await desk.ask(["rewrite", "answer_rewrite"], data, Rewritten, ("rewrite", step, number))
    if answer.error is not None:
        return replace(patch, edits=())
    written: Rewritten = answer.value
    return replace(patch, edits=written.changes(patch.source, patch.support), reason=written.summary or patch.reason)
