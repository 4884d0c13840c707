"""The final check: may the candidate a training ended with take the best one's place?

That is a draft, or a candidate that was changed without proof. It becomes the best one if it did better on val than the
best one so far and the gate finds it proven better than the initial one; between the two of them nothing is claimed to be
proven.
"""

from __future__ import annotations

from sharpen.core.errors import BudgetExhausted
from sharpen.engine.evaluation import Group
from sharpen.engine.events import BudgetEnded
from sharpen.trainers.finish import paired_gain
from sharpen.trainers.reflact.events import Promoted
from sharpen.trainers.reflact.training import Training


def reserve(training: Training) -> None:
    """Set calls aside so that the final check can be paid for, where one would be due now: another draft on all val items,
    and of the candidates it is compared with what is not known yet."""
    job, items, check = training.job, training.val.deciding, 0
    if _due(training):
        against = {training.state.best, job.initial}
        known = sum(job.known(c, item, 0) is not None for c in against for item in items)
        check = (1 + len(against)) * len(items) - (0 if job.repeatable else known)
    job.budget.set_aside(training.aside + check * job.task.calls_per_rollout)
    if training.owed:
        job.budget.keep_time(training.owed + check)


async def promote(training: Training) -> bool:
    """Carry the final check out. False if the budget does not allow for it."""
    training.job.budget.set_aside(training.aside)
    training.job.budget.keep_time(training.owed, training=False)
    try:
        if _due(training):
            await _promote(training)
    except BudgetExhausted as error:
        training.job.emit(BudgetEnded(str(error)))
        return False
    return True


def _due(training: Training) -> bool:
    """Whether training would end with something else than the best one; a draft that the gate has just turned down
    against the initial candidate need not ask again."""
    state = training.state
    turned_down = state.draft is not None and state.current == training.job.initial
    return state.base != state.best and not turned_down


async def _promote(training: Training) -> None:
    job, state, metric = training.job, training.state, training.metric
    final, best = state.base, state.best
    with job.stage(training.steps, "promote"):
        groups = [Group(candidate, training.val.deciding) for candidate in (final, best)]
        found, against = await job.measure(groups, purpose="promote")
        gain = paired_gain(found, against, metric)
        promoted = gain.mean is not None and gain.mean > 0.0
        if promoted:
            promoted = (await training.judge(training.steps + 1, final, job.initial)).verdict.accepted
    score = metric.mean(found)
    job.emit(Promoted(final.digest, gain.mean, gain.low, gain.high, promoted, score))
    if final == state.current:
        state.current_score, state.unscored = score, ""
    if promoted:
        state.best, state.best_score, state.best_step = final, score, training.steps
