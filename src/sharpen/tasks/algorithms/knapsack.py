"""Knapsack: things of a value and a weight, taken one after the other while they fit, best first by a priority function.

50 things, the knapsack carries about a third of their weight. The reference is the optimum, by dynamic programming.
"""

from __future__ import annotations

from sharpen.core.digest import Json
from sharpen.tasks.algorithms.base import AlgorithmTask, Game, Instance, Invalid, comparable, drawn

THINGS = 50


def play(instance: Instance) -> Game:
    room, things = instance["capacity"], dict(enumerate(instance["things"]))
    taken: list[int] = []
    while True:
        things = {number: thing for number, thing in things.items() if thing[1] <= room}
        if not things:
            return taken
        worth = comparable((yield [(*thing, room, len(things)) for thing in things.values()]))
        best = list(things)[worth.index(max(worth))]
        room -= things.pop(best)[1]
        taken.append(best)


class Knapsack(AlgorithmTask):
    name = "knapsack"
    about = "Fill a knapsack so that what it holds is worth as much as can be."
    signature = "priority(value, weight, room, left)"
    rules_of_play = (
        "It is asked for everything that still fits; room is the weight that can still be carried, left how many fit.",
        "What has the highest priority is taken, again and again.",
    )
    measure = "worth"
    maximise = True
    play = play
    start = '''"""What is worth most first."""


def priority(value, weight, room, left):
    return value - 0.1 * weight
'''

    def instance(self, seed: int) -> Instance:
        stream = drawn(seed, self.name)
        weights = [10 + stream.below(91) for _ in range(THINGS)]
        things = [[max(1, weight // 2 + stream.below(80)), weight] for weight in weights]
        return {"capacity": sum(weights) // 3, "things": things}

    def value(self, instance: Instance, answer: Json) -> float:
        if not isinstance(answer, list) or not all(type(n) is int and 0 <= n < THINGS for n in answer):
            raise Invalid(f"an answer must be a list of things, 0 to {THINGS - 1}")
        if len(set(answer)) != len(answer):
            raise Invalid("a thing is taken twice")
        worth, weight = (sum(instance["things"][number][side] for number in answer) for side in (0, 1))
        if weight > instance["capacity"]:
            raise Invalid(f"a weight of {weight} is more than {instance['capacity']}")
        return float(worth)
