"""The one loop of all policy trainers: learn for a stretch, save, evaluate, and again.

A stretch ends at a mark of the recipe. The policy is then played on the val episodes that select; the rest of val is held
back and confirms the best in the end. Which policy is the best, and what is kept, is the engine's business; what makes a
trainer is its algorithm.
"""

from __future__ import annotations

import importlib.util
import shutil
import time
from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from sharpen.core.candidate import Candidate
from sharpen.core.errors import BudgetExhausted, MissingRequirement, UsageError
from sharpen.core.task import Splits, Task
from sharpen.engine.events import BudgetEnded
from sharpen.engine.gateway import Stopped
from sharpen.engine.job import Job
from sharpen.tasks.gym import about, seeds
from sharpen.trainers.base import Effort, Ground, Trained, Trainer
from sharpen.trainers.reflact.events import Planned
from sharpen.trainers.rl.events import Diverged, TrainingDiverged
from sharpen.trainers.rl.params import PolicyParams
from sharpen.trainers.rl.recipe import Algorithm, Recipe, resolve

if TYPE_CHECKING:
    from sharpen.engine.stretches import Grown
    from sharpen.trainers.rl.learner import Learner

_PACKAGES = ("gymnasium", "stable_baselines3", "torch")
_DESK = ".stretch"
_LOOK_AT_CLOCK = 0.5


class PolicyTrainer(Trainer):
    """A trainer of policies. Subclasses say which algorithm."""

    trains = "policy"
    Params = PolicyParams
    params: PolicyParams
    algorithm: ClassVar[Algorithm]

    def suits(self, task: Task) -> None:
        self._lacking()
        from sharpen.tasks.gym.task import Environment
        from sharpen.trainers.rl import actions

        if not isinstance(task, Environment):
            raise UsageError(f"{task.name} is not an environment of gymnasium, which policies are trained in")
        actions.check(self.algorithm, task.name, task.making.spaces[1])

    def _lacking(self) -> None:
        if any(importlib.util.find_spec(name) is None for name in _PACKAGES):
            raise MissingRequirement(f"trainer {self.name} needs stable-baselines3: pip install 'sharpen[rl]'")

    def check(self, splits: Splits, initial: Candidate, roles: Collection[str]) -> None:
        if about.read(initial) is not None:
            raise UsageError(f"trainer {self.name} begins with fresh weights; it does not go on from a trained policy")
        resolve(self.algorithm, self.params, about.environment_of(initial))
        if not splits.val:
            raise UsageError(f"trainer {self.name} chooses by the return on val episodes, and there are none")
        if self._selecting(len(splits.val)) > len(splits.val):
            raise UsageError(
                f"trainer.params.eval_episodes is {self.params.eval_episodes}, and val has {len(splits.val)} episodes"
            )

    def effort(self, ground: Ground) -> Effort | None:
        if self.params.total_steps is None:
            return None  # a preset may say, and which one is known where the environment is
        recipe = resolve(self.algorithm, self.params, "")
        return Effort(len(recipe.marks), (1 + len(recipe.marks)) * ground.deciding)

    def held_back(self, val: int) -> int:
        return val - self._selecting(val)

    def _selecting(self, val: int) -> int:
        return -(-val // 2) if self.params.eval_episodes is None else self.params.eval_episodes

    async def train(self, job: Job) -> Trained:
        recipe = resolve(self.algorithm, self.params, about.environment_of(job.initial))
        training = _Training(job, recipe, self._selecting(len(job.splits.val)))
        training.open()
        try:
            return await training.run()
        finally:
            training.close()


class _Training:
    """One training under way: the policy as it is, and the best so far."""

    def __init__(self, job: Job, recipe: Recipe, selecting: int) -> None:
        self.job, self.recipe = job, recipe
        self.selecting, self.confirming = job.splits.val[:selecting], job.splits.val[selecting:]
        self.initial = self.best = self.policy = job.initial
        self.step = self.best_step = 0
        self.best_value: float | None = None
        self._learner: Learner | None = None

    def open(self) -> None:
        """Say what the settings come to."""
        recipe, remarks = self.recipe, []
        if not self.confirming:
            remarks.append("all val episodes select: the best score can't be confirmed")
        if recipe.round > recipe.eval_every:
            remarks.append(f"evaluated every {recipe.round:,} steps: that is one update, and eval_every is less")
        self.job.progress.steps = recipe.marks[-1]
        held_back = len(self.confirming)
        self.job.emit(Planned(recipe.marks[-1], recipe.eval_every, 0, len(self.selecting), held_back, remarks))

    async def run(self) -> Trained:
        job, out_of_budget = self.job, False
        try:
            await self.learn(0)
            self.initial = self.best = self.policy
            await self.judge()
            for mark in self.recipe.marks:
                await self.learn(mark)
                await self.judge()
        except BudgetExhausted as error:
            job.emit(BudgetEnded(str(error)))
            out_of_budget = True
        except Diverged as error:
            job.emit(TrainingDiverged(self.step, str(error)))
        job.progress.step = self.step  # where the policy is, not where the stretch was to lead
        return Trained(
            self.initial, self.best, self.policy, self.best_step, self.best_value, self.confirming, out_of_budget
        )

    async def learn(self, mark: int) -> None:
        """One stretch, up to a mark."""
        job = self.job
        with job.stage(mark, "train"):
            self.policy, self.step = await job.advance(partial(self._work, mark))

    async def judge(self) -> None:
        """Play the episodes that select."""
        job = self.job
        with job.stage(self.step, "select"):
            found = await job.evaluate(self.policy, self.selecting, purpose="select")
        if job.evaluated(self.policy, self.step, found):
            self.best, self.best_step, self.best_value = self.policy, self.step, found.mean
            job.progress.best = found.mean

    async def _work(self, mark: int) -> Grown:
        if self._learner is None:
            self._learner = self._hire()
        return await (self._learner.go_on(self.policy, mark) if mark else self._learner.begin())

    def _hire(self) -> Learner:
        from sharpen.tasks.gym.making import make
        from sharpen.tasks.gym.task import Environment
        from sharpen.trainers.rl.learner import Learner, Playground, Watch

        job = self.job
        assert isinstance(job.task, Environment), "suits has seen to that"
        making = job.task.making
        place = Playground(
            partial(make, making, training=True), partial(seeds.training, job.spec.seed), making.settings()
        )
        seed = job.rng("policy").below(1 << 31)
        return Learner(self.recipe, place, seed, job.folder / _DESK, Watch(self._progress, self._check()))

    def _progress(self, step: int) -> None:
        self.job.progress.done, self.job.progress.total = step, self.recipe.marks[-1]

    def _check(self) -> Callable[[], None]:
        """What a stretch asks at every step: whether it is to stop, and now and then whether there is time for more."""
        gateway, budget, episodes = self.job.runtime.gateway, self.job.budget, len(self.selecting)
        due = time.monotonic()

        def check() -> None:
            nonlocal due
            if gateway.stopping:
                raise Stopped("stopped")
            if time.monotonic() >= due:
                due = time.monotonic() + _LOOK_AT_CLOCK
                budget.admit(0, free=episodes)

        return check

    def close(self) -> None:
        if self._learner is not None:
            self._learner.close()
        shutil.rmtree(self.job.folder / _DESK, ignore_errors=True)  # a process that was killed may have left it
        shutil.rmtree(self.job.folder / _DESK, ignore_errors=True)  # a session before may have left it, and been killed
