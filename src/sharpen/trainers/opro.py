"""OPRO: the optimizer model sees earlier texts with their scores and writes a better one.

Each step shows it the best few versions so far, worst first, and some train items that the best one gets wrong; each
question of a step shows other items. What it writes replaces the whole text; protected regions never reach it and are put
back by us.
A version is scored on all deciding val items, and nothing of those but the mean is ever shown.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib import resources

from pydantic import Field

from sharpen.core.candidate import Candidate
from sharpen.core.digest import Json
from sharpen.core.errors import BudgetExhausted, UsageError
from sharpen.core.task import Splits
from sharpen.engine.asking import Answer
from sharpen.engine.events import BudgetEnded
from sharpen.engine.executor import together
from sharpen.engine.job import Job
from sharpen.skill.edits import Limits
from sharpen.skill.leaks import LeakIndex
from sharpen.skill.protected import masked
from sharpen.trainers.base import Effort, Ground, Trained
from sharpen.trainers.reflact.answers import Rewritten
from sharpen.trainers.reflact.desk import Desk
from sharpen.trainers.reflact.modes import MODES
from sharpen.trainers.reflact.params import ProposalParams
from sharpen.trainers.reflact.patches import Patch
from sharpen.trainers.reflact.reflect import shown_attempt, shown_candidate
from sharpen.trainers.reflact.rollout import Attempts, attempts_of, items_of_step, steps_per_epoch
from sharpen.trainers.reflact.update import Update, update
from sharpen.trainers.search.course import Course, CourseParams, CourseTrainer
from sharpen.trainers.search.effort import ASKED_AT_MOST
from sharpen.trainers.search.events import Offered
from sharpen.trainers.search.pool import Member
from sharpen.trainers.search.proposing import Child

_MODE = MODES["full_rewrite_minibatch"]
_PROMPT = "opro"


class OproParams(CourseParams):
    iterations: int = Field(10, ge=1, description="Steps: each asks for new versions and scores them.")
    num_proposals: int = Field(4, ge=1, description="Versions asked for in a step.")
    history_size: int = Field(20, ge=1, description="Versions shown with their scores: the best ones, worst first.")
    batch_size: int = Field(8, ge=1, description="Train items the best version attempts in a step, to show what fails.")
    context_tokens: int = Field(32_000, ge=512, description="The optimizer's context, where its model does not tell.")
    answer_tokens: int = Field(8_192, ge=64, description="The longest answer of the optimizer.")
    max_length: int = Field(20_000, ge=1, description="The most characters the candidate may have.")


@dataclass(frozen=True)
class Version:
    candidate: Candidate
    score: float
    number: int


class _Desk(Desk):
    """A desk with one prompt more."""

    def __post_init__(self) -> None:
        super().__post_init__()
        text = resources.files("sharpen.trainers").joinpath(f"{_PROMPT}.md").read_text(encoding="utf-8")
        self._texts.setdefault(_PROMPT, text)


class Opro(CourseTrainer):
    name = "opro"
    description = "the optimizer model sees earlier versions with their scores and writes a better one"
    Params = OproParams
    params: OproParams

    def check(self, splits: Splits, initial: Candidate, roles: Collection[str]) -> None:
        super().check(splits, initial, roles)
        if "optimizer" not in roles:
            raise UsageError(
                "trainer opro needs an optimizer model, which writes the new versions; set models.optimizer"
            )

    def effort(self, ground: Ground) -> Effort:
        steps, versions = self.params.iterations, self.params.num_proposals
        rollouts = ground.deciding + steps * (min(self.params.batch_size, ground.train) + versions * ground.deciding)
        return Effort(steps, rollouts, steps * versions * ASKED_AT_MOST)

    async def train(self, job: Job) -> Trained:
        course, train = Course(job, self.params), len(job.splits.train)
        per_epoch = steps_per_epoch(train, self.params.batch_size)
        course.open(self.params.iterations, per_epoch, min(self.params.batch_size, train))
        writing = _Writing(course, self.params)
        try:
            await writing.begin()
            for step in range(1, self.params.iterations + 1):
                await writing.take(step, 1 + (step - 1) // per_epoch)
        except BudgetExhausted as error:
            job.emit(BudgetEnded(str(error)))
            return course.trained(out_of_budget=True)
        return course.trained()


class _Writing:
    """One training under way: the versions so far, and how the next ones come about."""

    def __init__(self, course: Course, params: OproParams) -> None:
        self.course, self.params, self.job = course, params, course.job
        limits = {name: getattr(params, name) for name in ("context_tokens", "answer_tokens", "max_length")}
        self.desk = _Desk(self.job, ProposalParams(**limits))
        self.leaks = LeakIndex(self.job.splits, self.job.task.answers)
        self.versions: list[Version] = []
        self.seen = {self.job.initial.digest}

    async def begin(self) -> None:
        self._keep(self.job.initial, await self.course.begin())

    async def take(self, step: int, epoch: int) -> None:
        job, course = self.job, self.course
        base = course.best
        with job.stage(step, "rollout"):
            items = items_of_step(job, step, self.params.batch_size)
            found = await job.evaluate(base, items, purpose="train")
        attempts = attempts_of(found, len(found.items))
        job.progress.score = found.mean
        with job.stage(step, "reflect"):
            numbers = range(self.params.num_proposals)
            answers = await together(*(self._ask(step, number, base, attempts) for number in numbers))
        children = self._children(base, attempts, answers)
        lost = sum(answer.error is not None for answer in answers)
        usable = [child for child in children if child.refusal is None]
        job.emit(Offered(step, len(usable), [child.record() for child in children], lost))
        action = f"skip_{children[0].refusal}" if children else "skip_no_rewrite"
        current, score = base, course.best_score
        if usable:
            child, score = await self._score(step, usable)
            job.emit(child.revised(step))
            current, action = child.candidate, course.challenge(step, child.candidate, score)
        course.tell(step, action, current, score, epoch=epoch, batch=found)

    async def _ask(self, step: int, number: int, base: Candidate, attempts: Attempts) -> Answer:
        rng = self.job.rng("exemplars", step, number)
        shown = rng.sample(attempts.failures, -(-len(attempts.failures) // (2 if number else 1)))
        best = sorted(self.versions, key=lambda version: (version.score, version.number))[-self.params.history_size :]
        history: list[Json] = [
            {"score": round(version.score, 4), "text": _shown(version.candidate)} for version in best
        ]
        data: dict[str, Json] = {
            "stage": "reflect",
            "mode": _MODE.name,
            "task": self.job.task.brief.description,
            **shown_candidate(base, _MODE),
            "memory": {"versions": history},
            "attempts": [shown_attempt(attempt) for attempt in shown],
        }
        return await self.desk.ask([_PROMPT, _MODE.how_to_answer], data, Rewritten, ("opro", step, number))

    def _children(self, base: Candidate, attempts: Attempts, answers: Sequence[Answer]) -> list[Child]:
        children = []
        for answer in answers:
            if answer.error is not None or not answer.value.documents:
                continue
            written: Rewritten = answer.value
            patch = Patch(written.changes("optimizer", len(attempts.failures)), "optimizer", written.summary)
            child = Child(Member(0, base), attempts, self._update(base, patch))
            children.append(child)
            if child.refusal is None:
                self.seen.add(child.candidate.digest)
        return children

    def _update(self, base: Candidate, patch: Patch) -> Update:
        return update(base, patch, Limits(max_length=self.params.max_length, max_change=None), self.leaks, self.seen)

    async def _score(self, step: int, children: Sequence[Child]) -> tuple[Child, float | None]:
        """Score the new versions side by side; the best one with its score."""
        with self.job.stage(step, "validate"):
            scores = await self.course.measure([child.candidate for child in children], "validate")
        for child, score in zip(children, scores, strict=True):
            self._keep(child.candidate, score)
        best = min(range(len(children)), key=lambda number: (scores[number] is None, -(scores[number] or 0.0)))
        return children[best], scores[best]

    def _keep(self, candidate: Candidate, score: float | None) -> None:
        if score is not None:
            self.versions.append(Version(candidate, score, len(self.versions)))


def _shown(candidate: Candidate) -> Json:
    texts = {name: masked(text) for name, text in candidate.parts.items()}
    return texts[candidate.main] if len(texts) == 1 else dict(texts)
