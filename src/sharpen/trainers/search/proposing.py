"""Proposing children: from attempts with a parent to new candidates, by analysts and by proposers, with ReflACT's stages.

Each child is one patch made to its parent within the edit budget. Where several are wanted, every further question to the
analysts shows another half of the failures, so that a model that always answers the same still has different things to
say; ideas of proposers stand between theirs. What changes nothing, gives val or test items away, or was made before in this
search goes no further.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from sharpen.core.candidate import Candidate
from sharpen.core.digest import Json
from sharpen.core.errors import UsageError
from sharpen.engine.executor import together
from sharpen.engine.job import Job
from sharpen.skill.edits import Limits, Revision
from sharpen.skill.leaks import LeakIndex
from sharpen.trainers.reflact import aggregate, select
from sharpen.trainers.reflact.desk import Desk
from sharpen.trainers.reflact.events import Revised
from sharpen.trainers.reflact.modes import MODES
from sharpen.trainers.reflact.params import ProposalParams
from sharpen.trainers.reflact.patches import Patch, Suggestion
from sharpen.trainers.reflact.proposers.base import Tried
from sharpen.trainers.reflact.reflect import Occasion, Reflections, reflect, shown_candidate
from sharpen.trainers.reflact.rollout import Attempts
from sharpen.trainers.reflact.update import Update, update, write_from_suggestions
from sharpen.trainers.search.pool import Member


@dataclass(frozen=True)
class Wish:
    """`count` children of a parent, out of what it made of some train items."""

    parent: Member
    attempts: Attempts
    count: int


@dataclass(frozen=True)
class Child:
    """A proposal that was carried out, or refused."""

    parent: Member
    attempts: Attempts
    update: Update
    not_novel: bool = False

    @property
    def candidate(self) -> Candidate:
        return self.update.candidate

    @property
    def refusal(self) -> str | None:
        return self.update.refusal or ("not_novel" if self.not_novel else None)

    def record(self) -> dict[str, Json]:
        patch = self.update.patch
        return {
            "parent": self.parent.number,
            "candidate": self.candidate.digest,
            "source": patch.source,
            "reason": patch.reason,
            "changes": len(patch.edits),
            "refusal": self.refusal,
        }

    def revised(self, step: int) -> Revised:
        """The event that shows its changes."""
        made = self.update
        edits = [{key: value for key, value in e.record().items() if key != "texts"} for e in made.patch.edits]
        leaks: list[Json] = [[leak.item_id, leak.split, leak.kind, leak.match] for leak in made.leaks]
        report = [row.record() for row in made.revision.rows]
        return Revised(step, self.candidate.digest, edits, report, leaks, dict(made.texts))


@dataclass(frozen=True)
class Proposals:
    """Everything that was proposed, refused ones included, and how many answers were of no use."""

    children: tuple[Child, ...] = ()
    lost: int = 0

    @property
    def usable(self) -> list[Child]:
        return [child for child in self.children if child.refusal is None]


@dataclass(frozen=True)
class _Turn:
    """One look at a parent's attempts; `number` counts the looks of the whole search."""

    number: int
    wish: Wish
    attempts: Attempts


