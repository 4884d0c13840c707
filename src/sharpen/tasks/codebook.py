"""Twenty kinds of message, each with a code word that only training can tell: a task any learner can solve completely.

The seed skill knows no code word; a rule line `- kind-07: azure` in the skill is all that is needed for the messages of
that kind. `scripted/rules` plays it without a model, so the whole loop (propose, merge, accept, reject) runs offline in
seconds, and the score after training is known in advance: the share of items whose kind has its rule.
"""

from __future__ import annotations

from functools import cache

from sharpen.core.item import Item
from sharpen.core.rng import Stream
from sharpen.core.task import Brief
from sharpen.tasks.textual import TextTask, item, words

_CODE_WORDS = words("""
azure amber coral ebony ivory jade khaki lilac maroon navy ochre pearl ruby sepia teal umber violet wheat indigo scarlet
""")
_FILLER = words("""
please reply soon about the parcel that came late from our branch in town and needs a stamp before noon while nobody at
the desk knows which form to use for it
""")


class Codebook(TextTask):
    name = "codebook"
    sizes = (80, 80, 120)
    per_kind = 14
    brief = Brief(
        description="Answer each message with the code word of its kind.",
        instructions=(
            "Answer with the code word alone.",
            "Each kind has exactly one code word.",
            "The words after the colon do not matter.",
            "Where no code word is known, answer unknown.",
        ),
        answer_format="one word in lower case",
    )
    skill = "Each message begins with its kind. Answer with the code word of that kind."
    max_tokens = 8

    def items(self) -> list[Item]:
        return list(_items(self.per_kind))


@cache
def _items(per_kind: int) -> tuple[Item, ...]:
    """Always the same, and made once per process: the jobs of a study ask for them one after another."""
    made: list[Item] = []
    for kind, word in code_words().items():
        stream = Stream(0, "codebook", kind)
        texts: dict[str, None] = {}
        while len(texts) < per_kind:
            texts[f"{kind}: {' '.join(stream.sample(_FILLER, 4))}"] = None
        made += [item(text, word, kind) for text in texts]
    return tuple(made)


def code_words() -> dict[str, str]:
    """The code word of every kind."""
    shuffled = Stream(0, "codebook").shuffled(_CODE_WORDS)
    return {f"kind-{number:02}": word for number, word in enumerate(shuffled, start=1)}
