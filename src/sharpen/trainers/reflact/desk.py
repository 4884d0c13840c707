"""The desk where questions to the optimizer are written: which prompt, what material, within its context.

A prompt is a Markdown file in `prompts/`; a task or a configuration may put its own text in place of any of them. The
material follows as JSON under `## Data`, shortened to fit. What the optimizer has learnt about writing edits (the meta
skill) goes along with every question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel

from sharpen.core.digest import Json
from sharpen.core.errors import UsageError
from sharpen.engine.asking import Answer
from sharpen.engine.job import Job
from sharpen.trainers.reflact.events import Shortened
from sharpen.trainers.reflact.fit import CHARACTERS_PER_TOKEN, fit
from sharpen.trainers.reflact.params import ProposalParams
from sharpen.trainers.reflact.prompts import names, prompt, question

_LONG = ("attempts", "pairs", "patches", "memory")
"""What may be shortened: material to read. The document and the instructions stay whole."""


@dataclass
class Desk:
    job: Job
    params: ProposalParams
    meta_skill: str = ""
    _texts: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        unknown = [name for name in self.job.task.prompts if name not in names()]
        if unknown:
            known = ", ".join(names())
            raise UsageError(
                f"task {self.job.task.name!r} replaces a prompt {unknown[0]!r}, which is none; there are {known}"
            )
        self._texts = {**self.job.task.prompts, **self.params.prompts}

    @property
    def open(self) -> bool:
        """Whether there is anybody to ask."""
        return self.params.analysts and self.job.has_model("optimizer")

    async def ask(
        self,
        prompts: Sequence[str],
        data: Mapping[str, Json],
        schema: type[BaseModel],
        scope: Sequence[str | int],
    ) -> Answer:
        """Put the question the prompts make together about `data`."""
        material = {**data, "meta_skill": self.meta_skill} if self.meta_skill else dict(data)
        system = "\n\n".join(prompt(name, self._texts) for name in prompts)
        fitted = fit(material, self._room(system), long=_LONG)
        if fitted.left_out or not fitted.fits:
            self.job.emit(Shortened(list(scope), fitted.left_out, fitted.fits))
        messages = question(system, fitted.data)
        return await self.job.ask("optimizer", messages, schema=schema, scope=scope, max_tokens=self._answer)

    @property
    def _context(self) -> int:
        return self.job.context("optimizer") or self.params.context_tokens

    @property
    def _answer(self) -> int:
        """Tokens an answer may have: no more than a third of the context, so that there is room for a question."""
        return min(self.params.answer_tokens, self._context // 3)

    def _room(self, system: str) -> int:
        """Characters the material may have, after the prompt and the answer have had theirs."""
        return max(0, self._context - self._answer) * CHARACTERS_PER_TOKEN - len(system)
