"""An e-mail address found in a sentence, as JSON: `{"email": "ann@mail.org"}`. Generated from names, hosts and sentences."""

from __future__ import annotations

from sharpen.core.item import Item
from sharpen.core.rng import Stream
from sharpen.core.task import Brief
from sharpen.tasks.textual import TextTask, item, words

_NAMES = words("""
anna ben carla david emma felix grace henry irene jack karen leo maria nina oscar paula robert sara tom victor wendy
alice brian diana frank helen julia kevin laura martin simon clara peter lucy ruth
""")
_HOSTS = words("mail.org post.net example.com office.org school.edu shop.net home.org work.com")
_SENTENCES = {
    "write to": "Please write to {} today.",
    "contact": "Contact {} for details.",
    "my address": "My address is {}.",
    "send": "Send the file to {} please.",
    "reach": "You can reach me at {}.",
}


class EmailJson(TextTask):
    name = "email-json"
    sizes = (80, 80, 120)
    brief = Brief(
        description="Find the e-mail address in a sentence and give it as a JSON object.",
        instructions=(
            'Answer with a JSON object such as {"email": "name@host.org"}.',
            "The object has one field, email.",
            "Copy the address exactly as it stands in the sentence.",
            "Write nothing but the JSON object.",
            "Do not answer the sentence itself.",
        ),
        answer_format='{"email": "address"}',
    )
    metric = "json_equal"
    skill = "Find the e-mail address and answer in JSON."
    max_tokens = 28

    def items(self) -> list[Item]:
        addresses = [f"{name}@{host}" for name in _NAMES for host in _HOSTS]
        kinds = list(_SENTENCES.items())
        made = []
        for number, address in enumerate(Stream(0, "email-json").sample(addresses, 280)):
            kind, sentence = kinds[number % len(kinds)]
            made.append(item(sentence.format(address), f'{{"email": "{address}"}}', kind))
        return made
