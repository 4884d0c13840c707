"""Tasks whose agent is a formula: the parts are numbers, no model is called, and the best values are known.

A task of this kind names its parts with where they start, makes its items, and says what one item comes to with the numbers
of a candidate. Reading the parts, dealing out the items and writing the record are done here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sharpen.core.candidate import Candidate
from sharpen.core.errors import UsageError
from sharpen.core.item import Item
from sharpen.core.outcome import Outcome, scored
from sharpen.core.task import Attempt, Splits, Task
from sharpen.skill.kinds import Number, number
from sharpen.tasks.splitting import Deal


@dataclass(frozen=True)
class Verdict:
    """What one item came to: the score in 0..1, a sentence on what is wrong, and what was measured."""

    score: float
    feedback: str = ""
    measures: Mapping[str, float] = field(default_factory=dict)


class NumbersTask(Task):
    """Base class. `starts` has a number for every part, by the part's name without its ending."""

    calls_per_rollout = 0
    sizes: tuple[int, int, int] = (60, 60, 100)
    starts: Mapping[str, Number] = {}

    def __init__(self, deal: Deal | None = None) -> None:
        self.deal = Deal() if deal is None else deal

    def items(self) -> Iterable[Item]:
        raise NotImplementedError

    def judge(self, item: Item, values: Mapping[str, float]) -> Verdict:
        raise NotImplementedError

    def splits(self) -> Splits:
        return self.deal.splits(self.items(), self.sizes)

    def seed(self) -> Candidate:
        return Candidate({f"{name}.number": start.text() for name, start in self.starts.items()})

    async def rollout(self, item: Item, candidate: Candidate, attempt: Attempt) -> Outcome:
        values = self.read(candidate)
        verdict = self.judge(item, values)
        answer = ", ".join(f"{name} = {value:g}" for name, value in values.items())
        return scored(item.id, verdict.score, answer=answer, feedback=verdict.feedback, measures=verdict.measures)

    def read(self, candidate: Candidate) -> dict[str, float]:
        """The numbers of a candidate, by name."""
        found = {}
        for name in self.starts:
            part = f"{name}.number"
            try:
                found[name] = number(candidate[part]).value
            except KeyError:
                given = ", ".join(candidate.parts)
                raise UsageError(f"task {self.name!r} works from the part {part}; the candidate has {given}") from None
            except ValueError as error:
                raise UsageError(f"task {self.name!r}: part {part}: {error}") from None
        return found


def closeness(distance: float, width: float) -> float:
    """1 at no distance, falling evenly to 0 at `width`."""
    return max(0.0, 1.0 - abs(distance) / width)
