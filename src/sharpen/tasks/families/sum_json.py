"""A sum as JSON: `4 and 7` becomes `{"sum": 11}`. The form must be learnt as well as the value."""

from __future__ import annotations

from sharpen.core.item import Item
from sharpen.core.task import Brief
from sharpen.tasks.textual import TextTask, item

_WAYS = {"and": "{} and {}", "plus": "{} plus {}", "sign": "{} + {}", "add": "Add {} and {}."}


class SumJson(TextTask):
    name = "sum-json"
    sizes = (80, 80, 120)
    brief = Brief(
        description="Add two numbers and give the result as a JSON object.",
        instructions=(
            'Answer with a JSON object such as {"sum": 0}.',
            "The object has one field, sum.",
            "The value of sum is a number without quotes.",
            "Write nothing but the JSON object.",
            "Use double quotes around the name of the field.",
        ),
        answer_format='{"sum": number}',
    )
    metric = "json_equal"
    skill = "Add the numbers and answer in JSON."
    max_tokens = 16

    def items(self) -> list[Item]:
        pairs = [(a, b) for a in range(1, 10) for b in range(1, 10)]
        return [item(text.format(a, b), f'{{"sum": {a + b}}}', way) for way, text in _WAYS.items() for a, b in pairs]
