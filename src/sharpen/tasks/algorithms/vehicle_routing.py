"""Vehicle routing: vans that start from a depot, and a function that says which customer a van goes to next.

30 customers at random around a depot in the middle of the unit square, demands of 1 to 9, vans that hold 30. A van
drives home when nothing fits any more. The reference is the best of many runs of local search (relocation, exchange,
2-opt) from savings.
"""

from __future__ import annotations

import math

from sharpen.core.digest import Json
from sharpen.tasks.algorithms.base import AlgorithmTask, Game, Instance, Invalid, choices, comparable, distances, drawn

CUSTOMERS, CAPACITY = 30, 30


def play(instance: Instance) -> Game:
    demands, capacity = instance["demands"], instance["capacity"]
    far = distances(instance["places"])
    left, here, room = set(range(1, len(far))), 0, capacity
    route: list[int] = []
    while left:
        fitting = [place for place in sorted(left) if demands[place] <= room]
        if not fitting:
            route.append(0)
            here, room = 0, capacity
            continue
        calls = [(far[here][place], far[place][0], far[here][0], demands[place], room) for place in fitting]
        bad = comparable((yield calls))
        here = fitting[bad.index(min(bad))]
        left.remove(here)
        room -= demands[here]
        route.append(here)
    return route


class VehicleRouting(AlgorithmTask):
    name = "vehicle-routing"
    about = "Serve all customers with vans of limited size, on routes that are as short as can be together."
    signature = "badness(step, home, now, demand, room)"
    rules_of_play = (
        "step is the way from here to a customer, home the way from there to the depot, now the way from here to the depot.",
        "demand is what the customer wants, room what the van still holds.",
        "The customer of the lowest badness comes next; only those are asked about whose demand fits.",
    )
    measure = "length"
    play = play
    start = '''"""The nearest customer, with some regard for how far it is from the depot."""


def badness(step, home, now, demand, room):
    return 1.0 * step + 0.4 * home
'''

    def instance(self, seed: int) -> Instance:
        stream = drawn(seed, self.name)
        places = [[round(stream.random(), 6), round(stream.random(), 6)] for _ in range(CUSTOMERS)]
        demands = [1 + stream.below(9) for _ in range(CUSTOMERS)]
        return {"capacity": CAPACITY, "places": [[0.5, 0.5], *places], "demands": [0, *demands]}

    def value(self, instance: Instance, answer: Json) -> float:
        if not isinstance(answer, list) or len(answer) > 3 * CUSTOMERS:
            raise Invalid("an answer must be a list of customers, with 0 for the depot between two routes")
        stops = choices(answer, len(answer), CUSTOMERS + 1, "places")
        if sorted(stop for stop in stops if stop) != list(range(1, CUSTOMERS + 1)):
            raise Invalid("every customer must be visited exactly once")
        room = CAPACITY
        for stop in stops:
            room = CAPACITY if stop == 0 else room - instance["demands"][stop]
            if room < 0:
                raise Invalid(f"a van on the way to {stop} carries more than {CAPACITY}")
        places = instance["places"]
        return math.fsum(math.dist(places[a], places[b]) for a, b in zip([0, *stops], [*stops, 0], strict=True))
