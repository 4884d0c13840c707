"""ReflACT, told as in the paper: rollout, reflect, aggregate, select, update, gate, step after step; then the epoch's end.

Each stage is a file of its own. What is here is the order of things, and what a step leaves behind. How a candidate becomes
the current one, a draft or the best one is `training.py`'s business.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from sharpen.core.candidate import Candidate
from sharpen.core.errors import BudgetExhausted
from sharpen.core.item import Item
from sharpen.core.task import Splits
from sharpen.engine.comparing import Comparison
from sharpen.engine.events import BudgetEnded
from sharpen.engine.job import Job
from sharpen.engine.metric import mean_of
from sharpen.skill.edits import Revision
from sharpen.trainers.base import Trained, Trainer
from sharpen.trainers.reflact import aggregate, screen, select
from sharpen.trainers.reflact.appendix import keep_notes
from sharpen.trainers.reflact.epoch import end_epoch
from sharpen.trainers.reflact.events import Proposed, Reflected, Refused, Revised, Selected, StepDone
from sharpen.trainers.reflact.gate import held_back
from sharpen.trainers.reflact.memory import Remembered
from sharpen.trainers.reflact.params import ReflACTParams
from sharpen.trainers.reflact.patches import Change, Patch, Suggestion
from sharpen.trainers.reflact.promote import promote, reserve
from sharpen.trainers.reflact.proposers.base import Tried
from sharpen.trainers.reflact.reflect import Occasion, Reflections, reflect, shown_candidate
from sharpen.trainers.reflact.rollout import Attempts, items_of_step, roll_out
from sharpen.trainers.reflact.schedule import edit_budget
from sharpen.trainers.reflact.training import Training, check
from sharpen.trainers.reflact.update import Update, update, write_from_suggestions


class ReflACT(Trainer):
    """Improves a skill by reflecting on rollouts and making few, exact edits that must prove themselves on val."""

    name = "reflact"
    version = "6"
    description = "rollouts, reflection and bounded edits behind a validation gate"
    Params = ReflACTParams
    params: ReflACTParams

    def held_back(self, val: int) -> int:
        return held_back(val, self.params.confirm_share)

    def check(self, splits: Splits, initial: Candidate, roles: Collection[str]) -> None:
        check(self.params, splits, initial, optimizer="optimizer" in roles)

    async def train(self, job: Job) -> Trained:
        training = Training(job, self.params)
        training.open()
        out_of_budget = False
        try:
            for step in range(1, training.steps + 1):
                reserve(training)
                await _Step(training, step).take()
                if step % training.per_epoch == 0:
                    await end_epoch(training, step)
        except BudgetExhausted as error:
            job.emit(BudgetEnded(str(error)))
            out_of_budget = True
        out_of_budget = not await promote(training) or out_of_budget
        state = training.state
        return Trained(
            job.initial, state.best, state.base, state.best_step, state.best_score,
            training.val.held_back, out_of_budget, training.metric,
        )  # fmt: skip


class _Step:
    """One step of a training."""

    def __init__(self, training: Training, number: int) -> None:
        self.training, self.number = training, number
        self.job, self.params, self.state = training.job, training.params, training.state
        self.base = training.state.base
        self.epoch = training.epoch_of(number)
        self.memory = self.state.memory.told(self.epoch)
        self.scheduled = edit_budget(
            self.params.schedule,
            number,
            training.steps,
            most=self.params.edit_budget,
            least=self.params.min_edit_budget,
        )
        self.limit = self.scheduled if self.params.budget_control == "fixed" else None
        self.promising, self.untried = False, False
        self.refused: tuple[tuple[Change, str], ...] = ()
        self.shown = {**shown_candidate(self.base, training.mode), "memory": self.memory}

    async def take(self) -> None:
        with self.job.stage(self.number, "rollout"):
            items = items_of_step(self.job, self.number, self.training.items_per_step)
            attempts = await roll_out(self.job, self.base, items, self.params.batch_size)
        self.job.progress.score = attempts.evaluation.mean
        ideas, chosen, comparison = Reflections(), None, None
        action = "skip_no_failures"
        if attempts.failures:
            ideas = await self.reflect(attempts)
            alternatives = await self.aggregate(attempts, ideas)
            chosen = await self.select(attempts, alternatives) if alternatives else None
            action = "skip_no_promise" if alternatives else "skip_no_edits"
            if chosen is not None:
                action, comparison = await self.decide(chosen)
        self.remember(attempts, ideas, chosen, comparison, action)
        await keep_notes(self.training, self.number, ideas.notes)
        self.tell(attempts, action)

    async def reflect(self, attempts: Attempts) -> Reflections:
        """Let analysts and proposers say what they would change."""
        limits, history = self.training.limits, tuple(self.state.history)
        notes = self.params.appendix_source if self.params.skill_aware else "none"
        occasion = Occasion(self.number, self.base, attempts, self.limit, history, self.memory, limits, notes)
        with self.job.stage(self.number, "reflect"):
            ideas = await reflect(self.job, self.training.desk, occasion, self.params)
        batches, readings = [b.record() for b in attempts.batches], [r.record() for r in ideas.readings]
        self.job.emit(Reflected(self.number, batches, readings))
        return ideas

    async def aggregate(self, attempts: Attempts, ideas: Reflections) -> list[Patch]:
        """Make few alternatives out of many patches."""
        mode = self.training.mode
        both = [*ideas.patches("failures"), *ideas.patches("successes")]
        with self.job.stage(self.number, "aggregate"):
            merged = await aggregate.merge_all(self.training.desk, mode, self.number, ideas, self.shown, self.params)
            firsts = ([merged] if merged else []) + ([] if mode.clipped else both)
            rivals = aggregate.rivals_of(firsts, ideas.rivals, self.number)
            most = self.params.alternatives * (aggregate.FIRST_STEP_MORE if self.number == 1 and not firsts else 1)
            found = aggregate.alternatives(firsts, rivals, most=most, budget=self.scheduled)
        failures, successes = len(attempts.failures), len(attempts.successes)
        self.job.emit(Proposed(self.number, failures, successes, [patch.record() for patch in found], ideas.lost))
        return found

    async def select(self, attempts: Attempts, alternatives: list[Patch]) -> Update | None:
        """Clip each alternative to the edit budget, and find the one worth putting before the gate."""
        with self.job.stage(self.number, "select"):
            made = {number: await self.update(number, patch) for number, patch in enumerate(alternatives)}
            trials = await self.compete(made, attempts.evaluation.items)
        refused = [[n, one.patch.source, one.refusal, one.why] for n, one in made.items() if one.refusal is not None]
        if refused:
            self.job.emit(Refused(self.number, refused))
        self.refused = tuple(r for one in made.values() if one.patch.source == "analysts" for r in one.not_applied)
        if not trials:  # nothing could be tried: the first one is shown, and refused, in its place
            trials = [screen.Trial(0, None, 0)]
        tried = [[t.number, t.score, t.current, t.items, len(made[t.number].patch.edits)] for t in trials]
        chosen = trials[0].number if trials[0].promising else None
        self.promising = chosen is not None and trials[0].score is not None
        self.untried = trials[0].score is None
        self.job.emit(Selected(self.number, self.limit, tried, chosen))
        return None if chosen is None else made[chosen]

    async def compete(self, made: dict[int, Update], items: Sequence[Item]) -> list[screen.Trial]:
        """What analysts came to first; ideas of others where that is not better than the current candidate."""
        by_analysts = {number: one for number, one in made.items() if one.patch.source == "analysts"}
        by_others = {number: one for number, one in made.items() if number not in by_analysts}
        trials: list[screen.Trial] = []
        for group in (by_analysts, by_others):
            if not (trials and trials[0].promising):
                found = await screen.compete(
                    self.job, self.number, self.base, group, items, self.params.screen_items, self.training.metric
                )
                trials = [*found, *trials]
        return trials

    async def update(self, number: int, patch: Patch) -> Update:
        """The candidate a patch comes to, within the edit budget."""
        training, limit = self.training, self.limit
        if self.params.budget_control == "autonomous" and patch.source == "analysts" and training.mode.clipped:
            limit = self.limit = await select.choose_budget(
                training.desk, self.number, patch, self.scheduled, self.shown
            )
        clipped = await select.clip(training.desk, self.number, patch, budget=limit, shown=self.shown)
        if any(isinstance(change, Suggestion) for change in clipped.edits):
            clipped = await write_from_suggestions(training.desk, self.number, number, clipped, self.shown)
            if not clipped.edits:
                unchanged = Revision(self.base, self.base, ())
                return Update(clipped, unchanged, problem="the optimizer wrote no document that can be used")
        return update(
            self.base, clipped, training.limits, training.leaks, {tried.digest for tried in self.state.history}
        )

    async def decide(self, chosen: Update) -> tuple[str, Comparison | None]:
        """Put the chosen revision before the gate, and let it replace the current candidate if it passes."""
        job, state, training = self.job, self.state, self.training
        self.revised(chosen, replace(chosen.patch, edits=(*state.draft_edits, *chosen.patch.edits)))
        if chosen.refusal is not None:
            state.history.append(Tried(chosen.patch.exact, chosen.candidate.digest, False, self.number))
            return f"skip_{chosen.refusal}", None
        with job.stage(self.number, "gate"):
            comparison = await training.judge(self.number, chosen.candidate, state.current)
            verdict = comparison.verdict
            state.history.append(Tried(chosen.patch.exact, chosen.candidate.digest, verdict.accepted, self.number))
            if verdict.accepted:
                await training.accept(self.number, chosen.candidate, comparison)
                return "accept", comparison
        keep = self.params.drafts and self.not_seen_worse(comparison)
        changes = (*state.draft_edits, *chosen.applied)
        state.draft, state.draft_edits = (chosen.candidate, changes) if keep else (None, ())
        return "draft" if keep else "reject", comparison

    def not_seen_worse(self, comparison: Comparison) -> bool:
        """Whether nothing speaks against a draft. Where the gate gave up before it compared anything, the train items speak;
        where none were tried, that the gate looked and found too little to prove."""
        effect = comparison.verdict.effect
        if effect is not None:
            return effect >= 0.0
        return self.promising or (self.untried and comparison.rollouts > 0)

    def revised(self, chosen: Update, whole: Patch) -> None:
        edits = [{key: value for key, value in edit.record().items() if key != "texts"} for edit in whole.edits]
        report = [row.record() for row in chosen.revision.rows]
        leaks = [[leak.item_id, leak.split, leak.kind, leak.match] for leak in chosen.leaks]
        self.job.emit(Revised(self.number, chosen.candidate.digest, edits, report, leaks, dict(chosen.texts)))

    def remember(
        self, attempts: Attempts, ideas: Reflections, chosen: Update | None, comparison: Comparison | None, action: str
    ) -> None:
        """What later steps are told of this one."""
        counts = (len(attempts.evaluation.items), len(attempts.failures))
        seen = Remembered(self.number, self.epoch, action, *counts, ideas.patterns, refused=self.refused)
        if chosen is not None and comparison is not None:
            verdict = comparison.verdict
            effect = (verdict.effect, verdict.low, verdict.high)
            rejected = chosen.patch.edits if action == "reject" else ()
            before, after = comparison.old_score, comparison.new_score
            seen = replace(
                seen, before=before, after=after, effect=effect[0], low=effect[1], high=effect[2], rejected=rejected
            )
        self.state.memory.add(seen)

    def tell(self, attempts: Attempts, action: str) -> None:
        state, found = self.state, attempts.evaluation
        self.job.emit(
            StepDone(
                self.number, self.epoch, action, found.mean, mean_of(found.soft), state.current.digest,
                state.current_score, state.best.digest, state.best_score, state.best_step, state.unscored,
            )
        )  # fmt: skip
