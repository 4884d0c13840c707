"""Taking out and moving: what does not help goes, and the order of worked examples is tried differently.

Each proposal takes out one instruction line or one worked example (with the heading of its section when nothing else
stands under it), or puts the examples in another order. Headings on their own, front matter, code and protected regions are
left alone, and at the first step the first line of text, which says what the task is, stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sharpen.skill import examples
from sharpen.skill.document import Region, has_marker, heading_level, lines, regions, sections
from sharpen.skill.edits import Edit, Op
from sharpen.trainers.reflact.proposers.base import Proposal, View, is_free, offered, rejections, unique

Span = tuple[int, int]

_FIRST_STEP = 1


@dataclass(frozen=True)
class PruneProposer:
    """`removals` and `orders` are the most proposals of each kind a step."""

    removals: int = 2
    orders: int = 2
    name: str = "prune"

    def propose(self, view: View) -> list[Proposal]:
        text = view.candidate.text
        protected = regions(text, view.candidate.main)
        removals = view.rng.shuffled(list(self._removals(view, text, protected)))
        turned_down = rejections(view)
        removals.sort(key=lambda proposal: turned_down[proposal.edits[0].target])
        taken = offered(view, removals, self.removals)
        return taken + offered(view, self._orders(view, text, protected), self.orders)

    def _removals(self, view: View, text: str, protected: tuple[Region, ...]) -> Iterator[Proposal]:
        blocks = examples.spans(text)
        spans = [*instruction_lines(text, protected), *(span for span in blocks if is_free(protected, *span))]
        if view.step <= _FIRST_STEP:
            spans = [span for span in spans if span != _description(text, protected)]
        if len(spans) < 2:
            return
        for span in spans:
            wide = _with_heading(text, span)
            target = unique(text, *(wide if is_free(protected, *wide) else span))
            if target is not None:
                what = "a worked example" if span in blocks else "a line"
                edit = Edit(Op.DELETE, target=target, source=self.name)
                yield Proposal((edit,), f"take out {what}: {_short(text[slice(*span)])}", 1, self.name)

    def _orders(self, view: View, text: str, protected: tuple[Region, ...]) -> Iterator[Proposal]:
        for run in _runs(text, protected):
            blocks = [text[start:end] for start, end in run]
            target = text[run[0][0] : run[-1][1]]
            if len(blocks) < 2 or text.count(target) != 1:
                continue
            shuffled = view.rng.shuffled(blocks)
            for order, how in (
                ([blocks[-1], *blocks[:-1]], "the last worked example first"),
                ([*blocks[1:], blocks[0]], "the first worked example last"),
                (shuffled, "the worked examples in another order"),
            ):
                edit = Edit(Op.REPLACE, "\n\n".join(order), target, source=self.name)
                yield Proposal((edit,), how, 1, self.name)


def instruction_lines(text: str, protected: tuple[Region, ...]) -> list[Span]:
    """The lines that instruct: no headings, no examples, no code, no markers, nothing protected."""
    blocks = examples.spans(text)
    return [
        (line.start, line.end)
        for line in lines(text)
        if line.plain
        and line.text.strip()
        and not heading_level(line.text)
        and not has_marker(line.text)
        and is_free(protected, line.start, line.end)
        and not any(start <= line.start < end for start, end in blocks)
    ]


def _description(text: str, protected: tuple[Region, ...]) -> Span | None:
    return next(iter(instruction_lines(text, protected)), None)


def _with_heading(text: str, span: Span) -> Span:
    """The span together with the heading of its section, where the section holds nothing else."""
    for section in reversed(sections(text)):
        inside = section.level > 1 and section.body <= span[0] and span[1] <= section.end
        if inside and not (text[section.body : span[0]] + text[span[1] : section.end]).strip():
            return section.start, span[1]
    return span


def _runs(text: str, protected: tuple[Region, ...]) -> list[list[Span]]:
    """Worked examples that follow one another with nothing in between."""
    runs: list[list[Span]] = []
    for span in examples.spans(text):
        if not is_free(protected, *span):
            continue
        if runs and not text[runs[-1][-1][1] : span[0]].strip():
            runs[-1].append(span)
        else:
            runs.append([span])
    return runs


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:59] + "…"
