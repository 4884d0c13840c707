"""Instruction lines: from what the scorer remarked, from the form of the answers, from the task's description of itself.

One line per proposal, as a list item of the section "## Rules" (made before the examples where there is none). Lines the
scorer's remarks speak for come first; lines that were turned down before come last.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sharpen.skill import examples
from sharpen.skill.document import find_section, lines
from sharpen.skill.edits import Edit, Op
from sharpen.trainers.reflact.proposers.base import Proposal, View, offered, rejections, unique
from sharpen.trainers.reflact.proposers.feedback import lines_from_answers, lines_from_feedback

SECTION = "Rules"


@dataclass(frozen=True)
class InstructionsProposer:
    """`alternatives` proposals a step, one line each."""

    alternatives: int = 3
    name: str = "instructions"

    def propose(self, view: View) -> list[Proposal]:
        if not view.failures:
            return []
        present = {_plain(line.text) for line in lines(examples.parse(view.candidate.text).instructions)}
        turned_down = rejections(view)
        wanted = [entry for entry in self._lines(view) if _plain(entry[0]) not in present]
        wanted.sort(key=lambda entry: turned_down[f"- {entry[0]}"] + turned_down[f"## {SECTION}\n\n- {entry[0]}"])
        proposals = (
            Proposal((edit,), f"{why}: {line}", support, self.name)
            for line, support, why in wanted
            for edit in _placed(view.candidate.text, line, support, self.name)
        )
        return offered(view, proposals, self.alternatives)

    @staticmethod
    def _lines(view: View) -> Iterator[tuple[str, int, str]]:
        """Every line there is, once, with its support and where it comes from."""
        everyone = len(view.failures)
        described = [*lines_from_answers(view.pool), *map(_one_line, view.brief.instructions)]
        if view.brief.answer_format:
            described.append(f"Answer format: {_one_line(view.brief.answer_format)}")
        remarked = [(line, support, "the scorer's remarks") for line, support in lines_from_feedback(view.failures)]
        offered_lines = [(line, everyone, "the task's description") for line in view.rng.shuffled(described)]
        # Strongest remark first, then in turns, so that neither source crowds out the other.
        for turn in range(max(len(remarked), len(offered_lines))):
            yield from remarked[turn : turn + 1]
            yield from offered_lines[turn : turn + 1]


def _placed(text: str, line: str, support: int, source: str) -> Iterator[Edit]:
    """The edit that puts the line where it belongs: below the other rules, or in a new section before the examples."""
    rules = find_section(text, SECTION)
    if rules is not None:
        own = [entry for entry in lines(text[: rules.end]) if entry.start >= rules.start and entry.text.strip()]
        target = unique(text, own[-1].start, own[-1].end)
        if target is not None:
            yield Edit(Op.INSERT_AFTER, f"- {line}", target, support=support, source=source)
        return
    content = f"## {SECTION}\n\n- {line}"
    shown = find_section(text, "Examples")
    if shown is None:
        yield Edit(Op.APPEND, content, support=support, source=source)
        return
    target = unique(text, shown.start, shown.start + len(text[shown.start : shown.body].rstrip("\n")))
    if target is not None:
        yield Edit(Op.INSERT_BEFORE, content, target, support=support, source=source)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _plain(line: str) -> str:
    return line.strip().removeprefix("- ").casefold()
