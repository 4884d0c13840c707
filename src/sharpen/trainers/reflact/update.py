"""Stage 5, update: apply the chosen edits; refuse what changes nothing, gives val or test items away, or was tried."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from sharpen.core.candidate import Candidate
from sharpen.skill.edits import Limits, Revision, apply
from sharpen.skill.leaks import Leak, LeakIndex
from sharpen.trainers.reflact.patches import Patch


@dataclass(frozen=True)
class Update:
    """A patch applied. `refusal` names why it may not go to the gate: no_change, leak or tried; None when it may."""

    patch: Patch
    revision: Revision
    leaks: tuple[Leak, ...] = ()
    tried: bool = False
    """Whether an earlier step put the same candidate forward."""

    @property
    def candidate(self) -> Candidate:
        return self.revision.after

    @property
    def refusal(self) -> str | None:
        if not self.revision.changed:
            return "no_change"
        if self.leaks:
            return "leak"
        return "tried" if self.tried else None


def update(current: Candidate, patch: Patch, limits: Limits, leaks: LeakIndex, seen: Set[str]) -> Update:
    """Apply a patch within the limits, and check the result for leaks and for having been `seen` (by digest) before."""
    revision = apply(current, patch.edits, limits)
    if not revision.changed:
        return Update(patch, revision)
    return Update(patch, revision, tuple(leaks.find(current, revision.after)), revision.after.digest in seen)
