"""Online bin packing: items arrive one by one, and each goes at once into the bin that a priority function likes best.

300 sizes from a Weibull distribution (45, 3), cut to 1 to 100, and bins of 100. The reference is the least number of
bins that could hold the sum of all sizes: no packing has fewer, and one as good need not exist.
"""

from __future__ import annotations

import math

from sharpen.core.digest import Json
from sharpen.tasks.algorithms.base import AlgorithmTask, Game, Instance, Invalid, choices, comparable, drawn

CAPACITY, ITEMS = 100, 300


def play(instance: Instance) -> Game:
    capacity: int = instance["capacity"]
    rooms: list[int] = []
    where: list[int] = []
    for size in instance["sizes"]:
        fitting = sorted({room for room in rooms if room >= size} | {capacity})
        liking = comparable((yield [(size, room, capacity) for room in fitting]))
        best = fitting[liking.index(max(liking))]
        if best == capacity:
            rooms.append(capacity)
        bin_number = rooms.index(best)
        rooms[bin_number] -= size
        where.append(bin_number)
    return where


class BinPacking(AlgorithmTask):
    name = "bin-packing"
    about = "Put items into as few bins as can be, each at once when it arrives."
    signature = "priority(size, room, capacity)"
    rules_of_play = (
        "It is asked for every bin the item fits into, with the room left there; a bin not yet used has all its capacity.",
        "The item goes into the bin of the highest priority.",
    )
    measure = "bins"
    play = play
    start = '''"""The bin with the most room left; a new one only where there is no other."""


def priority(size, room, capacity):
    left = room - size
    if room == capacity:
        return -1000
    return left
'''

    def instance(self, seed: int) -> Instance:
        stream = drawn(seed, self.name)
        sizes = [45.0 * (-math.log(1.0 - stream.random())) ** (1.0 / 3.0) for _ in range(ITEMS)]
        return {"capacity": CAPACITY, "sizes": [min(CAPACITY, max(1, round(size))) for size in sizes]}

    def value(self, instance: Instance, answer: Json) -> float:
        held: dict[int, int] = {}
        for size, place in zip(instance["sizes"], choices(answer, ITEMS, ITEMS, "bins"), strict=True):
            held[place] = held.get(place, 0) + size
            if held[place] > CAPACITY:
                raise Invalid(f"bin {place} holds more than {CAPACITY}")
        return float(len(held))
