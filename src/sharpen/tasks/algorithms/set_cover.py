"""Set cover: sets with a price are bought, best first by a priority function, until they hold every element.

80 elements, 60 sets of 3 to 14 of them, priced by size with some luck. The reference is the optimum, by integer
programming.
"""

from __future__ import annotations

from sharpen.core.digest import Json
from sharpen.tasks.algorithms.base import AlgorithmTask, Game, Instance, Invalid, comparable, drawn

ELEMENTS, SETS = 80, 60


def play(instance: Instance) -> Game:
    sets, prices = [set(members) for members in instance["sets"]], instance["prices"]
    left: set[int] = set(range(instance["elements"]))
    bought: list[int] = []
    while left:
        useful = [number for number, members in enumerate(sets) if members & left]
        rare = {element: sum(element in sets[number] for number in useful) for element in left}
        calls = []
        for number in useful:
            new = sets[number] & left
            rarest = min(rare[element] for element in new)
            calls.append((len(new), len(sets[number]), prices[number], rarest))
        worth = comparable((yield calls))
        bought.append(useful[worth.index(max(worth))])
        left -= sets[bought[-1]]
    return bought


class SetCover(AlgorithmTask):
    name = "set-cover"
    about = "Buy sets until every element is in one of them, for as little money as can be."
    signature = "priority(new, size, price, rarest)"
    rules_of_play = (
        "new is how many elements a set would add, size how many it has, price what it costs.",
        "rarest is in how many useful sets the rarest of the new elements is.",
        "The set of the highest priority is bought.",
    )
    measure = "price"
    play = play
    start = '''"""The cheapest set that adds something, with some regard for how much it adds."""


def priority(new, size, price, rarest):
    return 1.0 * new - 1.0 * price
'''

    def instance(self, seed: int) -> Instance:
        stream = drawn(seed, self.name)
        sets = [sorted(stream.sample(range(ELEMENTS), 3 + stream.below(12))) for _ in range(SETS - 1)]
        missing = set(range(ELEMENTS)).difference(*sets)
        sets.append(sorted(missing or {0}))
        return {
            "elements": ELEMENTS,
            "sets": sets,
            "prices": [len(members) + stream.below(12) + 1 for members in sets],
        }

    def value(self, instance: Instance, answer: Json) -> float:
        if not isinstance(answer, list) or not all(type(n) is int and 0 <= n < SETS for n in answer):
            raise Invalid(f"an answer must be a list of sets, 0 to {SETS - 1}")
        missing = set(range(ELEMENTS)).difference(*(instance["sets"][number] for number in answer))
        if missing:
            raise Invalid(f"element {min(missing)} is in none of the sets")
        return float(sum(instance["prices"][number] for number in set(answer)))
