"""Symbolic regression: the law that an oscillator follows, from its position, its speed and the time.

The law is a'' = -1.6 x - 0.45 x^3 - 0.35 v + 0.8 sin(1.7 t). An item is a motion from one start, 40 points of it. The
score is the share of the acceleration's variance that a formula explains, so the law itself scores 1: that is the
reference.
"""

from __future__ import annotations

import math

from sharpen.core.digest import Json
from sharpen.tasks.algorithms.base import AlgorithmTask, Game, Instance, Invalid, drawn, finite, numbers

POINTS, _STEPS, _STEP = 40, 10, 0.02


def play(instance: Instance) -> Game:
    found = []
    for x, v, t in instance["points"]:  # one by one: from the points to come a program could take the speed's slope
        found += numbers((yield [(x, v, t)]))
    return found


def law(x: float, v: float, t: float) -> float:
    return -1.6 * x - 0.45 * x**3 - 0.35 * v + 0.8 * math.sin(1.7 * t)


class Oscillator(AlgorithmTask):
    name = "oscillator"
    about = "Find the formula that an oscillator's acceleration follows."
    signature = "acceleration(x, v, t)"
    rules_of_play = ("x is the position, v the speed, t the time.",)
    measure = "explained"
    maximise = True
    play = play
    start = '''"""A spring with a little friction, and a push that comes and goes."""
import math


def acceleration(x, v, t):
    spring = -1.0 * x
    push = 0.1 * math.sin(1.0 * t)
    return spring - 0.1 * v + push
'''

    def instance(self, seed: int) -> Instance:
        stream = drawn(seed, self.name)
        x, v, t = 4.0 * stream.random() - 2.0, 4.0 * stream.random() - 2.0, 10.0 * stream.random()
        points = []
        for _ in range(POINTS):
            points.append([round(x, 6), round(v, 6), round(t, 6)])
            for _ in range(_STEPS):
                v += _STEP * law(x, v, t)
                x, t = x + _STEP * v, t + _STEP
        return {"points": points}

    def value(self, instance: Instance, answer: Json) -> float:
        if not isinstance(answer, list) or len(answer) != POINTS:
            raise Invalid(f"an answer must be {POINTS} accelerations")
        found = [finite(value, "an acceleration") for value in answer]
        truth = [law(*point) for point in instance["points"]]
        mean = math.fsum(truth) / POINTS
        error = math.fsum(min(1e100, abs(a - b)) ** 2 for a, b in zip(found, truth, strict=True))
        return max(0.0, 1.0 - error / math.fsum((value - mean) ** 2 for value in truth))
