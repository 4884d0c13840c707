"""The pool of a search and the val scores its members earn: measuring them, following who leads, and the finalists.

While the search goes on, the leader is who has the highest mean on the deciding val items it was measured on. In the end the
last few standing are measured on all of them, the initial candidate too, and only then one is called the best.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeAlias

from sharpen.core.candidate import Candidate
from sharpen.core.errors import BudgetExhausted
from sharpen.engine.evaluation import Evaluation, Group
from sharpen.engine.events import BudgetEnded
from sharpen.engine.job import Job
from sharpen.trainers.search.course import Course, CourseParams
from sharpen.trainers.search.events import FinalistsMeasured, PoolChanged
from sharpen.trainers.search.plan import Plan
from sharpen.trainers.search.pool import Member, Pool, fronts, leader
from sharpen.trainers.search.selection import View

Pairs: TypeAlias = Sequence[tuple[float, float]]


class Arena:
    def __init__(self, job: Job, params: CourseParams, plan: Plan) -> None:
        self.job, self.plan = job, plan
        self.course = Course(job, params)
        self.deciding = tuple(item.id for item in self.course.val.deciding)
        self.pool = Pool().added(job.initial, (), 0)
        self.ruler: tuple[str, ...] = ()
        """The val items of the last measurement."""
        self._aside, self._owed = job.budget.aside, job.budget.owed

    async def begin(self) -> None:
        """Measure the candidate training starts from."""
        with self.job.stage(0, "validate"):
            await self.measure([self.pool.newest.number], 0)
        self._follow(0)

    async def measure(self, numbers: Sequence[int], step: int) -> None:
        """Measure members on the val items of a step."""
        items = self.plan.yardstick.items(self.course.val.deciding, self.job.rng, step)
        self.ruler = tuple(item.id for item in items)
        groups = [Group(self.pool[number].candidate, items) for number in numbers]
        for number, found in zip(numbers, await self.job.measure(groups, purpose="validate"), strict=True):
            self.note(number, found)
            self.pool = self.pool.aiming(number, self._aims(found))

    def _aims(self, found: Evaluation) -> tuple[float, ...]:
        """What it came to in each objective, or in the score where the task states none; nothing where that is not known."""
        stated = self.job.task.objectives
        means = [found.measured(name) for name in stated] if stated else [self.course.metric.mean(found)]
        known = [mean for mean in means if mean is not None]
        signs = [1.0 if objective.direction == "max" else -1.0 for objective in stated.values()] or [1.0]
        return tuple(s * m for s, m in zip(signs, known, strict=True)) if len(known) == len(means) else ()

    def note(self, number: int, found: Evaluation) -> None:
        """Remember how a member did."""
        ids = (item.id for item in found.items)
        self.pool = self.pool.scored(number, dict(zip(ids, self.course.metric.values(found), strict=True)))

    def view(self, step: int) -> View:
        ahead = leader(self.pool, self.deciding)
        return View(self.pool, step, self.ruler, (self.pool.members[0] if ahead is None else ahead).number)

    def sort_out(self, step: int) -> None:
        """See who leads, and let those go whom the plan does not keep."""
        self._follow(step)
        view = self.view(step)
        stay = {view.best, *self.plan.retention.keep(view, self.ruler)}
        if self.plan.walk:
            stay.add(self.pool.newest.number)
        left = [member.number for member in self.pool if member.number not in stay]
        self.pool = self.pool.keeping(stay)
        won = fronts(self.pool.members, self.ruler)
        rows = [
            [
                m.number,
                m.candidate.digest,
                list(m.parents),
                m.mean(self.deciding),
                m.count(self.deciding),
                len(won[m.number]),
            ]
            for m in self.pool
        ]
        self.job.emit(PoolChanged(step, len(rows), rows, left))

    def beside_parent(self, number: int) -> Pairs:
        """The scores of a member and of its first parent on the val items both were measured on."""
        own = self.pool[number]
        parent = self.pool[own.parents[0]].scores
        found = [(own.scores.get(item), parent.get(item)) for item in self.deciding]
        return [(a, b) for a, b in found if a is not None and b is not None]

    def best_of(self, members: Collection[Member]) -> Member | None:
        return leader(members, self.deciding)

    def reserve(self) -> None:
        """Set calls aside, or keep time, for what the finalists of this moment have not been measured on, where anything is
        set aside or kept."""
        lacking = sum(len(self.deciding) - member.count(self.deciding) for member in self._finalists())
        if self._aside:
            self.job.budget.set_aside(self._aside + lacking * self.job.task.calls_per_rollout)
        if self._owed:
            self.job.budget.keep_time(self._owed + lacking)

    async def close(self) -> bool:
        """Measure the finalists on all deciding val items; whoever is best there is the best, of equals the one that ranked
        first, and the initial candidate before all. False if the budget does not allow for all of them; then those count
        that have been measured on all of them before."""
        self.job.budget.set_aside(self._aside)
        self.job.budget.keep_time(self._owed, training=False)
        ranked = [self.job.initial, *(member.candidate for member in self._finalists())]
        scores: dict[Candidate, float | None] = {}
        enough = True
        try:
            with self.job.stage(self.job.progress.step, "finalists"):
                for candidate in dict.fromkeys(ranked):
                    (scores[candidate],) = await self.course.measure([candidate], "finalists")
        except BudgetExhausted as error:
            self.job.emit(BudgetEnded(str(error)))
            enough = False
            whole = [member for member in self._finalists() if member.count(self.deciding) == len(self.deciding)]
            scores = {**{member.candidate: member.mean(self.deciding) for member in whole}, **scores}
        scored = [candidate for candidate, score in scores.items() if score is not None]
        best = max(scored, key=lambda candidate: scores[candidate] or 0.0, default=self.job.initial)
        born = {member.candidate: member.born for member in self.pool}
        self.course.lead(born.get(best, 0), best, scores.get(best), name="finalist")
        self.job.emit(FinalistsMeasured([[c.digest, score] for c, score in scores.items()], best.digest))
        return enough

    def _finalists(self) -> list[Member]:
        scored = [(score, member) for member in self.pool if (score := member.mean(self.deciding)) is not None]
        scored.sort(key=lambda row: (-row[0], row[1].number))
        return [member for _, member in scored[: self.plan.finalists]]

    def _follow(self, step: int) -> None:
        ahead = leader(self.pool, self.deciding)
        if ahead is not None:
            self.course.lead(step, ahead.candidate, ahead.mean(self.deciding))
