"""What trainers have in common that choose by the score on val: which items decide, the best so far, and the telling of it.

A `Course` knows who leads and by which score, saves every new leader, and says how a step ended in the same event as
ReflACT does, so that status, reports and pages need not know which trainer it was. How candidates are found is not its
business. `CourseParams` and `CourseTrainer` are the settings and the trainer that go with it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from sharpen.core.candidate import Candidate
from sharpen.core.errors import UsageError
from sharpen.core.task import Splits
from sharpen.engine.evaluation import Evaluation, Group
from sharpen.engine.events import Decided
from sharpen.engine.job import Job
from sharpen.engine.metric import Metric, mean_of
from sharpen.skill.document import regions
from sharpen.stats.paired import paired_difference
from sharpen.trainers.base import Trained, Trainer
from sharpen.trainers.reflact.events import Planned, StepDone
from sharpen.trainers.reflact.gate import ValSplit, held_back, split_val, unconfirmed

_LEVEL = 0.9
"""How sure the interval beside an effect is: as sure as those of gates."""


class CourseParams(BaseModel):
    """What decides, and what is kept to check the decision."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    gate_metric: Literal["hard", "soft", "mixed"] = Field("hard", description="The score candidates are chosen by.")
    gate_mixed_weight: float = Field(0.5, ge=0.0, le=1.0, description="Weight of soft in the mixed score.")
    confirm_share: float = Field(0.34, ge=0.0, le=0.8, description="Share of val held back to confirm the best.")

    @property
    def metric(self) -> Metric:
        return Metric(self.gate_metric, self.gate_mixed_weight)


class CourseTrainer(Trainer):
    """A trainer that chooses by the score on val."""

    version = "2"
    params: CourseParams
    learns: ClassVar[bool] = True
    """Whether it needs train items."""

    def held_back(self, val: int) -> int:
        return held_back(val, self.params.confirm_share)

    def check(self, splits: Splits, initial: Candidate, roles: Collection[str]) -> None:
        if not splits.val:
            raise UsageError(f"trainer {self.name} chooses by the score on val, and the val split is empty")
        if self.learns and not splits.train:
            raise UsageError(f"trainer {self.name} learns from train items, and the train split is empty")
        for name, text in initial.parts.items():
            regions(text, f"the initial skill, {name}")


@dataclass
class Course:
    """One training: the split of val, the metric, and the leader with the score it leads by."""

    job: Job
    params: CourseParams
    best: Candidate = field(init=False)
    best_score: float | None = None
    best_step: int = 0
    _values: dict[Candidate, list[float | None]] = field(default_factory=dict)
    """By candidate: its scores on the deciding val items, in item order."""

    def __post_init__(self) -> None:
        self.best = self.job.initial
        self.metric = self.params.metric
        self.val: ValSplit = split_val(self.job, self.params.confirm_share)

    def open(self, steps: int, per_epoch: int, items: int, remarks: Sequence[str] = ()) -> None:
        """Say what the settings come to for this task."""
        job, all_remarks = self.job, [*remarks, *unconfirmed(self.job, self.val)]
        job.progress.steps = steps
        job.emit(Planned(steps, per_epoch, items, len(self.val.deciding), len(self.val.held_back), all_remarks))
        job.checkpoint(job.initial, 0, {})

    async def measure(self, candidates: Sequence[Candidate], purpose: str) -> list[float | None]:
        """The means of candidates on all deciding val items."""
        groups = [Group(candidate, self.val.deciding) for candidate in candidates]
        for candidate, found in zip(candidates, await self.job.measure(groups, purpose=purpose), strict=True):
            self._values[candidate] = self.metric.values(found)
        return [mean_of(self._values[candidate]) for candidate in candidates]

    async def begin(self) -> float | None:
        """Measure the candidate training starts from: it leads until another one does better."""
        with self.job.stage(0, "validate"):
            (score,) = await self.measure([self.job.initial], "validate")
        self.lead(0, self.job.initial, score)
        return score

    def lead(self, step: int, candidate: Candidate, score: float | None, *, name: str = "") -> None:
        """This candidate leads by that score; a new leader is saved, under its step's name or one of its own."""
        self.best_score, self.job.progress.best = score, score
        if candidate != self.best:
            self.best, self.best_step = candidate, step
            self.job.checkpoint(candidate, step, {"val": score}, name=name, leads=True)

    def challenge(self, step: int, candidate: Candidate, score: float | None) -> str:
        """Let a candidate that was measured on all deciding items lead if it did better than the leader. Returns the action
        of the step."""
        old, before = self.best, self.best_score
        better = score is not None and (before is None or score > before)
        pairs = zip(self._values[candidate], self._values[old], strict=True)
        scores = [(a, b) for a, b in pairs if a is not None and b is not None]
        why = "higher on val than the best so far" if better else "no higher on val than the best so far"
        self.decided(step, "val", candidate, old, (better, why), scores, len(self.val.deciding))
        if better:
            self.lead(step, candidate, score)
        return "accept" if better else "reject"

    def decided(
        self,
        step: int,
        how: str,
        new: Candidate,
        old: Candidate,
        verdict: tuple[bool, str],
        scores: Sequence[tuple[float, float]],
        rollouts: int,
    ) -> None:
        """Say that a change was kept or not, and why; `scores` are those of both on the same val items. The effect is what
        was seen, not what was proven: no gate has looked at it."""
        accepted, why = verdict
        effect = low = high = None
        if scores:
            found = paired_difference([a for a, _ in scores], [b for _, b in scores], _LEVEL)
            effect, low, high = found.mean, found.low, found.high
        self.job.emit(
            Decided(
                step, how, new.digest, old.digest, accepted, why, effect, low, high, None, rollouts, len(scores)
            )
        )  # fmt: skip

    def tell(
        self,
        step: int,
        action: str,
        current: Candidate,
        current_score: float | None,
        *,
        epoch: int = 1,
        batch: Evaluation | None = None,
    ) -> None:
        """Say how a step ended."""
        scores = (None, None) if batch is None else (batch.mean, mean_of(batch.soft))
        self.job.emit(
            StepDone(
                step, epoch, action, *scores, current.digest, current_score,
                self.best.digest, self.best_score, self.best_step,
            )
        )  # fmt: skip

    def trained(self, final: Candidate | None = None, *, out_of_budget: bool = False) -> Trained:
        """What the training came to; `final` is what it ended with, where that need not be the best."""
        ended = self.best if final is None else final
        return Trained(
            self.job.initial, self.best, ended, self.best_step, self.best_score,
            self.val.held_back, out_of_budget, self.metric,
        )  # fmt: skip
