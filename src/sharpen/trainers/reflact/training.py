"""One training: what stays the same from step to step, the state that does not, and how a candidate moves up in it.

The current candidate has proven itself, or was put there without proof and is marked `unscored` until it is measured; its
score is never one that another text earned. A draft did better on train items and is not proven yet. The best is what the
training vouches for: what passed the gate against it, or, where the current candidate was changed without proof in between,
what scored higher on all deciding items.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sharpen.core.candidate import Candidate
from sharpen.core.errors import UsageError
from sharpen.core.task import Splits
from sharpen.engine.comparing import Comparison
from sharpen.engine.evaluation import Group
from sharpen.engine.job import Job
from sharpen.engine.metric import Metric
from sharpen.gates import registry as gates
from sharpen.skill.document import regions
from sharpen.skill.edits import Limits
from sharpen.skill.leaks import LeakIndex
from sharpen.trainers.reflact.desk import Desk
from sharpen.trainers.reflact.events import Planned
from sharpen.trainers.reflact.gate import split_val, unconfirmed
from sharpen.trainers.reflact.memory import Memory
from sharpen.trainers.reflact.modes import MODES
from sharpen.trainers.reflact.params import ReflACTParams
from sharpen.trainers.reflact.patches import Change
from sharpen.trainers.reflact.proposers.base import Tried
from sharpen.trainers.reflact.rollout import steps_per_epoch

_PROVING = ("sequential", "paired")
_FEWEST = 5
"""Items that can prove a gain at the usual level, where each is measured once: five gains without a loss."""


@dataclass
class State:
    """Where a training stands between two steps."""

    current: Candidate
    best: Candidate
    current_score: float | None = None
    best_score: float | None = None
    best_step: int = 0
    unscored: str = ""
    """What was put into the current candidate without proof; empty once it has been measured."""
    draft: Candidate | None = None
    draft_edits: tuple[Change, ...] = ()
    """What leads from the current candidate to the draft."""
    history: list[Tried] = field(default_factory=list)
    memory: Memory = field(default_factory=Memory)
    epoch_ends: list[Candidate] = field(default_factory=list)
    decisions: int = 0

    @property
    def base(self) -> Candidate:
        """What the next step builds on."""
        return self.current if self.draft is None else self.draft


class Training:
    def __init__(self, job: Job, params: ReflACTParams) -> None:
        self.job, self.params = job, params
        self.gate = gates.get(params.gate, params.gate_params)
        self.metric = Metric(params.gate_metric, params.gate_mixed_weight)
        self.mode = MODES[params.update_mode]
        self.val = split_val(job, params.confirm_share)
        self.leaks = LeakIndex(job.splits, job.task.answers)
        self.limits = Limits(max_length=params.max_length, max_change=params.max_change)
        self.desk = Desk(job, params)
        self.items_per_step = params.batch_size * params.accumulation
        self.per_epoch = steps_per_epoch(len(job.splits.train), self.items_per_step)
        self.steps = min(params.epochs * self.per_epoch, params.max_steps or params.epochs * self.per_epoch)
        self.state = State(job.initial, job.initial)
        self.aside, self.owed = job.budget.aside, job.budget.owed

    def open(self) -> None:
        """Say what the settings come to for this task."""
        job = self.job
        job.progress.steps = self.steps
        items = min(self.items_per_step, len(job.splits.train))
        sizes = (len(self.val.deciding), len(self.val.held_back))
        job.emit(Planned(self.steps, self.per_epoch, items, *sizes, self._remarks()))
        job.checkpoint(job.initial, 0, {})

    def epoch_of(self, step: int) -> int:
        return 1 + (step - 1) // self.per_epoch

    async def judge(self, step: int, new: Candidate, old: Candidate) -> Comparison:
        """The gate's verdict on a candidate against another."""
        number, self.state.decisions = self.state.decisions, self.state.decisions + 1
        epochs = self.params.epochs if self.params.slow_update and self.desk.open else 0
        comparison = await self.job.compare(
            new, old, self.val.deciding, self.gate,
            step=step, decision=number, planned=self.steps + epochs, metric=self.metric,
        )  # fmt: skip
        if old == self.state.current and self.state.unscored:
            self.state.current_score, self.state.unscored = comparison.old_score, ""
        return comparison

    async def accept(self, step: int, candidate: Candidate, comparison: Comparison, *, name: str = "") -> None:
        """The candidate becomes the current one, and the best one if that is what it was measured against, or if it scores
        higher on the deciding items."""
        state, score = self.state, comparison.new_score
        proven = self.gate.name != "force" and state.best == state.current
        state.current, state.current_score, state.unscored = candidate, score, ""
        state.draft, state.draft_edits = None, ()
        if proven:
            state.best, state.best_score, state.best_step = candidate, score, step
        else:
            await self._track_best(step, candidate)
        self.job.progress.best = state.best_score
        metrics = {"val": score, "effect": comparison.verdict.effect}
        self.job.checkpoint(candidate, step, metrics, name=name, leads=state.best == candidate)

    def force(self, candidate: Candidate, why: str) -> None:
        """Put a candidate in the current one's place without proof: it has no score until it is measured."""
        state = self.state
        state.current, state.current_score = candidate, None
        state.unscored = ", ".join(dict.fromkeys([*filter(None, state.unscored.split(", ")), why]))

    async def _track_best(self, step: int, candidate: Candidate) -> None:
        state = self.state
        groups = [Group(one, self.val.deciding) for one in (candidate, state.best)]
        new, best = (self.metric.mean(found) for found in await self.job.measure(groups, purpose="gate"))
        if new is not None and (best is None or new > best):
            state.best, state.best_score, state.best_step = candidate, new, step
        elif state.best_score is None:
            state.best_score = best

    def _remarks(self) -> list[str]:
        train, params = len(self.job.splits.train), self.params
        remarks = []
        if self.items_per_step > train:
            batch = f"batch_size {params.batch_size}" + (
                f" x accumulation {params.accumulation}" * (params.accumulation > 1)
            )
            remarks.append(f"{batch} is more than the {train} train items: every step takes all of them")
        elif train % self.items_per_step:
            remarks.append(
                f"the last step of an epoch has {train % self.items_per_step} of {self.items_per_step} items"
            )
        if not self.job.initial.text.strip():
            remarks.append("the initial skill is empty: training starts from nothing")
        if not self.desk.open:
            wanted = [name for name in ("skill_aware",) if getattr(params, name)]
            remarks += [f"{name} needs an optimizer model and is left out" for name in wanted]
        if self.gate.name in _PROVING and len(self.val.deciding) < _FEWEST and not self.job.repeatable:
            remarks.append(
                f"the gate {self.gate.name} can't prove anything on fewer than {_FEWEST} items, and val has "
                f"{len(self.val.deciding)} to decide on: nothing will be accepted; use the gate strict or another trainer"
            )
        return remarks + unconfirmed(self.job, self.val)


def check(params: ReflACTParams, splits: Splits, initial: Candidate, *, optimizer: bool) -> None:
    """Complain about settings that do not fit the task, before anything is paid for."""
    gates.get(params.gate, params.gate_params)
    train = len(splits.train)
    if params.train_size is not None and params.train_size != train:
        raise UsageError(
            f"trainer.params.train_size is {params.train_size}, but the train split has {train} items; "
            "set it to that, leave it out, or change task.limit or task.ratio"
        )
    asks = params.analysts and optimizer
    for setting in ("budget_control", "update_mode"):
        value = getattr(params, setting)
        if value in ("autonomous", "rewrite_from_suggestions", "full_rewrite_minibatch") and not asks:
            raise UsageError(f"trainer.params.{setting}: {value} needs an optimizer model; set models.optimizer")
    if not asks and not params.proposers:
        raise UsageError("nobody proposes anything: set models.optimizer, or name some trainer.params.proposers")
    for name, text in initial.parts.items():
        regions(text, f"the initial skill, {name}")
