"""The texts of a job's candidates, by digest: from its checkpoints, and from the changes that lead to the others.

What was put before the gate and turned down is not saved; it is the step's base with the step's changes made once more.
Every text found is checked against its digest, so what is here is what was measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sharpen.bench.compat.source import Source
from sharpen.bench.compat.story import Line, Piece, Span
from sharpen.core.candidate import Candidate
from sharpen.core.errors import UsageError
from sharpen.engine import checkpoints
from sharpen.skill.edits import Edit, Limits, Op, apply
from sharpen.skill.protected import APPENDIX, SLOW_UPDATE, content_of, with_content


@dataclass
class Texts:
    _known: dict[str, Candidate] = field(default_factory=dict)

    def get(self, digest: str | None) -> Candidate | None:
        return None if digest is None else self._known.get(digest)

    def add(self, candidate: Candidate | None) -> None:
        if candidate is not None:
            self._known[candidate.digest] = candidate


def base_of(span: Span) -> str | None:
    """The candidate a step's rollouts were made with, and its changes start from."""
    rolled = next((line for line in span.all("measured") if line["purpose"] == "train"), None)
    return None if rolled is None else str(rolled["groups"][0]["candidate"])


def find_texts(source: Source, pieces: Sequence[Span]) -> Texts:
    """All texts that can be found."""
    texts = Texts()
    for line in source.lines:
        if line["type"] == "checkpointed":
            texts.add(_saved(source, line))
    limits = Limits(max_length=source.params["max_length"], max_change=source.params["max_change"])
    draft: Candidate | None = None
    for span in pieces:
        if span.piece is Piece.STEP:
            draft = _after_step(texts, span, limits, draft)
        elif span.piece is Piece.EPOCH:
            draft = _after_epoch(texts, span, draft)
        texts.add(draft)
    return texts


def _saved(source: Source, line: Line) -> Candidate | None:
    try:
        found = checkpoints.load(checkpoints.path_in(source.folder, line["path"]))
    except UsageError:
        return None
    return found if found.digest == line["candidate"] else None


def _after_step(texts: Texts, span: Span, limits: Limits, draft: Candidate | None) -> Candidate | None:
    """Find what the step put forward; returns the draft the next step builds on."""
    revised, made = span.first("revised"), None
    base = texts.get(base_of(span))
    if revised is not None and base is not None:
        made = _revised(base, revised, limits)
        texts.add(made)
    action = "" if span.done is None else span.done["action"]
    if action in ("draft", "accept", "reject"):
        draft = made if action == "draft" else None
    noted = span.first("notes_kept")
    return draft if noted is None else _with_region(draft, texts.get(noted["candidate"]), APPENDIX)


def _after_epoch(texts: Texts, span: Span, draft: Candidate | None) -> Candidate | None:
    updated = span.first("slow_updated")
    if updated is None or updated["candidate"] is None:
        return draft
    current = texts.get(updated["current"])
    if current is not None:
        text = with_content(current.text, SLOW_UPDATE, updated["content"])
        made = current.with_part(current.main, text)
        texts.add(made if made.digest == updated["candidate"] else None)
    taken = updated["action"] in ("accept", "force_accept")
    return _with_region(draft, texts.get(updated["candidate"]), SLOW_UPDATE) if taken else draft


def _revised(base: Candidate, revised: Line, limits: Limits) -> Candidate | None:
    texts = revised.get("texts") or {}
    if texts:
        made = Candidate({**base.parts, **texts})
    else:
        new = revised["edits"][len(revised["edits"]) - len(revised["report"]) :]
        made = apply(base, [edit_of(record) for record in new], limits).after
    return made if made.digest == revised["candidate"] else None


def edit_of(record: Line) -> Edit:
    """An edit as it stands in events."""
    return Edit(
        Op(record["op"]), record["content"], record["target"], record["part"], record["support"], record["source"],
        tuple(record.get("items", ())),
    )  # fmt: skip


def _with_region(draft: Candidate | None, current: Candidate | None, name: str) -> Candidate | None:
    """The draft with a protected region as it stands in the current candidate, where both are known."""
    if draft is None or current is None:
        return draft
    return draft.with_part(draft.main, with_content(draft.text, name, content_of(current.text, name)))


def skill_files(path: str, candidate: Candidate | None) -> Iterable[tuple[str, str]]:
    """A candidate as the classic single document, its further parts in a folder of the same name beside it."""
    if candidate is None:
        return
    yield f"{path}.md", candidate.text
    for part in candidate:
        if part != candidate.main:
            yield f"{path}/{checkpoints.safe_part(part)}", candidate[part]
