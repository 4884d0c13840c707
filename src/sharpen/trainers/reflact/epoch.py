"""The end of an epoch: the long view over it, as guidance in the document and as a notebook for the optimizer.

There is nothing to look back on after the first epoch, and nobody to look without an optimizer model; then it is only
recorded where the epoch ended.
"""

from __future__ import annotations

from sharpen.trainers.reflact.events import EpochDone, SlowUpdated
from sharpen.trainers.reflact.meta_skill import write_meta_skill
from sharpen.trainers.reflact.pairs import look_back
from sharpen.trainers.reflact.slow_update import slow_update
from sharpen.trainers.reflact.training import Training


async def end_epoch(training: Training, step: int) -> None:
    """Slow update, meta skill, and a line in the story."""
    state, params, epoch = training.state, training.params, training.epoch_of(step)
    if state.epoch_ends and training.desk.open and (params.slow_update or params.meta_skill):
        await _long_view(training, epoch, step)
    state.epoch_ends.append(state.current)
    scores = (state.current_score, state.best.digest, state.best_score, state.unscored)
    training.job.emit(EpochDone(epoch, step, state.current.digest, *scores))


async def _long_view(training: Training, epoch: int, step: int) -> None:
    state, params, job = training.state, training.params, training.job
    previous, policy = state.epoch_ends[-1], params.longitudinal_pair_policy
    if previous == state.current and policy == "changed":
        if params.slow_update:
            digest = state.current.digest
            job.emit(SlowUpdated(epoch, step, "same_candidate", policy, digest, digest, [], 0))
        return
    with job.stage(step, "slow_update"):
        samples = params.slow_update_samples
        view = await look_back(job, epoch, previous, state.current, samples=samples, policy=policy)
        if params.slow_update:
            await slow_update(training, epoch, step, previous, view)
    if params.meta_skill:
        with job.stage(step, "meta_skill"):
            await write_meta_skill(training, epoch, previous, view)
