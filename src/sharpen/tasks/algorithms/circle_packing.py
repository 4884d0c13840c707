"""Circle packing: 26 circles in the unit square that do not overlap, with the largest sum of radii.

One problem, so one item in each split; they differ in the seed a program is given, for programs that draw at random.
The start is 26 cells of a six by six grid, 26/12 in all. The best sum of radii known is 2.63586.
"""

from __future__ import annotations

import math

from sharpen.core.digest import Json
from sharpen.tasks.algorithms.base import AlgorithmTask, Game, Instance, Invalid, finite

CIRCLES = 26
BEST_KNOWN = 2.63586
TOLERANCE = 1e-9
"""How far circles may reach into each other or over the edge: rounding, no more."""


def play(instance: Instance) -> Game:
    (circles,) = yield [(instance["n"], instance["seed"])]
    return circles


def _grid() -> str:
    cells = [((column + 0.5) / 6, (row + 0.5) / 6) for row in range(6) for column in range(6)]
    return "".join(f"    ({x:.5f}, {y:.5f}),\n" for x, y in cells[:CIRCLES])


class CirclePacking(AlgorithmTask):
    name = "circle-packing"
    about = "Pack 26 circles into the unit square so that the sum of their radii is as large as can be."
    signature = "pack(n, seed)"
    rules_of_play = ("Return n triples (x, y, radius).", "Circles stay inside the square and do not overlap.")
    measure = "sum_of_radii"
    maximise = True
    sizes = (1, 1, 1)
    cpu_seconds = 10
    play = play
    start = (
        '"""Circles around given centres: half the way to the nearest one, then as large as there is room."""\n'
        "import math\n\nCENTRES = [\n" + _grid() + "]\n"
        """

def pack(n, seed):
    centres = CENTRES[:n]
    walls = [min(x, 1 - x, y, 1 - y) for x, y in centres]
    radii = []
    for i in range(n):
        gaps = [math.dist(centres[i], centres[j]) for j in range(n) if j != i]
        radii.append(min(walls[i], min(gaps) / 2))
    for sweep in range(2):
        for i in range(n):
            room = [math.dist(centres[i], centres[j]) - radii[j] for j in range(n) if j != i]
            radii[i] = min(walls[i], min(room))
    return [(x, y, r * 0.9999999999) for (x, y), r in zip(centres, radii)]
"""
    )

    def instance(self, seed: int) -> Instance:
        return {"n": CIRCLES, "seed": seed}

    def value(self, instance: Instance, answer: Json) -> float:
        if not isinstance(answer, list) or len(answer) != CIRCLES:
            raise Invalid(f"an answer must be {CIRCLES} circles")
        circles: list[tuple[float, float, float]] = []
        for number, circle in enumerate(answer):
            if not isinstance(circle, list) or len(circle) != 3:
                raise Invalid(f"circle {number} must be x, y and radius")
            x, y, r = (finite(value, f"a number of circle {number}") for value in circle)
            if r < 0.0:
                raise Invalid(f"circle {number} has the radius {r:g}")
            if min(x - r, 1.0 - x - r, y - r, 1.0 - y - r) < -TOLERANCE:
                raise Invalid(f"circle {number} at ({x:g}, {y:g}) with radius {r:g} is not inside the square")
            for other, (ox, oy, oradius) in enumerate(circles):
                if math.hypot(x - ox, y - oy) < r + oradius - TOLERANCE:
                    raise Invalid(f"circles {other} and {number} overlap")
            circles.append((x, y, r))
        return math.fsum(r for _, _, r in circles)
