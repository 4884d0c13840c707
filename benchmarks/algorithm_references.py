"""Compute the reference values of the algorithm tasks and write them into the package. Takes some minutes; needs scipy.

    python benchmarks/algorithm_references.py [TASK ...]

Exact where that can be done (dynamic programming, integer programming by HiGHS), else the best that a strong search finds.
docs/algorithms.md says which is which.
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import LinearConstraint, milp
from scipy.sparse import lil_matrix

from sharpen.tasks import registry
from sharpen.tasks.algorithms.base import AlgorithmTask, Instance, distances
from sharpen.tasks.algorithms.circle_packing import BEST_KNOWN
from sharpen.tasks.algorithms.graph_colouring import COLOURS
from sharpen.tasks.algorithms.job_shop import makespan

FILE = Path(__file__).parents[1] / "src" / "sharpen" / "tasks" / "algorithms" / "references.json"


def bin_packing(instance: Instance) -> float:
    return math.ceil(sum(instance["sizes"]) / instance["capacity"])


def knapsack(instance: Instance) -> float:
    best = [0] * (instance["capacity"] + 1)
    for value, weight in instance["things"]:
        for room in range(instance["capacity"], weight - 1, -1):
            best[room] = max(best[room], best[room - weight] + value)
    return best[-1]


def tsp(instance: Instance) -> float:
    """The optimum: degree constraints first, then a cut for every subtour that shows, until there is one tour."""
    far = distances(instance["cities"])
    pairs = [(a, b) for b in range(len(far)) for a in range(b)]
    cuts: list[set[int]] = []
    while True:
        rows = lil_matrix((len(far) + len(cuts), len(pairs)))
        for number, (a, b) in enumerate(pairs):
            rows[a, number] = rows[b, number] = 1
            for cut, cities in enumerate(cuts):
                if (a in cities) != (b in cities):
                    rows[len(far) + cut, number] = 1
        high = [2.0] * len(far) + [np.inf] * len(cuts)
        length, chosen = _solved([far[a][b] for a, b in pairs], rows, 2, high)
        parts = _components(len(far), [pair for pair, taken in zip(pairs, chosen, strict=True) if taken > 0.5])
        if len(parts) == 1:
            return length
        cuts += parts


def _components(count: int, edges: Sequence[tuple[int, int]]) -> list[set[int]]:
    home = [{city} for city in range(count)]
    for a, b in edges:
        if home[a] is not home[b]:
            home[a] |= home[b]
            for city in home[b]:
                home[city] = home[a]
    return list({id(part): part for part in home}.values())


def job_shop(instance: Instance) -> float:
    jobs, machines = instance["jobs"], instance["machines"]
    bound = max(
        max(sum(time for _, time in job) for job in jobs),
        max(sum(time for job in jobs for machine, time in job if machine == number) for number in range(machines)),
    )
    best = math.inf
    for restart in range(4):
        rng = random.Random(restart)
        order = [job for job in range(len(jobs)) for _ in jobs[job]]
        rng.shuffle(order)
        now, heat = makespan(jobs, machines, order), 30.0
        for _ in range(15_000):
            a, b = rng.sample(range(len(order)), 2)
            order[a], order[b] = order[b], order[a]
            found = makespan(jobs, machines, order)
            if found <= now or rng.random() < math.exp((now - found) / heat):
                now = found
                best = min(best, now)
            else:
                order[a], order[b] = order[b], order[a]
            heat = max(0.3, heat * 0.9997)
            if best == bound:
                return best
    return best


def vehicle_routing(instance: Instance) -> float:
    far, demands, capacity = distances(instance["places"]), instance["demands"], instance["capacity"]
    best = math.inf
    for restart in range(60):
        routes = _savings(far, demands, capacity, random.Random(restart), noise=0.0 if restart == 0 else 0.2)
        best = min(best, _improved(routes, far, demands, capacity))
    return best


def _savings(
    far: list[list[float]], demands: Sequence[int], capacity: int, rng: random.Random, noise: float
) -> list[list[int]]:
    routes = {place: [place] for place in range(1, len(far))}
    pairs = [(a, b) for a in routes for b in routes if a < b]
    saved = {(a, b): (far[a][0] + far[b][0] - far[a][b]) * (1 + noise * (rng.random() - 0.5)) for a, b in pairs}
    for a, b in sorted(pairs, key=lambda pair: -saved[pair]):
        one, other = routes[a], routes[b]
        if one is other or sum(demands[p] for p in one + other) > capacity:
            continue
        if a not in (one[0], one[-1]) or b not in (other[0], other[-1]):
            continue
        joined = (one if one[-1] == a else one[::-1]) + (other if other[0] == b else other[::-1])
        for place in joined:
            routes[place] = joined
    return [list(route) for route in {id(route): route for route in routes.values()}.values()]


def _improved(routes: list[list[int]], far: list[list[float]], demands: Sequence[int], capacity: int) -> float:
    def length(route: Sequence[int]) -> float:
        return math.fsum(far[a][b] for a, b in zip([0, *route], [*route, 0], strict=True)) if route else 0.0

    def load(route: Sequence[int]) -> int:
        return sum(demands[place] for place in route)

    better = True
    while better:
        better = False
        for number, route in enumerate(routes):
            for i in range(len(route)):
                for j in range(i + 1, len(route)):
                    turned = route[:i] + route[i : j + 1][::-1] + route[j + 1 :]
                    if length(turned) < length(route) - 1e-12:
                        routes[number] = route = turned
                        better = True
        for a in range(len(routes)):
            for b in range(len(routes)):
                if a != b and _between(routes, a, b, length, load, capacity):
                    better = True
    return sum(map(length, routes))


def _between(
    routes: list[list[int]], a: int, b: int, length: Callable[[Sequence[int]], float],
    load: Callable[[Sequence[int]], int], capacity: int,
) -> bool:  # fmt: skip
    """One better relocation of up to two customers, exchange of two, or exchange of ends, between two routes."""
    one, other = routes[a], routes[b]
    now = length(one) + length(other) - 1e-12
    for i in range(len(one)):
        ways = [(one[:i] + one[i + size :], other[:j] + one[i : i + size] + other[j:])
                for size in (1, 2) for j in range(len(other) + 1)]  # fmt: skip
        ways += [
            ([*one[:i], other[j], *one[i + 1 :]], [*other[:j], one[i], *other[j + 1 :]]) for j in range(len(other))
        ]
        ways += [(one[:i] + other[j:], other[:j] + one[i:]) for j in range(len(other) + 1)]
        for left, right in ways:
            if load(left) <= capacity and load(right) <= capacity and length(left) + length(right) < now:
                routes[a], routes[b] = left, right
                return True
    return False


def _solved(
    costs: Sequence[float], rows: Any, low: Any, high: Any, *, gap: float = 0.0, whole: Any = 1
) -> tuple[float, Any]:
    found = milp(
        np.asarray(costs, float), constraints=LinearConstraint(rows.tocsr(), low, high), integrality=whole,
        bounds=(0, np.where(np.ones(len(costs)) * whole == 1, 1, np.inf)),
        options={"mip_rel_gap": gap, "time_limit": 60},
    )  # fmt: skip
    assert found.status == 0, found.message
    return float(found.fun), found.x


def set_cover(instance: Instance) -> float:
    rows = lil_matrix((instance["elements"], len(instance["sets"])))
    for number, members in enumerate(instance["sets"]):
        for element in members:
            rows[element, number] = 1
    return round(_solved(instance["prices"], rows, 1, np.inf)[0])


def independent_set(instance: Instance) -> float:
    rows = lil_matrix((len(instance["edges"]), instance["vertices"]))
    for number, (one, other) in enumerate(instance["edges"]):
        rows[number, one] = rows[number, other] = 1
    return round(-_solved([-1] * instance["vertices"], rows, 0, 1)[0])


def machine_scheduling(instance: Instance) -> float:
    times, machines = instance["times"], instance["machines"]
    count = len(times) * machines
    rows, low, high = lil_matrix((len(times) + machines, count + 1)), [], []
    for job in range(len(times)):
        rows[job, job * machines : (job + 1) * machines] = 1
        low.append(1)
        high.append(1)
    for machine in range(machines):
        for job, row in enumerate(times):
            rows[len(times) + machine, job * machines + machine] = row[machine]
        rows[len(times) + machine, count] = -1
        low.append(-np.inf)
        high.append(0)
    whole = np.array([1] * count + [0])
    return round(_solved([0.0] * count + [1.0], rows, low, high, gap=0.01, whole=whole)[0])


def facility_location(instance: Instance) -> float:
    sites, customers = instance["sites"], instance["customers"]
    count = len(sites) * len(customers)
    ways = [math.dist(site, customer) for site in sites for customer in customers]
    rows, low, high = lil_matrix((len(customers) + count, count + len(sites))), [], []
    for c in range(len(customers)):
        for s in range(len(sites)):
            rows[c, s * len(customers) + c] = 1
        low.append(1)
        high.append(1)
    for number in range(count):
        rows[len(customers) + number, number] = 1
        rows[len(customers) + number, count + number // len(customers)] = -1
        low.append(-np.inf)
        high.append(0)
    return _solved([*ways, *instance["prices"]], rows, low, high, gap=1e-9)[0]


SOLVERS: dict[str, Callable[[Instance], float]] = {
    "circle-packing": lambda _: BEST_KNOWN,
    "bin-packing": bin_packing,
    "tsp": tsp,
    "knapsack": knapsack,
    "job-shop": job_shop,
    "vehicle-routing": vehicle_routing,
    "set-cover": set_cover,
    "graph-colouring": lambda _: COLOURS,
    "independent-set": independent_set,
    "machine-scheduling": machine_scheduling,
    "facility-location": facility_location,
    "oscillator": lambda _: 1,
}


def main(wanted: Sequence[str]) -> None:
    known = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    for name in wanted or SOLVERS:
        task = registry.get(name)
        assert isinstance(task, AlgorithmTask)
        known[name] = [round(SOLVERS[name](task.instance(seed)), 6) for seed in range(sum(task.sizes))]
        print(name, known[name][:5], flush=True)
        lines = ",\n".join(
            f"  {json.dumps(task_name)}: {json.dumps(known[task_name])}" for task_name in SOLVERS if task_name in known
        )
        FILE.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