@dataclass
class Workshop:
    """Where children are made. It remembers every candidate of the search, so that none is made twice."""

    job: Job
    params: ProposalParams
    edit_budget: int
    history: list[Tried] = field(default_factory=list)
    _turns: int = 0

    def __post_init__(self) -> None:
        self.desk = Desk(self.job, self.params)
        self.mode = MODES[self.params.update_mode]
        self.limits = Limits(max_length=self.params.max_length, max_change=self.params.max_change)
        self.leaks = LeakIndex(self.job.splits, self.job.task.answers)
        self.seen = {self.job.initial.digest}

    async def propose(self, wishes: Sequence[Wish]) -> Proposals:
        """Children for every wish that has failures to learn from. All questions about attempts are put side by side."""
        turns = [turn for wish in wishes if wish.attempts.failures for turn in self._looks(wish)]
        ideas = await together(*(self._reflect(turn) for turn in turns))
        children: list[Child] = []
        for wish in wishes:
            own = [(turn, found) for turn, found in zip(turns, ideas, strict=True) if turn.wish is wish]
            children += await self._children(wish, own)
        return Proposals(tuple(children), sum(found.lost for found in ideas))

    def settle(self, children: Sequence[Child], kept: Sequence[Candidate], step: int) -> None:
        """Remember what became of these children, for proposers that look back."""
        self.history += [
            Tried(child.update.patch.exact, child.candidate.digest, child.candidate in kept, step) for child in children
        ]

    def _looks(self, wish: Wish) -> list[_Turn]:
        """As many looks as children are wanted from the analysts; one where there are proposers alone."""
        looks = 1
        if self.desk.open:
            looks = -(-wish.count // 2) if self.params.proposers else wish.count
        made = []
        for look in range(looks):
            self._turns += 1
            attempts = wish.attempts if look == 0 else self._half(wish.attempts, self._turns)
            made.append(_Turn(self._turns, wish, attempts))
        return made

    def _half(self, attempts: Attempts, turn: int) -> Attempts:
        batches = []
        for number, batch in enumerate(attempts.batches):
            half = self.job.rng("half", turn, number).sample(batch.failures, -(-len(batch.failures) // 2))
            batches.append(replace(batch, failures=tuple(half)))
        return replace(attempts, batches=tuple(batches))

    async def _reflect(self, turn: _Turn) -> Reflections:
        occasion = Occasion(
            turn.number,
            turn.wish.parent.candidate,
            turn.attempts,
            self.edit_budget,
            tuple(self.history),
            {},
            self.limits,
        )
        return await reflect(self.job, self.desk, occasion, self.params)

    async def _children(self, wish: Wish, looks: Sequence[tuple[_Turn, Reflections]]) -> list[Child]:
        made: list[Child] = []
        usable = 0
        for turn, patch in await self._patches(wish, looks):
            if usable == wish.count:
                break
            child = Child(wish.parent, wish.attempts, await self._update(turn, patch))
            made.append(child)
            if child.refusal is None:
                self.seen.add(child.candidate.digest)
                usable += 1
        return made

    async def _patches(self, wish: Wish, looks: Sequence[tuple[_Turn, Reflections]]) -> list[tuple[_Turn, Patch]]:
        """What analysts came to at each look, and rival ideas of proposers, in turns."""
        firsts: list[tuple[_Turn, Patch]] = []
        rivals: list[tuple[_Turn, Patch]] = []
        for turn, ideas in looks:
            merged = await aggregate.merge_all(
                self.desk, self.mode, turn.number, ideas, self._shown(wish.parent), self.params
            )
            firsts += [] if merged is None else [(turn, merged)]
            found = aggregate.alternatives((), ideas.rivals, most=2 * wish.count, budget=self.edit_budget)
            rivals += [(turn, patch) for patch in found]
        return [entry for pair in zip_longest(firsts, rivals) for entry in pair if entry is not None]

    async def _update(self, turn: _Turn, patch: Patch) -> Update:
        parent = turn.wish.parent
        shown = self._shown(parent)
        limit = self.edit_budget if self.mode.clipped else None
        clipped = await select.clip(self.desk, turn.number, patch, budget=limit, shown=shown)
        if any(isinstance(change, Suggestion) for change in clipped.edits):
            clipped = await write_from_suggestions(self.desk, turn.number, 0, clipped, shown)
            if not clipped.edits:
                unchanged = Revision(parent.candidate, parent.candidate, ())
                return Update(clipped, unchanged, problem="the optimizer wrote no document that can be used")
        return update(parent.candidate, clipped, self.limits, self.leaks, self.seen)

    def _shown(self, parent: Member) -> dict[str, Json]:
        return {**shown_candidate(parent.candidate, self.mode), "memory": {}}


def check_proposing(params: ProposalParams, *, optimizer: bool) -> None:
    """Complain where nobody could propose anything, before anything is paid for."""
    asks = params.analysts and optimizer
    if params.update_mode != "patch" and not asks:
        raise UsageError(
            f"trainer.params.update_mode: {params.update_mode} needs an optimizer model; set models.optimizer"
        )
    if not asks and not params.proposers:
        raise UsageError("nobody proposes anything: set models.optimizer, or name some trainer.params.proposers")
