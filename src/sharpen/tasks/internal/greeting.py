"""Greet a caller in the language of their country: a dozen greetings that the seed skill does not know.

An item names the caller's country by its code and its telephone prefix (`es-34: Ana is on the line.`); the answer is the
greeting. A line `- es-34: Hola` in the skill is all that `scripted/rules` needs for the callers of that country; the
embedded model learns from worked examples.
"""

from __future__ import annotations

from sharpen.core.item import Item
from sharpen.core.task import Brief
from sharpen.tasks.textual import TextTask, item, words

GREETINGS = {
    "es-34": "Hola", "fr-33": "Bonjour", "de-49": "Hallo", "it-39": "Ciao", "pt-351": "Olá", "se-46": "Hej",
    "fi-358": "Moi", "pl-48": "Cześć", "cz-420": "Ahoj", "tr-90": "Merhaba", "ro-40": "Salut", "lv-371": "Sveiki",
}  # fmt: skip
_NAMES = words("Ana Ben Cleo Dan Eva Finn Gil Hana Ida Jon Kim Leo Mia Nils Ona Pia Quinn Rosa Sami Tom")


class Greeting(TextTask):
    name = "greeting"
    sizes = (60, 60, 100)
    brief = Brief(
        description="Greet each caller in the language of their country.",
        instructions=(
            "Answer with the greeting alone.",
            "The code before the colon says which country the call comes from.",
            "Each country has exactly one greeting.",
        ),
        answer_format="one word",
    )
    skill = "Greet the caller with one word."
    max_tokens = 8

    def items(self) -> list[Item]:
        return [
            item(f"{land}: {name} is on the line.", hello, land) for land, hello in GREETINGS.items() for name in _NAMES
        ]
