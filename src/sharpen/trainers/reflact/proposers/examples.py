"""Worked examples from the train split, chosen by what failed or drawn at random: added, or put in the place of others.

Each proposal adds two to four examples to the section "## Examples" (made where there is none), one edit per example, so
that each can be judged on its own later. Once three stand there, half of the proposals exchange one instead; once
`most` stand there, all do. Half of the choices are made by what failed and half at random: which examples teach a model is
not what looks alike on paper, and sets that all hold the same few leave the trials nothing to choose from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sharpen.skill import examples
from sharpen.skill.document import find_section
from sharpen.skill.edits import Edit, Op
from sharpen.trainers.reflact.proposers.base import Proposal, Shot, View, offered, unique
from sharpen.trainers.reflact.proposers.coverage import Coverage

SECTION = "Examples"
_ENOUGH_TO_SWAP = 3


@dataclass(frozen=True)
class ExamplesProposer:
    """`alternatives` proposals a step; `sizes` are how many examples they add, in turn; `most` may stand in the skill."""

    alternatives: int = 8
    sizes: tuple[int, ...] = (4, 3, 4, 2)
    most: int = 8
    name: str = "examples"

    def propose(self, view: View) -> list[Proposal]:
        present = examples.parse(view.candidate.text).examples
        inputs = {example.input for example in present}
        pool = [shot for shot in view.pool if shot.input not in inputs]
        if not (view.failures and pool):
            return []
        coverage = Coverage(view.failures, pool, view.rng)
        standing = [Shot("", example.input, example.output, "") for example in present]
        return offered(view, self._wanted(view, coverage, standing), self.alternatives)

    def _wanted(self, view: View, coverage: Coverage, standing: list[Shot]) -> Iterator[Proposal]:
        # Twice as many as are wanted, since some may have been tried before or may not apply.
        for turn in range(2 * self.alternatives):
            room = min(self.most - len(standing), view.budget)
            if room > 0 and (len(standing) < _ENOUGH_TO_SWAP or turn % 2 == 0):
                size = min(self.sizes[turn % len(self.sizes)], room)
                by_failures = turn % 4 < 2
                chosen = coverage.choose(size, standing, view.rng) if by_failures else coverage.draw(size, view.rng)
                yield from self._additions(view, coverage, chosen)
            elif standing:
                yield from self._swap(view, coverage, standing)

    def _additions(self, view: View, coverage: Coverage, chosen: list[Shot]) -> Iterator[Proposal]:
        support = [coverage.support(shot) for shot in chosen]
        edits = _placed(view.candidate.text, chosen, support, self.name)
        if edits:
            shown = ", ".join(repr(_short(shot.input)) for shot in chosen)
            yield Proposal(edits, f"add worked examples: {shown}", max(support), self.name)

    def _swap(self, view: View, coverage: Coverage, standing: list[Shot]) -> Iterator[Proposal]:
        leaving = view.rng.below(len(standing))
        staying = standing[:leaving] + standing[leaving + 1 :]
        block = examples.blocks(view.candidate.text)[leaving]
        by_failures = view.rng.below(2) == 1
        for shot in coverage.choose(1, staying, view.rng) if by_failures else coverage.draw(1, view.rng):
            support = coverage.support(shot)
            edit = Edit(Op.REPLACE, _block(shot), block, support=support, source=self.name, items=(shot.item_id,))
            reason = f"show {_short(shot.input)!r} in place of {_short(standing[leaving].input)!r}"
            yield Proposal((edit,), reason, support, self.name)


def _placed(text: str, chosen: list[Shot], support: list[int], source: str) -> tuple[Edit, ...]:
    """One edit per example: behind the last one of the section, or at the end of the document in a new section."""
    section = find_section(text, SECTION)
    if section is None:
        contents = [_block(shot) for shot in chosen]
        contents[0] = f"## {SECTION}\n\n{contents[0]}"
        return tuple(
            Edit(Op.APPEND, content, support=count, source=source, items=(shot.item_id,))
            for content, shot, count in zip(contents, chosen, support, strict=True)
        )
    inside = [span for span in examples.spans(text) if section.body <= span[0] and span[1] <= section.end]
    heading = (section.start, section.start + len(text[section.start : section.body].rstrip("\n")))
    target = unique(text, *(inside[-1] if inside else heading))
    if target is None:
        return ()
    # All go behind the same place, so the last in the document comes first: none depends on another being applied.
    return tuple(
        Edit(Op.INSERT_AFTER, _block(shot), target, support=count, source=source, items=(shot.item_id,))
        for shot, count in reversed(list(zip(chosen, support, strict=True)))
    )


def _block(shot: Shot) -> str:
    return examples.write(examples.Example(shot.input, shot.output))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 40 else line[:39] + "…"
