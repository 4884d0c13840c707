"""Where each line of a trained skill comes from: the step that brought it, and what that step was accepted on.

Everything here is a function of the story and of the saved candidates. The lineage of the best candidate is followed back
through accepted decisions to the start; a line keeps the origin it had in the candidate before, wherever it stands now, and
a line that was not there is the work of the step that made this candidate. Where a step builds on drafts, which are no
candidates of the lineage, the story's edits say in which of them the line was first written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sharpen.core.candidate import Candidate
from sharpen.skill.blocks import Block, blocks

Line = Mapping[str, Any]

START, STEP, SLOW_UPDATE, NOTES, FINAL_CHECK = "start", "step", "slow update", "notes", "final check"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a change was accepted on: the gate, and the effect it saw on val with its interval."""

    gate: str
    effect: float | None
    low: float | None
    high: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class Origin:
    """Who brought a line. `drafted` is the earlier step that wrote it, where it was a draft first. `evidence` is None for
    the start, and for what was put in without proof."""

    step: int
    how: str
    drafted: int | None = None
    evidence: Evidence | None = None


@dataclass(frozen=True)
class Attributed:
    """A block of the skill and where it comes from; of several lines, from where the newest does."""

    block: Block
    origin: Origin


@dataclass(frozen=True)
class Stage:
    """A candidate of the lineage, and how it came about."""

    candidate: Candidate
    origin: Origin


def attributed(lines: Sequence[Line], saved: Mapping[str, Candidate], best: Candidate) -> list[Attributed]:
    """The blocks of the best candidate in their order. `saved` are the candidates there are texts of, by digest."""
    found = lineage(lines, saved, best)
    origins = _origins(found, lines)
    made = []
    for block in blocks(best):
        own = [origins[block.part][number] for number in block.numbers]
        made.append(Attributed(block, max(own, key=lambda origin: origin.step)))
    return made


def lineage(lines: Sequence[Line], saved: Mapping[str, Candidate], best: Candidate) -> list[Stage]:
    """The candidates that led to the best one, the start first; those nobody saved are left out."""
    texts = {**saved, best.digest: best}
    start = next((line["candidate"] for line in lines if line["type"] == "job_started"), best.digest)
    chain: list[Stage] = []
    seen: set[str] = set()
    digest: str | None = best.digest
    while digest is not None and digest not in seen:
        seen.add(digest)
        at_start = digest == start
        if digest in texts:
            chain.append(Stage(texts[digest], Origin(0, START) if at_start else _origin(lines, digest)))
        digest = None if at_start else _before(lines, digest, seen)
    if start in texts and start not in seen:
        chain.append(Stage(texts[start], Origin(0, START)))
    return chain[::-1]


def _accepted(lines: Sequence[Line], digest: str) -> Line | None:
    """The decision that first let a candidate in."""
    return next(
        (line for line in lines if line["type"] == "decided" and line["new"] == digest and line["accepted"]), None
    )


def _checked_at_the_end(lines: Sequence[Line], digest: str, decided: Line | None) -> Line | None:
    """The final check that made a candidate the best one, where no step had let it in before. Its decision compares it
    with the start, which is not what it was made from."""
    checked = next((line for line in lines if line["type"] == "promoted" and line["candidate"] == digest), None)
    if checked is None or not checked["promoted"]:
        return None
    last = max((line["step"] for line in lines if line["type"] == "step_done"), default=0)
    return checked if decided is None or decided["step"] > last else None


def _before(lines: Sequence[Line], digest: str, seen: set[str]) -> str | None:
    """What a candidate was made from: what it was accepted against, else what was saved or current before it."""
    decided = _accepted(lines, digest)
    if _checked_at_the_end(lines, digest, decided) is not None:
        done = [line["current"] for line in lines if line["type"] == "step_done"]
        return next((current for current in reversed(done) if current not in seen), None)
    if decided is not None:
        old: str = decided["old"]
        return old
    earlier: list[str] = []
    for line in lines:
        if line["type"] == "checkpointed":
            if line["candidate"] == digest:
                break
            earlier.append(line["candidate"])
    return next((one for one in reversed(earlier) if one not in seen), None)


def _origin(lines: Sequence[Line], digest: str) -> Origin:
    decided = _accepted(lines, digest)
    checked = _checked_at_the_end(lines, digest, decided)
    if checked is not None:
        last = max((line["step"] for line in lines if line["type"] == "step_done"), default=0)
        reason = decided["reason"] if decided is not None else ""
        evidence = Evidence(FINAL_CHECK, checked["effect"], checked["low"], checked["high"], reason)
        return Origin(last, FINAL_CHECK, None, evidence)
    told = next((line for line in lines if line["type"] == "checkpointed" and line["candidate"] == digest), None)
    name = told["path"].rpartition("/")[2] if told is not None else ""
    how = SLOW_UPDATE if name.startswith("slow_update") else NOTES if name.startswith("notes") else STEP
    if decided is None:
        return Origin(told["step"] if told is not None else 0, how)
    evidence = Evidence(decided["gate"], decided["effect"], decided["low"], decided["high"], decided["reason"])
    return Origin(decided["step"], how, None, evidence)


def _origins(stages: Sequence[Stage], lines: Sequence[Line]) -> dict[str, list[Origin]]:
    """The origin of every line of the last candidate, by part and line number. Lines are the same where their text is, so
    that moving one changes nothing."""
    known: dict[str, list[tuple[str, Origin]]] = {}
    before = 0
    for stage in stages:
        drafts = _drafts(lines, before, stage.origin)
        fresh: dict[str, list[tuple[str, Origin]]] = {}
        for part, text in stage.candidate.parts.items():
            there: dict[str, list[Origin]] = defaultdict(list)
            for line, origin in known.get(part, ()):
                there[line].append(origin)
            fresh[part] = [
                (line, there[line].pop(0) if there[line] else _drafted(line, stage.origin, drafts))
                for line in (row.strip() for row in text.split("\n"))
            ]
        known, before = fresh, stage.origin.step
    return {part: [origin for _, origin in rows] for part, rows in known.items()}


def _drafts(lines: Sequence[Line], before: int, origin: Origin) -> list[Line]:
    """The revisions since the candidate before that were kept as drafts, newest first."""
    kept = {line["step"] for line in lines if line["type"] == "step_done" and line["action"] == "draft"}
    found = [line for line in lines if line["type"] == "revised" and before < line["step"] <= origin.step]
    return [line for line in reversed(found) if line["step"] in kept]


def _drafted(text: str, origin: Origin, drafts: Sequence[Line]) -> Origin:
    """The origin of a new line: its own step, or the earliest of an unbroken row of drafts that have it."""
    first: int | None = None
    for draft in drafts:
        written = [str(edit.get("content", "")) for edit in draft["edits"]] + list(draft["texts"].values())
        if not any(text == row.strip() for piece in written for row in piece.split("\n")):
            break
        first = draft["step"]
    if first is None or first == origin.step:
        return origin
    return Origin(origin.step, origin.how, first, origin.evidence)
