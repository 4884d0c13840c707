"""The contract of a proposer that needs no optimizer model: from what is known at a step to alternatives worth trying.

A proposer is pure. It sees the current candidate, the attempts of the step's batch, train examples and what was tried
before, draws from the stream it is given and from nothing else, and returns proposals. Proposals of one step are
alternatives: each is made for the current candidate, and each applies to it in full (`offered` sees to that), so any one of
them can be tried as it is. Which are tried, merged or dropped is the loop's business. Val and test items never reach a
proposer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from sharpen.core.candidate import Candidate
from sharpen.core.item import Item
from sharpen.core.rng import Stream
from sharpen.core.task import Brief
from sharpen.skill.document import Region
from sharpen.skill.edits import DEFAULT_LIMITS, Edit, Limits, apply


@dataclass(frozen=True, slots=True)
class Attempted:
    """One scored attempt at a train item. `example` is the item as a worked example, where it can be one."""

    item: Item
    example: tuple[str, str] | None
    answer: str
    hard: float
    soft: float
    feedback: str = ""


@dataclass(frozen=True, slots=True)
class Shot:
    """A train item that may become a worked example."""

    item_id: str
    input: str
    output: str
    type: str = "default"


@dataclass(frozen=True, slots=True)
class Tried:
    """A proposal of an earlier step: what it changed, the digest of the candidate it made, and what became of it."""

    edits: tuple[Edit, ...]
    digest: str
    accepted: bool
    step: int = 0


@dataclass(frozen=True)
class View:
    """All a proposer may know. `budget` is the most edits one proposal may have; steps count
    from 1; `rng` belongs to this call alone."""

    candidate: Candidate
    rng: Stream
    brief: Brief = field(default_factory=Brief)
    failures: tuple[Attempted, ...] = ()
    successes: tuple[Attempted, ...] = ()
    pool: tuple[Shot, ...] = ()
    history: tuple[Tried, ...] = ()
    budget: int = 4
    step: int = 1
    limits: Limits = DEFAULT_LIMITS


@dataclass(frozen=True, slots=True)
class Proposal:
    """Edits that belong together, why, how many attempts speak for them, and who made them."""

    edits: tuple[Edit, ...]
    reason: str
    support: int
    source: str


class Proposer(Protocol):
    @property
    def name(self) -> str: ...
    def propose(self, view: View) -> list[Proposal]: ...


def offered(view: View, proposals: Iterable[Proposal], most: int) -> list[Proposal]:
    """The first `most` proposals that apply in full, change something, and make a candidate not seen before."""
    seen = {view.candidate.digest, *(tried.digest for tried in view.history)}
    result: list[Proposal] = []
    for proposal in proposals:
        if len(result) == most:
            break
        if not 0 < len(proposal.edits) <= view.budget:
            continue
        revision = apply(view.candidate, proposal.edits, view.limits)
        if revision.complete and revision.after.digest not in seen:
            seen.add(revision.after.digest)
            result.append(proposal)
    return result


def rejections(view: View) -> Counter[str]:
    """How often each content (for a deletion: each target) was in a proposal that was turned down."""
    return Counter(edit.content or edit.target for tried in view.history if not tried.accepted for edit in tried.edits)


def unique(text: str, start: int, end: int) -> str | None:
    """A target that stands exactly once and means [start, end): the text itself, or with the newlines around it. Made for
    insertions and deletions, to which newlines around a target mean nothing."""
    for first, last in ((start, end), (start, end + 1), (start - 1, end), (start - 1, end + 1)):
        target = text[max(0, first) : last]
        if target.strip("\n") == text[start:end].strip("\n") and text.count(target) == 1:
            return target
    return None


def is_free(protected: tuple[Region, ...], start: int, end: int) -> bool:
    return not any(region.touches(start, end) for region in protected)
