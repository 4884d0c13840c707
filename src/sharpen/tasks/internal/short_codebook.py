"""The codebook with a price on every word of the skill: each rule makes more answers right and every prompt longer.

Some kinds come often and some seldom, so a short skill with the rules of the common kinds is a good one too. `hard` is
whether the answer is right, and `soft` weighs that against the length; `trainer.params.gate_metric=soft` trains for both.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from sharpen.core.candidate import Candidate
from sharpen.core.item import Item
from sharpen.core.objective import Objective, weighted
from sharpen.core.outcome import Outcome
from sharpen.core.rng import Stream
from sharpen.core.task import Attempt, Brief
from sharpen.tasks.codebook import Codebook, code_words
from sharpen.tasks.splitting import Deal
from sharpen.tasks.textual import item, words

_KINDS = 12
_LEAST = 3
_FILLER = words("parcel letter ticket lamp chair bottle pencil wagon button carpet garden window ladder basket mirror")


class ShortCodebook(Codebook):
    name = "short-codebook"
    sizes = (60, 60, 100)
    brief = Brief(
        description="Answer each message with the code word of its kind, from a skill of few words.",
        instructions=Codebook.brief.instructions,
        answer_format=Codebook.brief.answer_format,
    )
    objectives: Mapping[str, Objective] = {
        "accuracy": Objective("max", 1.0, (0.0, 1.0), "the share of right answers"),
        "skill_words": Objective("min", 0.5, (0.0, 100.0), "words that every prompt begins with"),
    }

    def __init__(self, deal: Deal | None = None) -> None:
        super().__init__(deal)
        self.version = f"{self.version}-1"

    def items(self) -> list[Item]:
        """The first kind has the most items, the last one the fewest."""
        made = []
        for place, (kind, word) in enumerate(list(code_words().items())[:_KINDS]):
            stream = Stream(0, self.name, kind)
            texts: dict[str, None] = {}
            while len(texts) < _LEAST + 75 // (place + 1):
                texts[f"{kind}: {' '.join(stream.sample(_FILLER, 4))}"] = None
            made += [item(text, word, kind) for text in texts]
        return made

    async def rollout(self, item: Item, candidate: Candidate, attempt: Attempt) -> Outcome:
        outcome = await super().rollout(item, candidate, attempt)
        assert outcome.hard is not None
        length = sum(len(text.split()) for text in candidate.parts.values())
        measures = {"accuracy": outcome.hard, "skill_words": float(length)}
        return dataclasses.replace(outcome, soft=weighted(self.objectives, measures), measures=measures)
