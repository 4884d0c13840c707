"""The travelling salesman, city by city: a function says which of the cities that are left is to be next.

50 cities at random in the unit square. The reference is the shortest tour, by integer programming.
"""

from __future__ import annotations

import math

from sharpen.core.digest import Json
from sharpen.tasks.algorithms.base import AlgorithmTask, Game, Instance, Invalid, choices, comparable, distances, drawn

CITIES = 50


def play(instance: Instance) -> Game:
    far = distances(instance["cities"])
    sums, left, tour = [sum(row) for row in far], list(range(1, len(far))), [0]
    while left:
        here, count = tour[-1], len(left)
        sums = [total - row[here] for total, row in zip(sums, far, strict=True)]
        bad = comparable((yield [(far[here][city], far[city][0], sums[city] / count, count) for city in left]))
        tour.append(left.pop(bad.index(min(bad))))
    return tour


class TravellingSalesman(AlgorithmTask):
    name = "tsp"
    about = "Visit every city once and come home, on a tour as short as can be, choosing one city after the other."
    signature = "badness(step, home, crowd, left)"
    rules_of_play = (
        "step is the way from here to a city, home the way from that city to the first one.",
        "crowd is that city's mean distance to the cities not yet visited, left is how many these are.",
        "The city of the lowest badness comes next.",
    )
    measure = "length"
    play = play
    start = '''"""The nearest city, with some regard for how far it is from home and from the others."""


def badness(step, home, crowd, left):
    return 1.0 * step + 0.3 * home + 0.1 * crowd
'''

    def instance(self, seed: int) -> Instance:
        stream = drawn(seed, self.name)
        return {"cities": [[round(stream.random(), 6), round(stream.random(), 6)] for _ in range(CITIES)]}

    def value(self, instance: Instance, answer: Json) -> float:
        tour, cities = choices(answer, CITIES, CITIES, "cities"), instance["cities"]
        if len(set(tour)) != CITIES:
            raise Invalid("a city is visited twice")
        return math.fsum(math.dist(cities[a], cities[b]) for a, b in zip(tour, [*tour[1:], tour[0]], strict=True))
