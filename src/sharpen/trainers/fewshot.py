"""Few-shot training: sets of worked examples are put into the skill, and the set that does best on val stays.

Examples come from the train split. Bootstrapped ones are train items that the model itself gets right, with its own answer;
labelled ones are train items with their reference. Each step draws a set at random, bootstrapped ones first, and
measures the skill with it on all deciding val items (random search). No optimizer model is needed.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from pydantic import Field

from sharpen.core.candidate import Candidate
from sharpen.core.errors import BudgetExhausted, UsageError
from sharpen.core.rng import Stream
from sharpen.core.task import Splits
from sharpen.engine.events import BudgetEnded
from sharpen.engine.job import Job
from sharpen.skill.document import find_section
from sharpen.skill.edits import Edit, Limits, Op, Revision, apply
from sharpen.skill.examples import Example, write
from sharpen.skill.leaks import LeakIndex
from sharpen.trainers.base import Effort, Ground, Trained
from sharpen.trainers.reflact.events import Revised
from sharpen.trainers.reflact.proposers.examples import SECTION
from sharpen.trainers.reflact.rollout import FULL_MARKS
from sharpen.trainers.search.course import Course, CourseParams, CourseTrainer


class FewShotParams(CourseParams):
    num_candidate_programs: int = Field(16, ge=1, description="Sets of examples that are tried.")
    max_bootstrapped_demos: int = Field(
        4, ge=0, description="The most examples of a set that the model got right itself."
    )
    max_labeled_demos: int = Field(4, ge=0, description="The most examples of a set taken with their reference.")
    bootstrap_items: int = Field(40, ge=0, description="Train items attempted to find those the model gets right.")
    max_length: int = Field(20_000, ge=1, description="The most characters the candidate may have.")


@dataclass(frozen=True)
class Shot:
    item: str
    example: Example


@dataclass(frozen=True)
class Shots:
    """What sets are drawn from."""

    bootstrapped: tuple[Shot, ...]
    labelled: tuple[Shot, ...]

    def draw(self, params: FewShotParams, rng: Stream) -> list[Shot]:
        """A set of a size of its own; no item twice, and at least one where there is one."""
        most = (
            min(params.max_bootstrapped_demos, len(self.bootstrapped)),
            min(params.max_labeled_demos, len(self.labelled)),
        )
        size = 1 + rng.below(max(1, sum(most)))
        own = rng.sample(self.bootstrapped, min(size, most[0]))
        taken = {shot.item for shot in own}
        rest = [shot for shot in self.labelled if shot.item not in taken]
        return [*own, *rng.sample(rest, min(size - len(own), most[1]))]


class FewShot(CourseTrainer):
    name = "few-shot"
    description = "sets of worked examples, bootstrapped or labelled, drawn at random; the best on val stays"
    Params = FewShotParams
    params: FewShotParams

    def check(self, splits: Splits, initial: Candidate, roles: Collection[str]) -> None:
        super().check(splits, initial, roles)
        if not self.params.max_bootstrapped_demos + self.params.max_labeled_demos:
            raise UsageError("few-shot may use no example: raise max_bootstrapped_demos or max_labeled_demos")

    def effort(self, ground: Ground) -> Effort:
        steps = self.params.num_candidate_programs
        return Effort(steps, (1 + steps) * ground.deciding + min(self.params.bootstrap_items, ground.train))

    async def train(self, job: Job) -> Trained:
        course, steps = Course(job, self.params), self.params.num_candidate_programs
        course.open(steps, steps, 0, self._remarks(job))
        try:
            await course.begin()
            with job.stage(0, "bootstrap"):
                shots = await self.gather(job)
            await self.search(course, shots)
        except BudgetExhausted as error:
            job.emit(BudgetEnded(str(error)))
            return course.trained(out_of_budget=True)
        return course.trained()

    async def gather(self, job: Job) -> Shots:
        """The examples there are: train items the model gets right, with its answers, and train items with references."""
        labelled = [
            Shot(item.id, Example(*example))
            for item in job.splits.train
            if (example := job.task.example(item)) is not None
        ]
        questions = {shot.item: shot.example.input for shot in labelled}
        wanted = self.params.bootstrap_items if self.params.max_bootstrapped_demos else 0
        items = job.rng("bootstrap").sample([i for i in job.splits.train if i.id in questions], wanted)
        if not items:
            return Shots((), tuple(labelled))
        found = await job.evaluate(job.initial, items, purpose="train")
        right = [
            Shot(item.id, Example(questions[item.id], found.outcome(number).answer))
            for number, item in enumerate(items)
            if (score := found.hard[number]) is not None and score >= FULL_MARKS
        ]
        return Shots(tuple(right), tuple(labelled))

    async def search(self, course: Course, shots: Shots) -> None:
        job, seen = course.job, {course.job.initial.digest}
        leaks = LeakIndex(job.splits, job.task.answers)
        for step in range(1, self.params.num_candidate_programs + 1):
            edits = _edits(job.initial.text, shots.draw(self.params, job.rng("shots", step)))
            revision = apply(job.initial, edits, Limits(max_length=self.params.max_length, max_change=None))
            found = leaks.find(job.initial, revision.after)
            refusal = _refusal(revision, seen, leaking=bool(found))
            seen.add(revision.after.digest)
            told = [[leak.item_id, leak.split, leak.kind, leak.match] for leak in found]
            records, report = [edit.record() for edit in edits], [row.record() for row in revision.rows]
            job.emit(Revised(step, revision.after.digest, records, report, list(told)))
            if refusal is not None:
                course.tell(step, f"skip_{refusal}", course.best, course.best_score)
                continue
            with job.stage(step, "validate"):
                (score,) = await course.measure([revision.after], "validate")
            action = course.challenge(step, revision.after, score)
            course.tell(step, action, revision.after, score)

    def _remarks(self, job: Job) -> list[str]:
        if any(job.task.example(item) is not None for item in job.splits.train):
            return []
        return ["no train item of this task can be a worked example: there is nothing to try"]


def _edits(text: str, chosen: list[Shot]) -> list[Edit]:
    blocks = [write(shot.example) for shot in chosen]
    if find_section(text, SECTION) is None:
        blocks[:1] = [f"## {SECTION}\n\n{block}" for block in blocks[:1]]
    return [
        Edit(Op.APPEND, block, source="few-shot", items=(shot.item,))
        for block, shot in zip(blocks, chosen, strict=True)
    ]


def _refusal(revision: Revision, seen: Collection[str], *, leaking: bool) -> str | None:
    if not revision.changed or not revision.complete:
        return "no_change"
    if leaking:
        return "leak"
    return "tried" if revision.after.digest in seen else None
