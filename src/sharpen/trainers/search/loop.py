"""The one loop of all searches: explore, propose, admit, validate, merge, sort out, step after step; then the finalists.

What makes a search is its `Plan`: whom to explore, who is let in, on which val items members are measured, who stays. What
is here is the order of things, the same for all.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from sharpen.core.candidate import Candidate
from sharpen.core.errors import BudgetExhausted
from sharpen.core.task import Splits
from sharpen.engine.evaluation import Group
from sharpen.engine.events import BudgetEnded
from sharpen.engine.job import Job
from sharpen.trainers.base import Effort, Ground, Trained
from sharpen.trainers.reflact.rollout import attempts_of, items_of_step, steps_per_epoch
from sharpen.trainers.search import novelty
from sharpen.trainers.search.acceptance import Admission
from sharpen.trainers.search.arena import Arena, Pairs
from sharpen.trainers.search.course import CourseTrainer
from sharpen.trainers.search.effort import most
from sharpen.trainers.search.events import Admitted, Crossed, Explored, Offered
from sharpen.trainers.search.merging import cross
from sharpen.trainers.search.params import PoolParams, SearchParams
from sharpen.trainers.search.plan import Plan
from sharpen.trainers.search.pool import Member
from sharpen.trainers.search.proposing import Child, Wish, Workshop, check_proposing

_ENDINGS = {"accept": "goes on", "kept_in_pool": "stays in the pool", "reject": "others did better on val"}


class Search(CourseTrainer):
    """A trainer that carries a plan out. Subclasses say which."""

    Params = SearchParams
    params: SearchParams

    def plan(self, train: int) -> Plan:
        """What these settings come to, for so many train items."""
        raise NotImplementedError

    def check(self, splits: Splits, initial: Candidate, roles: Collection[str]) -> None:
        super().check(splits, initial, roles)
        check_proposing(self.params, optimizer="optimizer" in roles)
        self.plan(len(splits.train)).admitting(self.params.metric, splits.val)

    def effort(self, ground: Ground) -> Effort:
        return most(self.plan(ground.train), self.params, ground)

    async def train(self, job: Job) -> Trained:
        search = _Search(job, self.params, self.plan(len(job.splits.train)))
        arena, plan = search.arena, search.plan
        search.open()
        out_of_budget = False
        try:
            await arena.begin()
            for step in range(1, plan.steps + 1):
                arena.reserve()
                await search.take(step)
        except BudgetExhausted as error:
            job.emit(BudgetEnded(str(error)))
            out_of_budget = True
        out_of_budget = not await arena.close() or out_of_budget
        final = arena.pool.newest.candidate if plan.walk else None
        return arena.course.trained(final, out_of_budget=out_of_budget)


class PoolSearch(Search):
    """A search with a pool and the settings that go with it. Subclasses give their policies."""

    Params = PoolParams
    params: PoolParams

    def policies(self) -> Plan:
        raise NotImplementedError

    def plan(self, train: int) -> Plan:
        given = self.params
        return replace(
            self.policies(),
            acceptance=given.acceptance,
            gate_params=given.gate_params,
            proposals=given.num_proposals,
            finalists=given.finalists,
        )


class _Search:
    """One search under way."""

    def __init__(self, job: Job, params: SearchParams, plan: Plan) -> None:
        self.job, self.params, self.plan = job, params, plan
        self.arena = Arena(job, params, plan)
        self.workshop = Workshop(job, params, params.edit_budget)
        self.acceptance = plan.admitting(self.arena.course.metric, self.arena.course.val.deciding)
        self.items_per_step = params.batch_size * plan.batches
        self.per_epoch = steps_per_epoch(len(job.splits.train), self.items_per_step)
        self.merges = plan.merge_every if len(job.initial.parts) > 1 else 0
        self.crossed: set[frozenset[int]] = set()

    def open(self) -> None:
        remarks = []
        if self.plan.merge_every and not self.merges:
            remarks.append("merge_every is left out: the skill has one part, so there is nothing to merge")
        items = min(self.items_per_step, len(self.job.splits.train))
        self.arena.course.open(self.plan.steps, self.per_epoch, items, remarks)

    async def take(self, step: int) -> None:
        """One step, from whom it builds on to who stays."""
        chosen = self.plan.selection.choose(self.arena.view(step), self.job.rng("select", step))
        wishes = await self.explore(step, chosen)
        children, action = await self.propose(step, wishes)
        admissions = await self.admit(step, children)
        born = await self.validate(step, chosen, admissions)
        if self.merges and step % self.merges == 0:
            await self.merge(step)
        effects = {self.arena.pool[number].candidate: self.arena.beside_parent(number) for number in born}
        self.arena.sort_out(step)
        kept = [self.arena.pool[number] for number in born if number in self.arena.pool]
        best = self.arena.best_of(kept)
        self.workshop.settle(children, [member.candidate for member in kept], step)
        if admissions:
            action = self.action(best)
            shown = admissions[0] if best is None else born[best.number]
            self.show(step, action, shown, effects.get(shown.child.candidate, []))
        self.tell(step, action, wishes[0], best)

    async def explore(self, step: int, chosen: Sequence[int]) -> list[Wish]:
        """Let each parent attempt the step's train items, batch by batch."""
        job, arena = self.job, self.arena
        parents = [arena.pool[number] for number in chosen]
        job.emit(
            Explored(
                step,
                len(parents),
                [[m.number, m.candidate.digest, m.mean(arena.deciding), m.rollouts, m.explored] for m in parents],
            )
        )
        items, size = items_of_step(job, step, self.items_per_step), self.params.batch_size
        batches = [items[start : start + size] for start in range(0, len(items), size)]
        pairs = [(parent, batch) for parent in parents for batch in batches]
        with job.stage(step, "rollout"):
            measured = await job.measure([Group(m.candidate, batch) for m, batch in pairs], purpose="train")
        job.progress.score = measured[0].mean
        arena.pool = arena.pool.visited(chosen, step)
        for (parent, _), found in zip(pairs, measured, strict=True):
            arena.note(parent.number, found)
        wanted = self.plan.proposals * (self.plan.share or len(parents)) * len(batches)
        counts = _dealt(wanted, len(pairs))
        return [
            Wish(arena.pool[parent.number], attempts_of(found, len(found.items)), count)
            for (parent, _), found, count in zip(pairs, measured, counts, strict=True)
        ]

    async def propose(self, step: int, wishes: Sequence[Wish]) -> tuple[list[Child], str]:
        """The children that may go on, and what to call the step where there are none."""
        if not any(wish.attempts.failures for wish in wishes):
            return [], "skip_no_failures"
        with self.job.stage(step, "reflect"):
            proposals = await self.workshop.propose(wishes)
        children = self._novel(proposals.children)
        usable = [child for child in children if child.refusal is None]
        self.job.emit(Offered(step, len(usable), [child.record() for child in children], proposals.lost))
        return usable, f"skip_{children[0].refusal}" if children else "skip_no_edits"

    async def admit(self, step: int, children: Sequence[Child]) -> list[Admission]:
        """Ask who of the children may be measured on val."""
        if not children:
            return []
        with self.job.stage(step, "gate"):
            found = await self.acceptance.admit(self.job, step, children)
        rows = [admission.record() for admission in found]
        self.job.emit(Admitted(step, self.acceptance.name, sum(admission.admitted for admission in found), rows))
        return found

    async def validate(self, step: int, chosen: Sequence[int], admissions: Sequence[Admission]) -> dict[int, Admission]:
        """Take those who were let in into the pool, and measure them; the parents too, where the yardstick says so."""
        arena, born = self.arena, {}
        for admission in admissions:
            if admission.admitted:
                arena.pool = arena.pool.added(admission.child.candidate, [admission.child.parent.number], step)
                born[arena.pool.newest.number] = admission
                if admission.tried is not None:
                    arena.note(arena.pool.newest.number, admission.tried)
        wanted = [*(chosen if self.plan.yardstick.parents else ()), *born]
        if wanted:
            with self.job.stage(step, "validate"):
                await arena.measure(wanted, step)
        return born

    async def merge(self, step: int) -> None:
        """Try the parts of two members together; the result stays if it does better than both."""
        arena = self.arena
        found = cross(arena.pool, self.crossed, self.workshop.seen, self.job.rng("merge", step))
        if found is None:
            self.job.emit(Crossed(step, [], None, None, None, False))
            return
        parents = [found.one.number, found.other.number]
        self.crossed.add(frozenset(parents))
        self.workshop.seen.add(found.candidate.digest)
        without = arena.pool
        arena.pool = arena.pool.added(found.candidate, parents, step)
        with self.job.stage(step, "merge"):
            await arena.measure([arena.pool.newest.number], step)
        score, *rivals = (arena.pool[number].mean(arena.ruler) for number in (arena.pool.newest.number, *parents))
        stays = score is not None and all(rival is None or score > rival for rival in rivals)
        if not stays:
            arena.pool = replace(without, born=arena.pool.born)
        best = max((rival for rival in rivals if rival is not None), default=None)
        self.job.emit(Crossed(step, parents, found.candidate.digest, score, best, stays))

    def action(self, best: Member | None) -> str:
        """What became of a step with children, going by the best of those who are still there."""
        if best is None:
            return "reject"
        return "accept" if self.plan.walk or best.candidate == self.arena.course.best else "kept_in_pool"

    def show(self, step: int, action: str, shown: Admission, effect: Pairs) -> None:
        """Show the changes of the step's best child, and say why it stays or not, where no gate has said so."""
        child, tried = shown.child, 0 if shown.tried is None else len(shown.tried.items)
        self.job.emit(child.revised(step))
        if not self.plan.by_gate:
            why = f"{shown.why}; {_ENDINGS[action]}" if shown.admitted else shown.why
            how, pair = self.plan.acceptance, (child.candidate, child.parent.candidate)
            self.arena.course.decided(step, how, *pair, (action != "reject", why), effect, len(effect) + tried)

    def tell(self, step: int, action: str, first: Wish, best: Member | None) -> None:
        """Say how the step ended."""
        current = first.parent if best is None else best
        epoch, score = 1 + (step - 1) // self.per_epoch, current.mean(self.arena.deciding)
        self.arena.course.tell(step, action, current.candidate, score, epoch=epoch, batch=first.attempts.evaluation)

    def _novel(self, children: Sequence[Child]) -> list[Child]:
        """The children, those marked that are too near to what is there."""
        if self.plan.epsilon is None:
            return list(children)
        usable = [child.candidate for child in children if child.refusal is None]
        kept = novelty.novel(usable, [member.candidate for member in self.arena.pool], self.plan.epsilon)
        dull = {candidate for number, candidate in enumerate(usable) if number not in kept}
        return [replace(child, not_novel=child.candidate in dull) for child in children]


def _dealt(total: int, hands: int) -> list[int]:
    """`total` dealt out over so many hands, the first ones getting what is left over."""
    return [total // hands + (hand < total % hands) for hand in range(hands)]
