"""Number words to digits: `three hundred and forty-two` becomes `342`. Generated; no two items ask the same number."""

from __future__ import annotations

from sharpen.core.item import Item
from sharpen.core.rng import Stream
from sharpen.core.task import Brief
from sharpen.tasks.textual import TextTask, item, words

_SMALL = words(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS = words("zero ten twenty thirty forty fifty sixty seventy eighty ninety")


class NumberWords(TextTask):
    name = "number-words"
    sizes = (80, 80, 120)
    brief = Brief(
        description="Write a number that is given in words in digits.",
        instructions=(
            "Answer with digits only, such as 7.",
            "Write nothing before or after the number.",
            "Do not repeat the words of the number.",
            "Do not use commas inside a number.",
            "The word hundred stands for two more digits.",
            "Each input is one number below a thousand.",
        ),
        answer_format="the number in digits, without separators",
    )
    skill = "Write the number in digits."
    max_tokens = 12

    def items(self) -> list[Item]:
        tens = [item(spell(n), str(n), "tens") for n in range(21, 100)]
        drawn = Stream(0, "number-words").sample(range(100, 1000), 221)
        return tens + [item(spell(n), str(n), "hundreds") for n in drawn]


def spell(n: int) -> str:
    """A number below a thousand in English words."""
    if n < 20:
        return _SMALL[n]
    if n < 100:
        return _TENS[n // 10] + (f"-{_SMALL[n % 10]}" if n % 10 else "")
    return f"{_SMALL[n // 100]} hundred" + (f" and {spell(n % 100)}" if n % 100 else "")
