"""The algorithm tasks hold to the contract, start in the middle, and have references that are what they claim to be."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from typing import Any

import pytest

from sharpen.core.errors import UsageError
from sharpen.core.item import Item
from sharpen.core.task import SPLITS, Task
from sharpen.tasks import registry
from sharpen.tasks.algorithms import rules
from sharpen.tasks.algorithms.base import AlgorithmTask, Invalid, references
from sharpen.tasks.algorithms.circle_packing import BEST_KNOWN
from sharpen.tasks.algorithms.oscillator import law
from sharpen.testing.tasks import TaskContract

NAMES = list(references())


def made(name: str, **settings: object) -> AlgorithmTask:
    task = registry.get(name, **settings)
    assert isinstance(task, AlgorithmTask)
    return task


def played(task: AlgorithmTask, source: str, seed: int) -> float:
    """What a program comes to on an instance, without a sandbox: for programs of our own."""
    space: dict[str, object] = {}
    exec(source, space)
    random.seed(seed)
    instance = task.instance(seed)
    function: Callable[..., Any] = space[task.entry]  # type: ignore[assignment]
    game = type(task).play(instance)
    calls = next(game)
    while True:
        try:
            calls = game.send(json.loads(json.dumps([function(*arguments) for arguments in calls])))
        except StopIteration as end:
            return task.value(instance, end.value)


@pytest.mark.parametrize("name", NAMES)
class TestAlgorithms(TaskContract):
    name = ""

    @pytest.fixture(autouse=True)
    def _named(self, name: str) -> None:
        self.name = name

    def make(self) -> Task:
        return registry.get(self.name)

    def few(self) -> list[Item]:
        return list(self.make().splits().val[:1])


def test_every_task_of_the_family_is_registered() -> None:
    assert len(NAMES) == 12 and set(NAMES) <= set(registry.names())


@pytest.mark.parametrize("name", NAMES)
def test_the_start_is_valid_mediocre_and_within_the_rules(name: str) -> None:
    task = made(name)
    assert rules.complaint(task.start, task.entry, task.signature) is None
    seeds = range(min(6, sum(task.sizes)))
    scores = [task.score(played(task, task.start, seed), references()[name][seed]) for seed in seeds]
    assert all(0.2 < score < 1.0 for score in scores)
    assert 0.3 < sum(scores) / len(scores) < 0.93


@pytest.mark.parametrize("name", NAMES)
def test_instances_follow_from_their_seed_and_differ(name: str) -> None:
    task = made(name)
    assert task.instance(1) == made(name).instance(1) != task.instance(2)
    assert len(references()[name]) == sum(task.sizes)


BETTER = {
    "bin-packing": "def priority(size, room, capacity):\n    return -room",
    "tsp": "def badness(step, home, crowd, left):\n    return step - 0.2 * crowd",
    "knapsack": "def priority(value, weight, room, left):\n    return value / weight",
    "job-shop": "def priority(time, rest, steps, waited, load):\n    return rest",
    "vehicle-routing": "def badness(step, home, now, demand, room):\n    return step - 0.5 * home",
    "set-cover": "def priority(new, size, price, rarest):\n    return new / price",
    "graph-colouring": "def priority(colours, degree, open, left):\n    return 100 * colours + degree",
    "independent-set": "def priority(degree, open, around, left):\n    return -open",
    "machine-scheduling": "def badness(load, time, fastest, mean, busiest):\n    return load + 2 * time",
    "facility-location": "def gain(saved, price, nearer, opened):\n    return saved - price",
    "oscillator": (
        "import math\ndef acceleration(x, v, t):\n"
        "    return -1.6 * x - 0.45 * x**3 - 0.35 * v + 0.8 * math.sin(1.7 * t)"
    ),
}


@pytest.mark.parametrize("name", sorted(BETTER))
def test_a_textbook_rule_does_better_than_the_start_and_never_better_than_the_reference(name: str) -> None:
    task, seeds = made(name), range(4)
    ours = [task.score(played(task, task.start, seed), references()[name][seed]) for seed in seeds]
    values = [played(task, BETTER[name], seed) for seed in seeds]
    theirs = [task.score(value, references()[name][seed]) for seed, value in zip(seeds, values, strict=True)]
    assert sum(theirs) > sum(ours)
    for value, reference in zip(values, references()[name], strict=False):
        assert value <= reference + 1e-6 if task.maximise else value >= reference - 1e-6


def test_references_of_knapsack_and_bin_packing_can_be_computed_again() -> None:
    task = made("knapsack")
    for seed in range(3):
        instance = task.instance(seed)
        best = [0] * (instance["capacity"] + 1)
        for value, weight in instance["things"]:
            for room in range(instance["capacity"], weight - 1, -1):
                best[room] = max(best[room], best[room - weight] + value)
        assert references()["knapsack"][seed] == best[-1]
    sizes = made("bin-packing").instance(4)["sizes"]
    assert references()["bin-packing"][4] == math.ceil(sum(sizes) / 100)


def test_the_law_of_the_oscillator_explains_everything() -> None:
    task = made("oscillator")
    instance = task.instance(3)
    assert task.value(instance, [law(*point) for point in instance["points"]]) == 1.0
    assert task.value(instance, [1e299] * 40) == 0.0


def test_circle_packing_starts_from_the_grid_and_knows_the_best_sum() -> None:
    task = made("circle-packing")
    assert played(task, task.start, 0) == pytest.approx(26 / 12, abs=2e-4)
    assert references()["circle-packing"] == [BEST_KNOWN] * 3
    assert [len(task.splits()[split]) for split in SPLITS] == [1, 1, 1]


def circles(*first: tuple[object, ...]) -> list[list[object]]:
    spots = [[0.1 + 0.2 * (k % 5), 0.1 + 0.15 * (k // 5), 0.01] for k in range(26)]
    return [*map(list, first), *spots[len(first) :]]


WRONG = {
    "circle-packing": [
        None, [], circles()[:25], circles((0.1, 0.1, math.nan)), circles((0.1, 0.1, -0.01)), circles((0.005, 0.1, 0.01)),
        circles((0.1, 0.1, 0.01), (0.1, 0.115, 0.01)), circles(("0.1", 0.1, 0.01)), circles((0.1, 0.1)),
        circles((0.1, 0.1, True)), circles((0.1, 0.1, 10**400)),
    ],
    "bin-packing": [None, [0] * 300, [0], [-1] * 300, ["a"] * 300, [0.5] * 300],
    "tsp": [None, list(range(49)), [0] * 50, [*range(49), 50]],
    "knapsack": [None, [0, 0], list(range(50)), [50], [True]],
    "job-shop": [None, [0] * 40, list(range(40))],
    "vehicle-routing": [None, list(range(1, 31)), [1, 0, 2], [0] * 91],
    "set-cover": [None, [], [0], [60]],
    "graph-colouring": [None, [0] * 50, [50] * 50],
    "independent-set": [None, list(range(80)), [80], [1.0]],
    "machine-scheduling": [None, [5] * 60, [0] * 59],
    "facility-location": [None, [], [20]],
    "oscillator": [None, [0.0] * 39, ["x"] * 40, [math.inf] * 40],
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_answer_has_no_value(name: str) -> None:
    task = made(name)
    for answer in WRONG[name]:
        with pytest.raises(Invalid):
            task.value(task.instance(0), answer)  # type: ignore[arg-type]


def test_a_mode_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UsageError, match="sandbox must be bubblewrap or unsafe, got 'none'"):
        made("tsp", sandbox="none")
