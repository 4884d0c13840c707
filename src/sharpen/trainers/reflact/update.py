"""Stage 5, update: apply the chosen edits, refuse what changes nothing or gives val or test items away."""

from __future__ import annotations

from dataclasses import dataclass

from sharpen.core.candidate import Candidate
from sharpen.skill.edits import Limits, Revision, apply
from sharpen.skill.leaks import Leak, LeakIndex
from sharpen.trainers.reflact.patches import Patch


@dataclass(frozen=True)
class Update:
    """A patch applied. `refusal` names why it may not go to the gate: no_change or leak; None when it may."""

    patch: Patch
    revision: Revision
    leaks: tuple[Leak, ...]

    @property
    def candidate(self) -> Candidate:
        return self.revision.after

    @property
    def refusal(self) -> str | None:
        if not self.revision.changed:
            return "no_change"
        return "leak" if self.leaks else None


def update(current: Candidate, patch: Patch, limits: Limits, leaks: LeakIndex) -> Update:
    """Apply a patch within the limits and check the result for leaks."""
    revision = apply(current, patch.edits, limits)
    return Update(patch, revision, tuple(leaks.find(current, revision.after)) if revision.changed else ())
