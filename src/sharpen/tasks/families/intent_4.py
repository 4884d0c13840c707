"""What a customer wants, one of four labels: weather, music, alarm, food. Generated from sentences with slots."""

from __future__ import annotations

from sharpen.core.item import Item
from sharpen.core.rng import Stream
from sharpen.core.task import Brief
from sharpen.tasks.textual import TextTask, item, words

_PLACES = words("Paris London Oslo Madrid Rome Vienna Dublin Prague Lisbon Berlin")
_DAYS = ["today", "tomorrow", "on Monday", "on Friday", "this evening", "this weekend"]
_TIMES = ["six", "seven", "half past six", "eight", "nine thirty", "ten", "noon", "five in the morning"]
_STYLES = ["jazz", "rock", "piano", "dance", "classical", "folk", "guitar", "country"]
_DISHES = ["pizza", "sushi", "two burgers", "a salad", "noodles", "chicken soup", "tacos", "a curry"]

_SENTENCES = {
    "weather": (
        "Will it rain in {place} {day}?",
        "How cold is it in {place} {day}?",
        "Is it sunny in {place} {day}?",
        "Do I need an umbrella in {place} {day}?",
    ),
    "music": (
        "Play some {style} songs {day}.",
        "I want to hear {style} music {day}.",
        "Put on a {style} album {day}.",
        "Turn up the {style} playlist {day}.",
    ),
    "alarm": (
        "Wake me up at {time} {day}.",
        "Set an alarm for {time} {day}.",
        "I must get up at {time} {day}.",
        "Cancel my alarm at {time} {day}.",
    ),
    "food": (
        "Order {dish} for dinner {day}.",
        "I am hungry, get me {dish} {day}.",
        "Can I have {dish} delivered {day}?",
        "Book a table for {dish} {day}.",
    ),
}
_PER_LABEL = 75


class Intent4(TextTask):
    name = "intent-4"
    sizes = (80, 80, 120)
    brief = Brief(
        description="Say which of four things a sentence is about: weather, music, alarm or food.",
        instructions=(
            "Answer with one of these labels: weather, music, alarm, food.",
            "Answer with one word in lower case.",
            "Do not answer the question itself.",
            "Questions about rain, sun or temperature are weather.",
            "Songs, albums and playlists are music.",
            "Waking up and times are alarm.",
            "Meals, orders and restaurants are food.",
        ),
        answer_format="weather, music, alarm or food",
    )
    skill = "Say what the sentence is about."
    max_tokens = 6

    def items(self) -> list[Item]:
        made = []
        for label, sentences in _SENTENCES.items():
            texts = sorted(
                {
                    sentence.format(place=place, day=day, style=style, time=time, dish=dish)
                    for sentence in sentences
                    for place, style, time, dish in zip(_PLACES, _STYLES * 2, _TIMES * 2, _DISHES * 2, strict=False)
                    for day in _DAYS
                }
            )
            made += [item(text, label, label) for text in Stream(0, "intent-4", label).sample(texts, _PER_LABEL)]
        return made
