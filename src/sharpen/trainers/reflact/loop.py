"""ReflACT, told as in the paper: rollout, reflect, aggregate, select, update, gate, step after step.

Each stage is a file of its own. What is here is the order of things, what a step leaves behind, and the bookkeeping of the
candidates: the current one has proven itself; a draft did better on train items and is not proven yet, so that later steps
build on it until the sum of its edits can be proven, or until it shows itself to be no better.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sharpen.core.candidate import Candidate
from sharpen.core.errors import BudgetExhausted
from sharpen.engine.comparing import Comparison
from sharpen.engine.evaluation import Group
from sharpen.engine.events import BudgetEnded
from sharpen.engine.job import Job
from sharpen.gates import registry as gates
from sharpen.skill.edits import Edit, Limits
from sharpen.skill.leaks import LeakIndex
from sharpen.trainers.base import Trained, Trainer
from sharpen.trainers.finish import paired_gain
from sharpen.trainers.reflact import aggregate, screen, select
from sharpen.trainers.reflact.events import Promoted, Proposed, Revised, Selected, StepDone
from sharpen.trainers.reflact.gate import held_back, split_val
from sharpen.trainers.reflact.params import ReflACTParams
from sharpen.trainers.reflact.patches import Patch
from sharpen.trainers.reflact.proposers.base import Tried
from sharpen.trainers.reflact.reflect import Occasion, reflect
from sharpen.trainers.reflact.rollout import Batch, batch_items, roll_out, steps_per_epoch
from sharpen.trainers.reflact.schedule import edit_budget
from sharpen.trainers.reflact.update import Update, update


class ReflACT(Trainer):
    """Improves a skill by reflecting on rollouts and making few, exact edits that must prove themselves on val."""

    name = "reflact"
    version = "1"
    description = "rollouts, reflection and bounded edits behind a validation gate"
    Params = ReflACTParams
    params: ReflACTParams

    def held_back(self, val: int) -> int:
        return held_back(val, self.params.confirm_share)

    async def train(self, job: Job) -> Trained:
        training = _Training(job, self.params)
        job.checkpoint(job.initial, 0, {})
        out_of_budget = False
        try:
            for step in range(1, training.steps + 1):
                await training.step(step)
        except BudgetExhausted as error:
            job.emit(BudgetEnded(str(error)))
            out_of_budget = True
        out_of_budget = not await training.promote() or out_of_budget
        state, held_back = training.state, training.val.held_back
        return Trained(job.initial, state.best, state.base, state.best_step, state.best_score, held_back, out_of_budget)


@dataclass
class _State:
    """Where a training stands between two steps."""

    current: Candidate
    best: Candidate
    draft: Candidate | None = None
    draft_edits: tuple[Edit, ...] = ()
    """What leads from the current candidate to the draft."""
    current_score: float | None = None
    best_score: float | None = None
    best_step: int = 0
    history: list[Tried] = field(default_factory=list)

    @property
    def base(self) -> Candidate:
        """What the next step builds on."""
        return self.current if self.draft is None else self.draft


class _Training:
    """One training: what stays the same from step to step, and the state that does not."""

    def __init__(self, job: Job, params: ReflACTParams) -> None:
        self.job, self.params = job, params
        self.gate = gates.get(params.gate, params.gate_params)
        self.val = split_val(job, params.confirm_share)
        self.leaks = LeakIndex(job.splits, job.task.answers)
        self.limits = Limits(max_length=params.max_length, max_change=params.max_change)
        self.per_epoch = steps_per_epoch(len(job.splits.train), params.batch_size)
        self.steps = min(params.epochs * self.per_epoch, params.max_steps or params.epochs * self.per_epoch)
        self.state = _State(job.initial, job.initial)
        self.aside = job.budget.aside
        job.progress.steps = self.steps

    async def step(self, step: int) -> None:
        job, params, state = self.job, self.params, self.state
        final_check = 0 if state.draft is None else 3 * len(self.val.deciding) * job.task.calls_per_rollout
        job.budget.set_aside(self.aside + final_check)
        budget = edit_budget(params.schedule, step, self.steps, most=params.edit_budget, least=params.min_edit_budget)
        with job.stage(step, "rollout"):
            batch = await roll_out(job, state.base, batch_items(job, step, params.batch_size))
        job.progress.score = batch.evaluation.mean
        action = "skip_no_failures"
        if batch.failures:
            patches = await self.propose(step, batch, budget)
            chosen = await self.select(step, batch, patches, budget) if patches else None
            if chosen is not None:
                action = await self.decide(step, chosen)
            else:
                action = "skip_no_promise" if patches else "skip_no_edits"
        epoch = 1 + (step - 1) // self.per_epoch
        job.emit(
            StepDone(
                step, epoch, action, batch.evaluation.mean, state.current.digest, state.current_score,
                state.best.digest, state.best_score, state.best_step,
            )
        )  # fmt: skip

    async def propose(self, step: int, batch: Batch, budget: int) -> list[Patch]:
        """Reflect on the attempts, and make few alternatives out of many patches."""
        job, state, size = self.job, self.state, self.params.merge_batch_size
        skill = state.base.text
        with job.stage(step, "reflect"):
            occasion = Occasion(step, state.base, batch, budget, tuple(state.history), self.limits)
            ideas = await reflect(job, occasion, self.params)
        with job.stage(step, "aggregate"):
            failing = await aggregate.merge(job, step, ideas.from_failures, skill=skill, size=size, label="failures")
            working = await aggregate.merge(job, step, ideas.from_successes, skill=skill, size=size, label="successes")
            both = [patch for patch in (failing, working) if patch is not None]
            merged = await aggregate.merge(job, step, both, skill=skill, size=size, label="both")
            alternatives = aggregate.alternatives(merged, ideas.rivals, most=self.params.alternatives, budget=budget)
        records = [patch.record() for patch in alternatives]
        job.emit(Proposed(step, len(batch.failures), len(batch.successes), records, ideas.lost_answers))
        return alternatives

    async def select(self, step: int, batch: Batch, alternatives: list[Patch], budget: int) -> Update | None:
        """Clip each alternative to the edit budget, and find the one worth putting before the gate."""
        job, base = self.job, self.state.base
        seen = {tried.digest for tried in self.state.history}
        with job.stage(step, "select"):
            made: list[Update] = []
            for patch in alternatives:
                clipped = await select.clip(job, step, patch, budget=budget, skill=base.text)
                made.append(update(base, clipped, self.limits, self.leaks, seen))
            trials = await screen.compete(job, step, base, made, batch.evaluation.items, self.params.screen_items)
        tried = [[t.number, t.score, t.current, t.items, len(made[t.number].patch.edits)] for t in trials]
        chosen = trials[0].number if trials and trials[0].promising else None
        job.emit(Selected(step, budget, tried, chosen))
        return None if chosen is None else made[chosen]

    async def decide(self, step: int, chosen: Update) -> str:
        """Put the chosen revision before the gate, and let it replace the current candidate if it passes."""
        job, state = self.job, self.state
        edits = (*state.draft_edits, *chosen.patch.edits)
        report = [row.record() for row in chosen.revision.rows]
        leaks = [[leak.item_id, leak.split, leak.kind, leak.match] for leak in chosen.leaks]
        job.emit(Revised(step, chosen.candidate.digest, [edit.record() for edit in edits], report, leaks))
        accepted, comparison = False, None
        if chosen.refusal is None:
            with job.stage(step, "gate"):
                comparison = await job.compare(
                    chosen.candidate, state.current, self.val.deciding, self.gate, step=step, planned=self.steps
                )
            accepted = comparison.verdict.accepted
        state.history.append(Tried(chosen.patch.edits, chosen.candidate.digest, accepted, step))
        if comparison is None:
            return f"skip_{chosen.refusal}"
        if not accepted:
            worse = comparison.verdict.effect is not None and comparison.verdict.effect < 0.0
            keep = self.params.drafts and not worse
            state.draft, state.draft_edits = (chosen.candidate, edits) if keep else (None, ())
            return "draft" if keep else "reject"
        self.accept(step, chosen.candidate, comparison)
        return "accept"

    def accept(self, step: int, candidate: Candidate, comparison: Comparison) -> None:
        """The candidate becomes the current one, and the best one unless it was let in without proof and scored lower."""
        state, score = self.state, comparison.new_score
        state.current, state.current_score = candidate, score
        state.draft, state.draft_edits = None, ()
        so_far = comparison.old_score if state.best_score is None else state.best_score
        better = so_far is None or (score or 0.0) > so_far
        if self.gate.name != "force" or better:
            state.best, state.best_score, state.best_step = candidate, score, step
        self.job.progress.best = state.best_score
        self.job.checkpoint(candidate, step, {"val": score, "effect": comparison.verdict.effect})

    async def promote(self) -> bool:
        """The final check: a draft that is left becomes the best one if it is proven better than the initial candidate and
        did better on val than the current one. Between the two of them nothing is claimed to be proven. False if the
        budget does not allow for it."""
        self.job.budget.set_aside(self.aside)
        try:
            await self._promote()
        except BudgetExhausted as error:
            self.job.emit(BudgetEnded(str(error)))
            return False
        return True

    async def _promote(self) -> None:
        job, state, items = self.job, self.state, self.val.deciding
        if state.draft is None or state.current == job.initial:
            return
        with job.stage(self.steps, "promote"):
            groups = [Group(candidate, items) for candidate in (state.draft, state.current)]
            draft, current = await job.measure(groups, purpose="promote")
            gain = paired_gain(draft, current)
            promoted = gain.mean is not None and gain.mean > 0.0
            if promoted:
                verdict = await job.compare(
                    state.draft, job.initial, items, self.gate, step=self.steps + 1, planned=self.steps
                )
                promoted = verdict.verdict.accepted
        job.emit(Promoted(state.draft.digest, gain.mean, gain.low, gain.high, promoted))
        if promoted:
            state.best, state.best_score, state.best_step = state.draft, draft.mean, self.steps
