"""The plural of an English noun: `box` becomes `boxes`. From a table of nouns, grouped by how the plural is made."""

from __future__ import annotations

from sharpen.core.item import Item
from sharpen.core.task import Brief
from sharpen.tasks.textual import TextTask, item, words

_ADD_S = words("""
table chair window door garden river mountain island teacher doctor farmer singer painter driver sister brother
cousin neighbour friend student book pencil paper letter number picture camera computer keyboard screen button ticket
train plane car truck bicycle boat ship wheel engine bridge tunnel street road market shop bank hotel museum theatre
school hospital station airport village town forest field flower tree root seed apple orange banana
lemon carrot onion cucumber pumpkin pepper egg pie cookie cake spoon fork plate bowl cup bottle kettle oven
lamp candle mirror pillow blanket carpet curtain towel shirt jacket coat hat glove sock shoe boot belt ring necklace cat
dog horse cow pig chicken duck rabbit tiger lion bear elephant monkey snake frog turtle spider eagle owl parrot
sparrow cloud storm planet star rocket hammer nail screwdriver ladder bucket rope hook basket pocket wallet magnet
helmet tractor wagon farm barn fence gate stone pebble shell lake pond waterfall tower castle palace king queen
soldier sailor pirate dragon giant robot machine tool pump pipe wire lock drawer idea question answer

""")

_ADD_ES = words("""
box fox tax wax bus gas class glass dress boss cross kiss loss pass mass dish wish brush bush crash flash bench beach
branch church coach couch lunch match patch peach pitch sandwich speech stitch switch torch watch witch witness actress
princess mattress compass address business virus circus campus bonus
""")

_Y_TO_IES = words("""
baby city lady party story country family army body berry cherry strawberry puppy pony penny diary dairy factory
gallery history library memory territory victory company colony copy duty enemy fairy fly spy sky study lily
""")

_OTHER = {
    "leaf": "leaves",
    "knife": "knives",
    "wife": "wives",
    "life": "lives",
    "wolf": "wolves",
    "half": "halves",
    "shelf": "shelves",
    "loaf": "loaves",
    "thief": "thieves",
    "calf": "calves",
    "man": "men",
    "woman": "women",
    "child": "children",
    "foot": "feet",
    "tooth": "teeth",
    "goose": "geese",
    "mouse": "mice",
    "ox": "oxen",
    "potato": "potatoes",
    "tomato": "tomatoes",
    "hero": "heroes",
    "echo": "echoes",
    "sheep": "sheep",
    "deer": "deer",
}


class PluralNouns(TextTask):
    name = "plural-nouns"
    sizes = (80, 80, 120)
    brief = Brief(
        description="Give the plural of an English noun.",
        instructions=(
            "Answer with the plural form only.",
            "Answer with one word.",
            "Write no sentence, no explanation and no punctuation.",
            "Nouns that end in s, x, ch or sh take es.",
            "A noun that ends in a consonant and y takes ies in place of the y.",
            "Some nouns are irregular, such as man, foot and child.",
        ),
        answer_format="one word in lower case",
    )
    skill = "Give the plural of the noun."
    max_tokens = 10

    def items(self) -> list[Item]:
        regular = [item(noun, noun + "s", "s") for noun in _ADD_S]
        hissing = [item(noun, noun + "es", "es") for noun in _ADD_ES]
        in_y = [item(noun, noun[:-1] + "ies", "ies") for noun in _Y_TO_IES]
        return regular + hissing + in_y + [item(noun, plural, "irregular") for noun, plural in _OTHER.items()]
