"""Facility location: depots are opened one after the other, as long as a function of gain and price is above zero.

20 sites and 60 customers in the unit square; opening a site costs 0.5 to 1.5, serving a customer the way to the nearest
open site. The reference is the optimum, by integer programming.
"""

from __future__ import annotations

import math

from sharpen.core.digest import Json
from sharpen.tasks.algorithms.base import AlgorithmTask, Game, Instance, Invalid, drawn, numbers

SITES, CUSTOMERS = 20, 60


def play(instance: Instance) -> Game:
    far = [[math.dist(site, customer) for customer in instance["customers"]] for site in instance["sites"]]
    prices = instance["prices"]
    opened: list[int] = []
    ways = [max(column) for column in zip(*far, strict=True)]
    while len(opened) < len(far):
        closed = [site for site in range(len(far)) if site not in opened]
        calls = []
        for site in closed:
            nearer = [now - way for now, way in zip(ways, far[site], strict=True) if way < now]
            calls.append((sum(nearer), prices[site], len(nearer), len(opened)))
        gains = numbers((yield calls))
        best = closed[gains.index(max(gains))]
        if opened and not max(gains) > 0:
            break
        opened.append(best)
        ways = [min(pair) for pair in zip(ways, far[best], strict=True)]
    return opened


class FacilityLocation(AlgorithmTask):
    name = "facility-location"
    about = "Open sites so that opening them and serving every customer from the nearest one costs as little as can be."
    signature = "gain(saved, price, nearer, opened)"
    rules_of_play = (
        "saved is how much shorter a site would make all ways together, nearer for how many customers.",
        "price is what opening it costs, opened how many sites are open.",
        "The site of the highest gain is opened, as long as that is above zero; the first one in any case.",
    )
    measure = "cost"
    play = play
    start = '''"""Open a site only where it saves far more than it costs."""


def gain(saved, price, nearer, opened):
    return 1.0 * saved - 3.0 * price
'''

    def instance(self, seed: int) -> Instance:
        stream = drawn(seed, self.name)
        points = [[round(stream.random(), 6), round(stream.random(), 6)] for _ in range(SITES + CUSTOMERS)]
        prices = [round(0.5 + stream.random(), 6) for _ in range(SITES)]
        return {"sites": points[:SITES], "customers": points[SITES:], "prices": prices}

    def value(self, instance: Instance, answer: Json) -> float:
        if not isinstance(answer, list) or not answer or not all(type(n) is int and 0 <= n < SITES for n in answer):
            raise Invalid(f"an answer must be a list of at least one site, 0 to {SITES - 1}")
        opened, sites = sorted(set(answer)), instance["sites"]
        ways = [min(math.dist(customer, sites[site]) for site in opened) for customer in instance["customers"]]
        return math.fsum([*(instance["prices"][site] for site in opened), *ways])
