"""The trainer that changes nothing: the start is measured on val, confirmed and tested like the result of any training.

It is the baseline of every comparison: what the other trainers bring is what they bring beyond this.
"""

from __future__ import annotations

from sharpen.core.errors import BudgetExhausted
from sharpen.engine.events import BudgetEnded
from sharpen.engine.job import Job
from sharpen.trainers.base import Effort, Ground, Trained
from sharpen.trainers.search.course import Course, CourseParams, CourseTrainer


class NoOp(CourseTrainer):
    name = "noop"
    description = "measures the start and changes nothing: the baseline"
    Params = CourseParams
    params: CourseParams
    learns = False

    def effort(self, ground: Ground) -> Effort:
        return Effort(0, ground.deciding)

    async def train(self, job: Job) -> Trained:
        course = Course(job, self.params)
        course.open(0, 1, 0)
        try:
            await course.begin()
        except BudgetExhausted as error:
            job.emit(BudgetEnded(str(error)))
            return course.trained(out_of_budget=True)
        return course.trained()
