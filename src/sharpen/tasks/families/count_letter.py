"""How often a letter occurs in a word. Words from a table, the letter drawn; counts of 1, 2 and 3."""

from __future__ import annotations

from sharpen.core.item import Item
from sharpen.core.rng import Stream
from sharpen.core.task import Brief
from sharpen.tasks.textual import TextTask, item, words

_WORDS = words("""
banana apple cherry orange lemon papaya avocado coconut pepper carrot cabbage lettuce tomato potato spinach mushroom
window ladder hammer bottle kettle pillow blanket curtain carpet mirror candle basket bucket button pocket jacket
summer winter autumn spring morning evening midnight weather thunder lightning rainbow snowfall meadow valley canyon
island harbour lighthouse mountain glacier desert jungle forest river ocean puddle waterfall
teacher student doctor painter singer dancer farmer builder plumber lawyer soldier sailor pirate captain
kangaroo elephant giraffe panda rabbit squirrel hedgehog butterfly beetle mosquito penguin flamingo parrot
piano violin guitar trumpet drummer orchestra melody rhythm
coffee pepperoni spaghetti noodle pancake cookie butter cheese chocolate
mathematics alphabet dictionary notebook pencil eraser ruler scissors lantern compass backpack sandal trouser sweater
bicycle tractor submarine helicopter locomotive carriage engine wheel anchor propeller
castle palace cottage balcony chimney staircase cellar attic garage gallery museum library theatre cathedral
bookkeeper committee address success balloon programme grammar millennium possession assessment
""")


class CountLetter(TextTask):
    name = "count-letter"
    sizes = (80, 80, 120)
    brief = Brief(
        description="Say how often a letter occurs in a word.",
        instructions=(
            "Answer with one digit only.",
            "Write nothing but the number.",
            "Go through the word letter by letter and count.",
            "Count both letters of a double letter.",
            "Every answer is 1, 2 or 3.",
        ),
        answer_format="one digit",
    )
    skill = "Count the letter in the word."
    max_tokens = 6

    def items(self) -> list[Item]:
        made = []
        for word in dict.fromkeys(_WORDS):
            letters = sorted({letter for letter in word if word.count(letter) <= 3})
            often = [letter for letter in letters if word.count(letter) > 1]
            once = [letter for letter in letters if word.count(letter) == 1]
            stream = Stream(0, "count-letter", word)
            for letter in stream.sample(often, 2) + stream.sample(once, 1):
                made.append(item(f"How many {letter} in {word}?", str(word.count(letter)), str(word.count(letter))))
        return made
