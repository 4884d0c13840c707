"""The appendix of skill-aware reflection: reminders for rules the document has and the agent did not follow.

Notes are collected in a protected region at the document's end, each once. Past a threshold the optimizer makes fewer of
them, and its version is kept only if it is shorter. They go in after a step's decision and without proof of their own, so
the candidate counts as unscored until it is measured; notes that give an item away are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sharpen.core.candidate import Candidate
from sharpen.skill.protected import APPENDIX, content_of, with_content, without_markers
from sharpen.trainers.reflact.answers import NotesAnswer
from sharpen.trainers.reflact.events import NotesKept
from sharpen.trainers.reflact.training import Training


async def keep_notes(training: Training, step: int, notes: Sequence[str]) -> None:
    """Add the notes of a step to the current candidate, and to the draft that builds on it."""
    state = training.state
    before = notes_of(state.current)
    wanted = [note for note in united([*before, *notes]) if note not in before]
    added = [note for note in wanted if not training.leaks.find(state.current, _with(state.current, [*before, note]))]
    if not added:
        return
    kept, threshold = [*before, *added], training.params.consolidate_threshold
    fewer = None
    if threshold and len(kept) > threshold:
        with training.job.stage(step, "appendix"):
            fewer = await _consolidated(training, step, kept)
    candidate = _with(state.current, fewer or kept)
    draft = None if state.draft is None else _with(state.draft, fewer or kept)
    if max(one.length for one in (candidate, draft or candidate)) > training.params.max_length:
        return
    training.force(candidate, "appendix")
    state.draft = draft
    training.job.emit(NotesKept(step, added, len(fewer or kept), fewer is not None, candidate.digest))
    training.job.checkpoint(candidate, step, {"unscored": state.unscored}, name=f"notes_{step:04d}")


def notes_of(candidate: Candidate) -> list[str]:
    lines = content_of(candidate.text, APPENDIX).splitlines()
    return [line.strip().removeprefix("- ") for line in lines if line.strip().startswith("- ")]


def united(notes: Iterable[str]) -> list[str]:
    """Every note once, in order; case, spaces and a full stop at the end make no difference."""
    found: dict[str, str] = {}
    for note in notes:
        clean = " ".join(without_markers(note).split())
        if clean:
            found.setdefault(clean.casefold().rstrip("."), clean)
    return list(found.values())


async def _consolidated(training: Training, step: int, notes: list[str]) -> list[str] | None:
    """Fewer notes that say the same; None where the optimizer brought nothing shorter."""
    data = {"stage": "consolidate", "skill": training.state.current.text, "notes": notes}
    answer = await training.desk.ask(["consolidate"], data, NotesAnswer, ("consolidate", step))
    if answer.error is not None:
        return None
    written: NotesAnswer = answer.value
    fewer = united(written.notes)
    current = training.state.current
    leaks = training.leaks.find(current, _with(current, fewer))
    return fewer if fewer and not leaks and sum(map(len, fewer)) < sum(map(len, notes)) else None


def _with(candidate: Candidate, notes: Sequence[str]) -> Candidate:
    heading = "Rules that were not always followed:"
    content = "\n".join([heading, "", *(f"- {note}" for note in notes)])
    return candidate.with_part(candidate.main, with_content(candidate.text, APPENDIX, content))
