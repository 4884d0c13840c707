"""Sums of two one-digit numbers, asked in four ways: `Add 4 and 7.` becomes `11`. Every pair of 1 to 9 in every way."""

from __future__ import annotations

from sharpen.core.item import Item
from sharpen.core.task import Brief
from sharpen.tasks.textual import TextTask, item

_WAYS = {
    "what is": "What is {} plus {}?",
    "how much": "How much is {} and {}?",
    "add": "Add {} and {}.",
    "sum": "The sum of {} and {}",
}


class OneDigitSums(TextTask):
    name = "one-digit-sums"
    sizes = (80, 80, 120)
    brief = Brief(
        description="Add two one-digit numbers.",
        instructions=(
            "Answer with the sum only.",
            "Write the number in digits and nothing else.",
            "Do not repeat the question.",
            "Write no words and no equals sign.",
            "The sum of two one-digit numbers lies between 2 and 18.",
        ),
        answer_format="the sum in digits",
    )
    skill = "Add the numbers."
    max_tokens = 8

    def items(self) -> list[Item]:
        pairs = [(a, b) for a in range(1, 10) for b in range(1, 10)]
        return [item(text.format(a, b), str(a + b), way) for way, text in _WAYS.items() for a, b in pairs]
