"""Other versions of a program: constants, operators, expressions and statements of its syntax tree changed at random.

It needs no model and knows nothing of what a program is for. A proposal makes one to four small changes, each an edit
of the lines it concerns. What history tells is used twice: numbers are changed as often as changing them alone has paid
off, beside changing the structure; and steps get smaller where few changes are accepted, larger where many are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sharpen.core.rng import Stream
from sharpen.skill.edits import Edit, Op
from sharpen.trainers.reflact.proposers.base import Proposal, Tried, View, offered
from sharpen.trainers.reflact.proposers.mutations import CONSTANTS, KINDS, NUMBERS, Change, Program, Site

_MOST = 4
"""The most changes in one proposal."""
_RECENT = 120
_FURTHER, _LATEST = 0.15, 12
"""How often a change that paid off is carried further, and how many of the latest come into question."""
_TRIES = 6
"""Draws per alternative that is wanted; more would not find what is not there."""
_NUMBER = re.compile(r"-?\b\d+(?:\.\d*)?(?:e[-+]?\d+)?\b|-?\.\d+\b", re.IGNORECASE)


@dataclass(frozen=True)
class SyntaxProposer:
    """Other versions of a program, changed in its syntax tree: constants, operators, expressions, statements.

    `alternatives` proposals a step, for the candidate's `.py` parts.
    """

    alternatives: int = 16
    name: str = "syntax"

    def propose(self, view: View) -> list[Proposal]:
        parts = [part for part in view.candidate.parts if part.endswith(".py")]
        if not parts or not view.failures:
            return []
        return offered(view, self._ideas(view, parts), self.alternatives)

    def _ideas(self, view: View, parts: Sequence[str]) -> Iterator[Proposal]:
        habit = habit_of(view.history)
        sites = {part: _sites(view.candidate[part]) for part in parts}
        paid_off = [edit for tried in view.history[-_RECENT:] if tried.accepted for edit in tried.edits]
        for _ in range(_TRIES * self.alternatives):
            part = view.rng.choice(parts)
            if paid_off and view.rng.random() < _FURTHER:
                edit = further(view.rng.choice(paid_off[-_LATEST:]), view.rng)
                if edit is not None:
                    yield Proposal((edit,), f"further: {edit.content.strip()}", 1, self.name)
                continue
            count = min(view.rng.choice((1, 1, 1, 2, 2, 3, _MOST)), view.budget)
            changes = _drawn(sites[part], count, habit, view.rng)
            found = self._proposal(view.candidate[part], part, changes)
            if found is not None:
                yield found

    def _proposal(self, text: str, part: str, changes: Sequence[Change]) -> Proposal | None:
        """The changes as edits, one each; from the last place to the first, so that none moves the place of another."""
        edits: list[Edit] = []
        for change in changes:
            after = change.on(text.encode()).decode()
            edit = edit_between(text, after, part, self.name) if after != text else None
            if edit is None:
                return None
            edits.append(edit)
            text = after
        return Proposal(tuple(edits), "; ".join(change.reason for change in changes), 1, self.name) if edits else None


@dataclass(frozen=True, slots=True)
class Habit:
    """What earlier proposals tell: how likely a change of numbers is to be worth it, and how large steps should be."""

    numbers: float = 0.5
    boldness: float = 0.0


def habit_of(history: Sequence[Tried]) -> Habit:
    """From what became of the latest proposals to what to try next."""
    recent = [tried for tried in history[-_RECENT:] if tried.edits]
    if not recent:
        return Habit()
    rates = []
    for numeric in (True, False):
        own = [tried.accepted for tried in recent if all(map(only_numbers, tried.edits)) == numeric]
        rates.append((sum(own) + 0.5) / (len(own) + 5.0))
    accepted = sum(tried.accepted for tried in recent) / len(recent)
    return Habit(min(0.8, max(0.3, rates[0] / sum(rates))), -0.5 if accepted < 0.05 else 0.0)


def only_numbers(edit: Edit) -> bool:
    """Whether an edit leaves everything but numbers as it was."""
    return _NUMBER.sub("0", edit.target) == _NUMBER.sub("0", edit.content)


def further(edit: Edit, rng: Stream) -> Edit | None:
    """A change of numbers that paid off, a stretch further in the same direction; None where it changed anything else."""
    old, new = _NUMBER.findall(edit.target), _NUMBER.findall(edit.content)
    if not only_numbers(edit) or old == new:
        return None
    stretch = rng.choice((0.5, 1.0, 2.0))
    moved = iter(
        [now if now == was else _on(float(was), float(now), stretch) for was, now in zip(old, new, strict=True)]
    )
    return replace(edit, target=edit.content, content=_NUMBER.sub(lambda _: next(moved), edit.content))


def _on(was: float, now: float, stretch: float) -> str:
    value = now + stretch * (now - was)
    return str(round(value)) if was.is_integer() and now.is_integer() else repr(float(f"{value:.6g}"))


def edit_between(old: str, new: str, part: str, source: str) -> Edit | None:
    """The edit that makes `new` of `old` and touches no more lines than it must; None where lines can't tell the place."""
    before, after = old.split("\n"), new.split("\n")
    most = min(len(before), len(after))
    head = next((n for n in range(most) if before[n] != after[n]), most)
    tail = next((n for n in range(most - head) if before[-1 - n] != after[-1 - n]), most - head)
    while True:
        target = "\n".join(before[head : len(before) - tail])
        content = "\n".join(after[head : len(after) - tail])
        if target.strip() and content.strip() and old.count(target) == 1:
            return Edit(Op.REPLACE, content, target, part, source=source)
        if head == 0 and tail == 0:
            return None
        head, tail = max(0, head - 1), max(0, tail - 1)


def _sites(text: str) -> dict[str, list[Site]]:
    """By kind: where a program can be changed; nowhere where it is none."""
    if "\r" in text:
        return {}  # Python counts its lines otherwise than we do
    try:
        found = Program(text).sites()
    except (SyntaxError, ValueError, RecursionError):
        return {}
    return {kind: own for kind in KINDS if (own := [site for site in found if site.kind == kind])}


def _drawn(sites: Mapping[str, Sequence[Site]], count: int, habit: Habit, rng: Stream) -> list[Change]:
    """Up to `count` changes that do not meet, the last one in the text first. Either numbers alone are changed, or anything
    else, each kind as likely as the others however many places it has."""
    numeric = rng.random() < habit.numbers
    kinds = [kind for kind in sites if (kind in (NUMBERS, CONSTANTS)) == numeric] or list(sites)
    if not kinds:
        return []
    found: list[Change] = []
    for _ in range(count):
        change = rng.choice(sites[rng.choice(kinds)]).make(rng, habit.boldness)
        if change is not None and all(change.end <= other.start or other.end <= change.start for other in found):
            found.append(change)
    return sorted(found, key=lambda change: -change.start)
