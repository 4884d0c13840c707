"""Whether a remark on a film is praise or complaint: here the embedded model stays at chance, whatever the skill says.

It shows what an honest result looks like when there is no gain to be had. Every telling word stands as often in praise as
in complaint, because half of the sentences turn it round ("anything but dull"); a reader who understands the sentence is
always right, one who only knows the words is right half of the time. The seed skill already shows the form of the answer,
so that nothing can be gained there either.
"""

from __future__ import annotations

from sharpen.core.item import Item
from sharpen.core.rng import Stream
from sharpen.core.task import Brief
from sharpen.skill.examples import Example, write
from sharpen.tasks.textual import TextTask, item, words

_SUBJECTS = words("plot acting camerawork dialogue ending music pacing story script cast")
_KEEPS = (
    "As everyone expected, the {subject} was {word}.",
    "You will hear no one argue that the {subject} was not {word}.",
    "The {subject} was {word}, whatever some people say.",
    "The {subject} was nothing if not {word}.",
    "Nobody could deny that the {subject} was {word}.",
    "I did not doubt for a moment that the {subject} was {word}.",
)
_TURNS = (
    "Against what everyone expected, the {subject} was not {word}.",
    "You will hear no one argue that the {subject} was {word}.",
    "The {subject} was not {word}, whatever some people say.",
    "The {subject} was anything but {word}.",
    "Nobody could call the {subject} {word}.",
    "I was told the {subject} was {word} and saw the opposite.",
)
_WORDS = {
    "positive": words("brilliant moving charming gripping superb clever"),
    "negative": words("dreadful tedious clumsy lifeless awful dull"),
}
_OTHER = {"positive": "negative", "negative": "positive"}
_PER_CELL = 75


class Sentiment2(TextTask):
    name = "sentiment-2"
    sizes = (80, 80, 120)
    brief = Brief(
        description="Say whether a sentence about a film is positive or negative.",
        instructions=(
            "Praise is positive, complaint is negative.",
            "Judge the whole sentence, not a single word.",
            "A phrase such as anything but turns the meaning round.",
            "Write nothing but the label.",
            "Judge what the writer thinks, not what others say.",
        ),
        answer_format="positive or negative",
    )
    skill = "\n\n".join(
        [
            "Answer with one word: positive or negative.",
            write(Example("The lighting was lovely.", "positive")),
            write(Example("The costumes were ugly.", "negative")),
        ]
    )
    max_tokens = 6

    def items(self) -> list[Item]:
        made = []
        for meaning, telling in _WORDS.items():
            for kind, frames in (("keeps", _KEEPS), ("turns", _TURNS)):
                label = meaning if kind == "keeps" else _OTHER[meaning]
                texts = [frame.format(subject=s, word=w) for frame in frames for s in _SUBJECTS for w in telling]
                stream = Stream(0, "sentiment-2", meaning, kind)
                made += [item(text, label, f"{kind} {meaning}") for text in stream.sample(texts, _PER_CELL)]
        return made
