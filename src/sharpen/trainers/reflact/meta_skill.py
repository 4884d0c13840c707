"""The meta skill: the optimizer's notebook on what kind of change works for this document.

It is written anew at each epoch's end, goes along with every question of the next epoch, and is never part of a candidate.
"""

from __future__ import annotations

from sharpen.core.candidate import Candidate
from sharpen.trainers.reflact.answers import GuidanceAnswer
from sharpen.trainers.reflact.events import MetaSkillWritten
from sharpen.trainers.reflact.pairs import LongView
from sharpen.trainers.reflact.training import Training


async def write_meta_skill(training: Training, epoch: int, previous: Candidate, view: LongView) -> None:
    """Ask for the notebook after an epoch, and keep it."""
    data = {
        "stage": "meta_skill",
        "task": training.job.task.brief.description,
        "skill": training.state.current.text,
        "previous_skill": previous.text,
        "notebook": training.desk.meta_skill,
        "memory": training.state.memory.told(epoch),
        "counts": view.counts(),
        "pairs": [pair.shown() for pair in view.pairs],
    }
    answer = await training.desk.ask(["meta_skill"], data, GuidanceAnswer, ("meta_skill", epoch))
    if answer.error is not None:
        action, reasons = "lost_answer", ""
    else:
        told: GuidanceAnswer = answer.value
        action, reasons = "written", told.reasons
        training.desk.meta_skill = told.content.strip()
    training.job.emit(MetaSkillWritten(epoch, action, reasons, training.desk.meta_skill))
