"""A family of questions over local files, as a task: one question, one answer, the family's own scorer."""

from __future__ import annotations

from pathlib import Path

from sharpen.core.digest import Json, digest
from sharpen.core.item import Item
from sharpen.core.task import SPLITS, Brief
from sharpen.tasks.metrics import accepted
from sharpen.tasks.qa import loading, scoring
from sharpen.tasks.qa.family import Family
from sharpen.tasks.splitting import Deal
from sharpen.tasks.textual import TextTask


class QATask(TextTask):
    """One family. It is called after the family and, where one was chosen, its subset."""

    def __init__(self, family: Family, data: Path, choice: loading.Choice, max_tokens: int | None) -> None:
        loaded = loading.load(family, data, choice)
        self.family = family
        self.name = f"qa-{family.name}" + (f"-{choice.subset}" if choice.subset else "")
        self.skill = family.skill
        self.max_tokens = family.max_tokens if max_tokens is None else max_tokens
        self.brief = Brief(description=" ".join((family.description, *loaded.remarks)), instructions=family.notes)
        super().__init__(Deal(choice.seed, choice.limit))
        self._splits = loaded.splits
        self._score_with_family()

    def _score_with_family(self) -> None:
        self.scorer = scoring.named(self.family.scorer)
        self.version = digest([self.version, self.scorer.identity, loading.VERSION])[:12]

    def items(self) -> list[Item]:
        return [item for name in SPLITS for item in self.splits()[name]]

    def gold(self, item: Item) -> str | None:
        first: Json = accepted(item)[0]
        text = ", ".join(map(str, first)) if isinstance(first, list) else str(first)
        return f"\\boxed{{{text}}}" if self.family.scorer == "boxed" else text

    def example(self, item: Item) -> tuple[str, str] | None:
        gold = self.gold(item)
        if gold is None:
            return None
        return self.ask(item), gold if self.family.scorer == "boxed" else f"Answer: {gold}"
