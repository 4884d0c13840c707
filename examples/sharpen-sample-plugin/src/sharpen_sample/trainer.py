"""The trainer `climber`: adds one worked example at a time, and keeps it if the score on val goes up."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from sharpen.core.errors import BudgetExhausted
from sharpen.engine.events import BudgetEnded
from sharpen.engine.job import Job
from sharpen.skill.examples import Example, write
from sharpen.trainers.base import Trained, Trainer


class Params(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    rounds: int = Field(10, ge=1, description="Examples that are tried, one after the other.")


class Climber(Trainer):
    name = "climber"
    description = "one worked example at a time, kept if the score on val goes up"
    Params = Params

    async def train(self, job: Job) -> Trained:
        best, score, best_step, spent = job.initial, None, 0, False
        shots = [example for item in job.splits.train if (example := job.task.example(item))]
        try:
            score = (await job.evaluate(best, job.splits.val, purpose="start")).mean
            for step, shot in enumerate(job.rng("shots").shuffled(shots)[: self.params.rounds], start=1):
                with job.stage(step, "climb"):
                    text = f"{best.text.rstrip()}\n\n{write(Example(*shot))}\n"
                    tried = best.with_part(best.main, text)
                    found = (await job.evaluate(tried, job.splits.val, purpose="climb")).mean
                if found is not None and (score is None or found > score):
                    best, score, best_step = tried, found, step
                    job.checkpoint(best, step, {"val": score})
        except BudgetExhausted as error:
            job.emit(BudgetEnded(str(error)))
            spent = True
        return Trained(job.initial, best, best, best_step, score, out_of_budget=spent)
