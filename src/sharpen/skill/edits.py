"""Bounded edits of a candidate: what an edit is, when it is refused, and the report of what was applied.

Edits are applied one after another, each seeing what the earlier ones left. An edit is applied exactly as it says or
not at all: a target must stand in the part exactly once, protected regions must not be touched, caps must hold. Every
edit gets one row in the report, applied or refused, with the reason; nothing is repaired, guessed or moved elsewhere.
Pure: a candidate goes in, a `Revision` comes out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from sharpen.core.candidate import Candidate
from sharpen.core.digest import Json, digest
from sharpen.core.errors import UsageError
from sharpen.skill import examples
from sharpen.skill.document import Region, has_marker, regions
from sharpen.skill.kinds import problem
from sharpen.skill.splice import Splice, end_of, insertion, occurrences, removal, substitution, unit


class Op(StrEnum):
    APPEND = "append"
    INSERT_AFTER = "insert_after"
    INSERT_BEFORE = "insert_before"
    REPLACE = "replace"
    DELETE = "delete"


class Status(StrEnum):
    """What became of an edit. All but the first mean that nothing was changed by it."""

    APPLIED = "applied"
    INCOMPLETE = "incomplete"  # lacks the content or the target its operation needs
    UNKNOWN_PART = "unknown_part"
    NOT_FOUND = "not_found"
    AMBIGUOUS = "ambiguous"
    PROTECTED = "protected"
    MARKER = "marker"  # would bring, break or move a marker of a protected region
    BREAKS_EXAMPLE = "breaks_example"
    BREAKS_PART = "breaks_part"  # code, data or a number would no longer be one
    NO_CHANGE = "no_change"  # what it says stands there already
    TOO_MANY = "too_many"
    TOO_LONG = "too_long"
    TOO_MUCH = "too_much"


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of one part (`None`: the main part). `support` counts the attempts that speak for it, `source` names
    who proposed it, `items` the attempts' items; these three do not change what it does."""

    op: Op
    content: str = ""
    target: str = ""
    part: str | None = None
    support: int = 1
    source: str = ""
    items: tuple[str, ...] = field(default=())

    @property
    def key(self) -> str:
        """Identity by effect: two edits with the same key do the same."""
        return digest([self.op.value, self.content, self.target, self.part])

    def record(self) -> dict[str, Json]:
        """The form that is kept in events and files."""
        return {
            "op": self.op.value,
            "content": self.content,
            "target": self.target,
            "part": self.part,
            "support": self.support,
            "source": self.source,
            "items": list(self.items),
        }


