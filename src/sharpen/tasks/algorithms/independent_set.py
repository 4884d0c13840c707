"""Independent set: vertices are taken one after the other, best first by a priority function, and their neighbours drop out.

80 vertices, an edge between two in 8 of 100 cases. The reference is the optimum, by integer programming.
"""

from __future__ import annotations

from sharpen.core.digest import Json
from sharpen.tasks.algorithms.base import AlgorithmTask, Game, Instance, Invalid, comparable, drawn

VERTICES, DENSITY = 80, 0.08


def play(instance: Instance) -> Game:
    near: list[set[int]] = [set() for _ in range(instance["vertices"])]
    for one, other in instance["edges"]:
        near[one].add(other)
        near[other].add(one)
    left, taken = set(range(len(near))), []
    while left:
        calls = []
        for vertex in sorted(left):
            still = near[vertex] & left
            around = sum(len(near[other] & left) for other in still)
            calls.append((len(near[vertex]), len(still), around, len(left)))
        worth = comparable((yield calls))
        best = sorted(left)[worth.index(max(worth))]
        taken.append(best)
        left -= near[best] | {best}
    return taken


class IndependentSet(AlgorithmTask):
    name = "independent-set"
    about = "Take as many vertices of a graph as can be, no two of them neighbours."
    signature = "priority(degree, open, around, left)"
    rules_of_play = (
        "degree is how many neighbours a vertex has, open how many of these are still there.",
        "around is how many neighbours these have together, left how many vertices are there.",
        "The vertex of the highest priority is taken, and its neighbours drop out.",
    )
    measure = "vertices"
    maximise = True
    play = play
    start = '''"""Vertices among well connected neighbours first."""


def priority(degree, open, around, left):
    return 0.5 * around - 1.0 * degree
'''

    def instance(self, seed: int) -> Instance:
        stream = drawn(seed, self.name)
        pairs = [[one, other] for one in range(VERTICES) for other in range(one)]
        return {"vertices": VERTICES, "edges": [pair for pair in pairs if stream.random() < DENSITY]}

    def value(self, instance: Instance, answer: Json) -> float:
        if not isinstance(answer, list) or not all(type(n) is int and 0 <= n < VERTICES for n in answer):
            raise Invalid(f"an answer must be a list of vertices, 0 to {VERTICES - 1}")
        taken = set(answer)
        for one, other in instance["edges"]:
            if one in taken and other in taken:
                raise Invalid(f"{one} and {other} are neighbours")
        return float(len(taken))
