"""The proposer `one-per-type`: for each type of item that failed and has no worked example yet, the shortest one."""

from __future__ import annotations

from dataclasses import dataclass

from sharpen.skill.edits import Edit, Op
from sharpen.skill.examples import Example, parse, write
from sharpen.trainers.reflact.proposers.base import Proposal, View, offered


@dataclass(frozen=True)
class OnePerType:
    """the shortest worked example of each type that failed, all in one proposal"""

    name: str = "one-per-type"

    def propose(self, view: View) -> list[Proposal]:
        shown = {example.input for example in parse(view.candidate.text).examples}
        done = {shot.type for shot in view.pool if shot.input in shown}
        failed = [attempt.item.type for attempt in view.failures if attempt.item.type not in done]
        edits = []
        for kind in sorted(set(failed))[: view.budget]:
            shots = [shot for shot in view.pool if shot.type == kind]
            if shots:
                shot = min(shots, key=lambda shot: (len(shot.input), shot.input))
                block = write(Example(shot.input, shot.output))
                edits.append(Edit(Op.APPEND, block, support=failed.count(kind), source=self.name))
        return offered(view, [Proposal(tuple(edits), "an example per type", len(failed), self.name)], 1)