@dataclass(frozen=True, slots=True)
class Limits:
    """Caps, each None for none. `max_length` counts the characters of all parts, and never stops an edit that shortens;
    `max_change` and `max_share` cap what all edits of one step insert and delete, in characters and relative to the
    length before the step; `max_edits` caps how many are applied. `new_parts` lets an append create a part."""

    max_length: int | None = 20_000
    max_change: int | None = 8_000
    max_share: float | None = None
    max_edits: int | None = None
    new_parts: bool = False

    def __post_init__(self) -> None:
        for name in ("max_length", "max_change", "max_share", "max_edits"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise UsageError(f"{name} must not be negative, got {value}")


@dataclass(frozen=True, slots=True)
class Row:
    """The report on one edit. `chars` is how many characters it deleted and inserted, 0 when refused."""

    index: int
    op: Op
    part: str
    status: Status
    message: str
    chars: int = 0

    def record(self) -> dict[str, Json]:
        return {
            "index": self.index,
            "op": self.op.value,
            "part": self.part,
            "status": self.status.value,
            "message": self.message,
            "chars": self.chars,
        }


@dataclass(frozen=True, slots=True)
class Revision:
    """A candidate before and after a list of edits, with one row per edit. Unless `changed`, there is nothing to try."""

    before: Candidate
    after: Candidate
    rows: tuple[Row, ...]

    @property
    def changed(self) -> bool:
        return self.after.digest != self.before.digest

    @property
    def complete(self) -> bool:
        """Whether every edit was applied."""
        return all(row.status is Status.APPLIED for row in self.rows)

    @property
    def applied(self) -> tuple[int, ...]:
        """The numbers of the edits that were applied."""
        return tuple(row.index for row in self.rows if row.status is Status.APPLIED)


class _Refused(Exception):
    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status


NO_LIMITS = Limits(None, None)
DEFAULT_LIMITS = Limits()


def apply(candidate: Candidate, edits: Sequence[Edit], limits: Limits = DEFAULT_LIMITS) -> Revision:
    """Apply the edits in order. Markers that do not pair up in an edited part of the candidate are a `UsageError`."""
    current, rows, spent, done = candidate, [], 0, 0
    for index, edit in enumerate(edits):
        part = candidate.main if edit.part is None else edit.part
        try:
            if limits.max_edits is not None and done >= limits.max_edits:
                raise _Refused(Status.TOO_MANY, f"{limits.max_edits} edits are applied already, which is the most")
            splice = _planned(current, part, edit, limits)
            text = current.parts.get(part, "")
            chars = splice.size(text)
            after = current.with_part(part, splice.on(text))
            _within_caps(candidate, current, after, spent + chars, limits)
        except _Refused as refusal:
            rows.append(Row(index, edit.op, part, refusal.status, str(refusal)))
            continue
        current, spent, done = after, spent + chars, done + 1
        rows.append(Row(index, edit.op, part, Status.APPLIED, "", chars))
    return Revision(candidate, current, tuple(rows))


def without(candidate: Candidate, edits: Sequence[Edit], index: int, limits: Limits = DEFAULT_LIMITS) -> Revision:
    """Apply all edits but one, to see what that one brought. An edit that builds on the missing one is refused."""
    return apply(candidate, [edit for number, edit in enumerate(edits) if number != index], limits)


def _planned(candidate: Candidate, part: str, edit: Edit, limits: Limits) -> Splice:
    """The splice an edit comes to, after every check that does not depend on the other edits of the step."""
    _check_form(candidate, part, edit, limits)
    text = candidate.parts.get(part, "")
    protected = regions(text, part)
    splice = _located(text, protected, edit)
    touched = next((region for region in protected if region.touches(*splice.core)), None)
    if touched is not None:
        raise _Refused(Status.PROTECTED, f"would change the protected region {touched.name!r}")
    after = splice.on(text)
    if after == text or (edit.op not in (Op.REPLACE, Op.DELETE) and _stands(text, edit.content)):
        raise _Refused(Status.NO_CHANGE, "the part says this already")
    if _guarded(after) != [text[region.start : region.end] for region in protected]:
        raise _Refused(Status.MARKER, "would make or break a marker of a protected region")
    broken = problem(part, after)
    if broken is not None and problem(part, text) is None:
        raise _Refused(Status.BREAKS_PART, broken)
    if not _keeps_examples(text, splice):
        raise _Refused(Status.BREAKS_EXAMPLE, "would leave a worked example that can no longer be read")
    return splice


def _check_form(candidate: Candidate, part: str, edit: Edit, limits: Limits) -> None:
    if part not in candidate.parts:
        if not (limits.new_parts and edit.op is Op.APPEND):
            raise _Refused(Status.UNKNOWN_PART, f"no part {part!r}; the parts are {', '.join(candidate)}")
        if not _is_plain_path(part):
            raise _Refused(
                Status.UNKNOWN_PART, f"{part!r} cannot be a part: a relative path such as notes/dates.md can"
            )
    if edit.op is not Op.DELETE and not edit.content.strip():
        raise _Refused(Status.INCOMPLETE, f"{edit.op} needs content{'; use delete' if edit.op is Op.REPLACE else ''}")
    if edit.op is not Op.APPEND and not edit.target.strip():
        raise _Refused(Status.INCOMPLETE, f"{edit.op} needs a target")
    if edit.op is not Op.DELETE and has_marker(edit.content):
        raise _Refused(Status.MARKER, "the content holds a marker of a protected region")


def _located(text: str, protected: tuple[Region, ...], edit: Edit) -> Splice:
    content = edit.content.strip("\n")
    if edit.op is Op.APPEND:
        return insertion(text, end_of(text, protected), content, near="none")
    found = occurrences(text, edit.target)
    if len(found) != 1:
        status = Status.AMBIGUOUS if found else Status.NOT_FOUND
        times = f"{len(found)} times" if found else "nowhere"
        raise _Refused(status, f"the target stands {times} in the part; it must stand there exactly once")
    start, end = found[0], found[0] + len(edit.target)
    if edit.op is Op.DELETE:
        return removal(text, start, end)
    if edit.op is Op.REPLACE:
        return substitution(text, start, end, edit.content)
    core = edit.target.strip("\n")
    start = text.index(core, start)
    first, last = unit(text, start, start + len(core))
    if edit.op is Op.INSERT_AFTER:
        return insertion(text, last, content, near="left")
    return insertion(text, first, content, near="right")


def _within_caps(start: Candidate, before: Candidate, after: Candidate, spent: int, limits: Limits) -> None:
    if limits.max_length is not None and after.length > max(limits.max_length, before.length):
        raise _Refused(
            Status.TOO_LONG, f"would make the candidate {after.length} characters long; the most is {limits.max_length}"
        )
    allowed = limits.max_change
    if limits.max_share is not None:
        share = int(limits.max_share * start.length)
        allowed = share if allowed is None else min(allowed, share)
    if allowed is not None and spent > allowed:
        raise _Refused(
            Status.TOO_MUCH, f"would bring the change of this step to {spent} characters; the most is {allowed}"
        )


def _stands(text: str, content: str) -> bool:
    """Whether the content already stands in the text as whole lines."""
    wanted = content.strip("\n")
    return f"\n{wanted}\n" in f"\n{text}\n"


def _guarded(text: str) -> list[str] | None:
    """The protected stretches of a text, None where the markers no longer pair up."""
    try:
        return [text[region.start : region.end] for region in regions(text)]
    except UsageError:
        return None


def _keeps_examples(text: str, splice: Splice) -> bool:
    """Whether every worked example the splice does not wholly cover, and every one it brings, can be read afterwards."""
    start, end = splice.core
    spans = examples.spans(text)
    untouched = [text[first:last] for first, last in spans if last <= start or end <= first]
    covered = sum(start <= first and last <= end for first, last in spans)
    brought = examples.blocks(splice.insert)
    found = Counter(examples.blocks(splice.on(text)))
    return Counter(untouched + brought) <= found and found.total() >= len(spans) - covered + len(brought)


def _is_plain_path(name: str) -> bool:
    pieces = name.split("/")
    return all(piece.strip(". ") == piece and piece.isprintable() and piece for piece in pieces) and not (
        set(name) & set('\\:*?"<>|')
    )
