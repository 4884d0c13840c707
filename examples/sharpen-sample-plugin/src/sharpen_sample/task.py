"""The task `topics`: which of four topics is a sentence about?"""

from __future__ import annotations

from itertools import product

from sharpen.core.item import Item
from sharpen.core.task import Brief
from sharpen.tasks.textual import TextTask, item

OPENINGS = ("Tell me about the", "I have a question on the", "Who knows more about the", "Please look at the")
THINGS = {
    "garden": ("roses", "lawn", "hedge", "tulips", "apple tree", "compost"),
    "kitchen": ("oven", "kettle", "saucepan", "fridge", "bread knife", "toaster"),
    "music": ("piano", "violin", "drums", "choir", "old trumpet", "guitar"),
    "sport": ("football", "tennis", "swimming", "marathon", "boxing match", "rowing"),
}


class Topics(TextTask):
    name = "topics"
    sizes = (32, 32, 32)
    brief = Brief("Say which topic a sentence is about.", ("Answer with one word.",), "garden, kitchen, music or sport")
    skill = "Say what the sentence is about."
    max_tokens = 4

    def items(self) -> list[Item]:
        return [
            item(f"{opening} {thing}.", topic, topic)
            for topic, things in THINGS.items()
            for opening, thing in product(OPENINGS, things)
        ]
