"""Graph colouring: which vertex is coloured next, by a priority function; it gets the lowest colour no neighbour has.

50 vertices that were dealt into 6 colours beforehand, with an edge between two of different colour in 45 of 100 cases.
So 6 colours suffice: that is the reference.
"""

from __future__ import annotations

from sharpen.core.digest import Json
from sharpen.tasks.algorithms.base import AlgorithmTask, Game, Instance, Invalid, choices, comparable, drawn

VERTICES, COLOURS, DENSITY = 50, 6, 0.45


def play(instance: Instance) -> Game:
    near: list[set[int]] = [set() for _ in range(instance["vertices"])]
    for one, other in instance["edges"]:
        near[one].add(other)
        near[other].add(one)
    colours: dict[int, int] = {}
    while len(colours) < len(near):
        left = [vertex for vertex in range(len(near)) if vertex not in colours]
        calls = []
        for vertex in left:
            around = [colours[other] for other in near[vertex] if other in colours]
            degree = len(near[vertex])
            calls.append((len(set(around)), degree, degree - len(around), len(left)))
        urgency = comparable((yield calls))
        vertex = left[urgency.index(max(urgency))]
        taken = {colours[other] for other in near[vertex] if other in colours}
        colours[vertex] = next(colour for colour in range(len(near)) if colour not in taken)
    return [colours[vertex] for vertex in range(len(near))]


class GraphColouring(AlgorithmTask):
    name = "graph-colouring"
    about = "Colour the vertices of a graph so that neighbours differ, with as few colours as can be."
    signature = "priority(colours, degree, open, left)"
    rules_of_play = (
        "colours is how many colours a vertex's neighbours have, degree how many neighbours there are.",
        "open is how many of these have no colour yet, left how many vertices have none.",
        "The vertex of the highest priority is coloured next, with the lowest colour that no neighbour has.",
    )
    measure = "colours"
    play = play
    start = '''"""The vertex with the fewest neighbours first."""


def priority(colours, degree, open, left):
    return 0.1 * colours - 1.0 * degree
'''

    def instance(self, seed: int) -> Instance:
        stream = drawn(seed, self.name)
        dealt = stream.shuffled([vertex % COLOURS for vertex in range(VERTICES)])
        pairs = [(one, other) for one in range(VERTICES) for other in range(one) if dealt[one] != dealt[other]]
        return {"vertices": VERTICES, "edges": [list(pair) for pair in pairs if stream.random() < DENSITY]}

    def value(self, instance: Instance, answer: Json) -> float:
        colours = choices(answer, VERTICES, VERTICES, "colours")
        for one, other in instance["edges"]:
            if colours[one] == colours[other]:
                raise Invalid(f"{one} and {other} are neighbours of the same colour")
        return float(len(set(colours)))
