"""The slow update: at an epoch's end the optimizer looks at what the whole epoch came to, and keeps a section of its own.

The section is a protected region of the document that steps don't touch. A new text of it must pass the gate like any other
change; or, where that is switched off, it is forced in, and the candidate counts as unscored until it is measured.
"""

from __future__ import annotations

from dataclasses import dataclass

from sharpen.core.candidate import Candidate
from sharpen.skill.protected import SLOW_UPDATE, content_of, with_content
from sharpen.trainers.reflact.answers import GuidanceAnswer
from sharpen.trainers.reflact.events import SlowUpdated
from sharpen.trainers.reflact.pairs import LongView
from sharpen.trainers.reflact.training import Training


@dataclass(frozen=True)
class _Guidance:
    """What became of asking for it."""

    action: str
    candidate: Candidate | None = None
    reasons: str = ""
    content: str = ""


async def slow_update(training: Training, epoch: int, step: int, previous: Candidate, view: LongView) -> None:
    """Ask for the guidance, and put it in if it may."""
    current = training.state.current
    written = await _write(training, epoch, previous, view)
    action = written.action
    if written.candidate is not None:
        action = await _put_in(training, step, written.candidate, written.content)
    digest = None if written.candidate is None else written.candidate.digest
    training.job.emit(
        SlowUpdated(
            epoch, step, action, training.params.longitudinal_pair_policy, previous.digest, current.digest,
            [pair.row() for pair in view.pairs], view.tried, written.reasons, written.content, digest,
        )
    )  # fmt: skip


async def _write(training: Training, epoch: int, previous: Candidate, view: LongView) -> _Guidance:
    current = training.state.current
    if not view.pairs:
        return _Guidance("no_pairs")
    data = {
        "stage": "slow_update",
        "task": training.job.task.brief.description,
        "skill": with_content(current.text, SLOW_UPDATE, ""),
        "previous_skill": with_content(previous.text, SLOW_UPDATE, ""),
        "guidance": content_of(current.text, SLOW_UPDATE),
        "counts": view.counts(),
        "memory": training.state.memory.told(epoch),
        "pairs": [pair.shown() for pair in view.pairs],
    }
    answer = await training.desk.ask(["slow_update"], data, GuidanceAnswer, ("slow_update", epoch))
    if answer.error is not None:
        return _Guidance("lost_answer")
    told: GuidanceAnswer = answer.value
    content = told.content.strip()
    candidate = current.with_part(current.main, with_content(current.text, SLOW_UPDATE, content))
    if not content:
        return _Guidance("no_content", reasons=told.reasons)
    if candidate == current:
        return _Guidance("no_change", reasons=told.reasons, content=content)
    if candidate.length > max(training.params.max_length, current.length):
        return _Guidance("too_long", reasons=told.reasons, content=content)
    if training.leaks.find(current, candidate):
        return _Guidance("leak", reasons=told.reasons, content=content)
    return _Guidance("written", candidate, told.reasons, content)


async def _put_in(training: Training, step: int, candidate: Candidate, content: str) -> str:
    state = training.state
    draft = state.draft
    if training.params.slow_update_gate:
        comparison = await training.judge(step, candidate, state.current)
        if not comparison.verdict.accepted:
            return "reject"
        edits = state.draft_edits
        await training.accept(step, candidate, comparison, name=f"slow_update_{step:04d}")
        action = "accept"
    else:
        edits = state.draft_edits
        training.force(candidate, "slow update")
        training.job.checkpoint(candidate, step, {"unscored": state.unscored}, name=f"slow_update_{step:04d}")
        action = "force_accept"
    if draft is not None:
        grown = draft.with_part(draft.main, with_content(draft.text, SLOW_UPDATE, content))
        fits = grown.length <= max(training.params.max_length, draft.length)
        state.draft, state.draft_edits = (grown, edits) if fits else (None, ())
    return action
